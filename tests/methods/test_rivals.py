"""Classical training and traditional meta-learning, held to literal transcriptions of Algorithms 2 and 3."""

import numpy as np
import pytest
import torch
from test_same import SIZES, TASKS, gradients, make

import literal
from same.episodes import moved
from same.methods import Classical, Infomax, Traditional
from same.methods.infomax import add_infomax, infomax_batch
from same.weighting import Weighting

WEIGHTS = {"gc": 1.0, "nc": 0.5, "lp": 2.0}


def to_batch(store, tasks, plain):
    return moved([(t, literal.to_examples(store, t.name, plain[t.name])) for t in tasks], torch.float64)


def assert_agrees(found, expected, model):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
    slow, fast = gradients(expected, model), gradients(found, model)
    for name, g in slow.items():
        if g is not None:
            assert (fast[name] - g).norm() <= 1e-9 * g.norm(), name
    return slow


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_classical_is_algorithm_2(pair):
    store, tasks, model = make(seed=2, pair=pair)
    model.weighting = Weighting(WEIGHTS)
    batch = literal.concurrent([literal.graph(store, g) for g in range(len(SIZES))], np.random.default_rng(0))
    theta = dict(model.named_parameters())
    expected = literal.classical_loss(theta, batch, WEIGHTS, unit_norm=True, pair=pair)
    found = model.weighting.weigh(Classical().losses(model, to_batch(store, tasks, batch)))
    assert_agrees(found, expected, model)


@pytest.mark.parametrize("adapt_encoder", [True, False])
def test_traditional_is_algorithm_3(adapt_encoder):
    store, tasks, model = make(seed=4)
    model.weighting = Weighting(WEIGHTS)
    rng = np.random.default_rng(0)
    support, target = (
        literal.concurrent([literal.graph(store, g) for g in ids], rng) for ids in (range(7), range(7, len(SIZES)))
    )
    theta = dict(model.named_parameters())
    shape = {"unit_norm": True, "pair": "symmetric"}
    expected = literal.traditional_loss(theta, support, target, WEIGHTS, 0.3, not adapt_encoder, **shape)
    method = Traditional(adapt_encoder, inner_lr=0.3)
    episode = (to_batch(store, tasks, support), to_batch(store, tasks, target))
    exact = assert_agrees(model.weighting.weigh(method.losses(model, episode)), expected, model)
    exact = exact["heads.gc.out.weight"]
    rough = model.weighting.weigh(Traditional(adapt_encoder, inner_lr=0.3, first_order=True).losses(model, episode))
    assert (gradients(rough, model)["heads.gc.out.weight"] - exact).norm() > 1e-3 * exact.norm()


def test_classical_encodes_a_batch_once():
    store, tasks, model = make()
    plain = literal.concurrent([literal.graph(store, g) for g in range(4)], np.random.default_rng(0))
    calls = []
    model.encoder.register_forward_hook(lambda *a: calls.append(1))
    Classical().losses(model, to_batch(store, tasks, plain))
    assert len(calls) == 1


def test_evaluation_agrees_with_the_losses():
    store, tasks, model = make(tasks=TASKS)
    plain = literal.concurrent([literal.graph(store, g) for g in range(len(SIZES))], np.random.default_rng(0))
    batch = to_batch(store, tasks, plain)
    found = Classical().evaluate(model, batch)
    for name, loss in Classical().losses(model, batch).items():
        assert found[name][0] == pytest.approx(loss.item())
        assert 0 <= found[name][1] <= 1


def test_infomax_tells_true_nodes_from_shuffled_ones():
    store, _, model = make(width=16)
    model = model.float()
    add_infomax(model, 16)
    rng = np.random.default_rng(0)
    batch = infomax_batch(store, [], np.arange(len(SIZES)), rng)
    assert sorted(batch[0].x[:, 0].tolist()) == sorted(batch[1].x[:, 0].tolist())
    before = Infomax().evaluate(model, batch)["infomax"][0]
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        loss = Infomax().losses(model, infomax_batch(store, [], np.arange(len(SIZES)), rng))["infomax"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert Infomax().evaluate(model, batch)["infomax"][0] < before - 0.1
