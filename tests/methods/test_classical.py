import numpy as np
import pytest
from small_model import SIZES, WEIGHTS, assert_agrees, make, to_batch

import literal
from same.methods.classical import Classical
from same.weighting import Weighting


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_losses_and_gradients_are_those_of_the_literal_algorithm_2(pair):
    store, tasks, model = make(seed=2, pair=pair)
    batch = literal.concurrent([literal.graph(store, g) for g in range(len(SIZES))], np.random.default_rng(0))
    theta = dict(model.named_parameters())
    expected = literal.classical_loss(theta, batch, WEIGHTS, unit_norm=True, pair=pair)
    losses = Classical().losses(model, to_batch(store, tasks, batch))
    assert_agrees(Weighting(WEIGHTS).weigh(losses), expected, model)


def test_a_batch_is_encoded_once():
    store, tasks, model = make()
    plain = literal.concurrent([literal.graph(store, g) for g in range(4)], np.random.default_rng(0))
    calls = []
    model.encoder.register_forward_hook(lambda *a: calls.append(1))
    Classical().losses(model, to_batch(store, tasks, plain))
    assert len(calls) == 1


def test_evaluation_agrees_with_the_losses():
    store, tasks, model = make()
    plain = literal.concurrent([literal.graph(store, g) for g in range(len(SIZES))], np.random.default_rng(0))
    batch = to_batch(store, tasks, plain)
    scores = Classical().evaluate(model, batch)
    for name, loss in Classical().losses(model, batch).items():
        assert scores[name][0] == pytest.approx(loss.item())
        assert 0 <= scores[name][1] <= 1


def test_every_task_sees_all_graphs():
    store, tasks, _ = make()
    batch = Classical().draw(store, tasks, np.arange(len(SIZES)), np.random.default_rng(0))
    counts = {part.task.name: len(part.target.y) for part in Classical().parts(batch)}
    assert counts["gc"] == len(SIZES)
    assert counts["nc"] == sum(SIZES)
