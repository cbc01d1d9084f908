import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_model import SIZES, TASKS, VARIANTS, WEIGHTS, directional_derivative, draw, gradients, make, total
from torch import nn

import literal
from same.config import Config
from same.episodes import Part
from same.graphs.batch import GraphBatch
from same.methods.adapt import adapt
from same.methods.base import make_method
from same.methods.same import ESAME, ISAME, outer_losses
from same.nn import Model
from same.tasks import Examples, Task
from same.weighting import make_weighting


@pytest.mark.parametrize("variant", ["isame", "esame"])
@pytest.mark.parametrize(
    ("pair", "unit_norm", "steps"), [("concat", True, 1), ("symmetric", False, 1), ("concat", True, 3)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_losses_and_gradients_are_those_of_the_literal_algorithms(variant, pair, unit_norm, steps, seed):
    store, tasks, model = make(seed=seed, pair=pair, unit_norm=unit_norm)
    rng = np.random.default_rng(seed)
    dealt = np.split(rng.permutation(len(SIZES)), 3)
    episode = {
        t: literal.CUTS[t]([literal.graph(store, g) for g in ids], rng) for t, ids in zip(TASKS, dealt, strict=True)
    }
    theta = dict(model.named_parameters())
    expected = literal.outer_loss(theta, episode, variant, alpha=0.3, steps=steps, unit_norm=unit_norm, pair=pair)
    method = VARIANTS[variant](inner_lr=0.3, inner_steps=steps)
    loss = total(method, model, literal.to_episode(store, tasks, episode))
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    slow, fast = gradients(expected, model), gradients(loss, model)
    for name in theta:
        assert fast[name].norm() > 0
        assert (fast[name] - slow[name]).norm() <= 1e-9 * slow[name].norm(), name


@pytest.mark.parametrize("variant", ["isame", "esame"])
def test_weights_scale_the_outer_sum_only(variant):
    """UPDATE descends along Σ λ(t) ∇L(t); ADAPT minimises the plain loss L(t), whatever λ is."""
    store, tasks, model = make(seed=1)
    episode = draw(store, tasks)
    config = Config(method=variant, inner_lr=0.3, weights=WEIGHTS)
    losses = make_method(config).losses(model, episode)
    make_weighting(config.weighting, config.tasks, config.weights).backward(losses, model)
    plain = VARIANTS[variant](inner_lr=0.3)
    each = {task: gradients(plain.losses(model, episode)[task], model) for task in TASKS}
    for name, p in model.named_parameters():
        parts = [WEIGHTS[task] * g[name] for task, g in each.items() if g[name] is not None]
        torch.testing.assert_close(p.grad, torch.stack(parts).sum(0))


@pytest.mark.parametrize("variant", ["isame", "esame"])
def test_drawn_episodes_mean_the_same_to_the_literal_algorithm(variant):
    store, tasks, model = make(seed=3)
    episode = draw(store, tasks)
    plain = {t.name: [literal.from_examples(store, t.name, e) for e in (s, g)] for t, s, g in episode}
    theta = dict(model.named_parameters())
    expected = literal.outer_loss(theta, plain, variant, alpha=0.1, unit_norm=True, pair="symmetric")
    torch.testing.assert_close(total(VARIANTS[variant](), model, episode), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("kind", "pool"), [*((kind, "mean") for kind in ("gcn", "gin", "gat", "sage", "cheb")), ("gcn", "sum+max+std+size")]
)
@pytest.mark.parametrize("variant", ["isame", "esame"])
def test_the_outer_gradient_is_exact_and_the_first_order_one_is_not(variant, kind, pool):
    store, tasks, model = make(kind=kind, pool=pool)
    episode = draw(store, tasks)
    exact = VARIANTS[variant](inner_lr=0.5)
    rough = VARIANTS[variant](inner_lr=0.5, first_order=True)
    g, g_rough = (gradients(total(m, model, episode), model) for m in (exact, rough))
    generator = torch.Generator().manual_seed(1)
    off = []
    for _ in range(3):
        direction = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in model.parameters()]
        expected = directional_derivative(exact, model, episode, direction)

        def along(g, direction=direction):
            return sum((a * b).sum() for a, b in zip(g.values(), direction, strict=True)).item()

        assert along(g) == pytest.approx(expected, rel=1e-4, abs=1e-6)
        off.append(abs(along(g_rough) - expected) / abs(expected))
    assert max(off) > 0.01
    torch.testing.assert_close(total(exact, model, episode), total(rough, model, episode))


def test_esame_adapts_the_head_alone_and_the_encoder_learns_outside():
    store, tasks, model = make()
    episode = draw(store, tasks)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    for task, support, _ in episode:
        adapted = ESAME().adapt(model, task, support)
        assert set(adapted) == {n for n in before if n.startswith(f"heads.{task.name}.")}
        assert all(not torch.equal(adapted[n], before[n]) for n in adapted)
    g = gradients(total(ESAME(), model, episode), model)
    assert all(g[n].norm() > 0 for n in before)
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


@pytest.mark.parametrize("method", [ISAME(), ESAME()])
def test_an_episode_of_one_task_leaves_the_other_heads_alone(method):
    store, tasks, model = make()
    episode = [part for part in draw(store, tasks) if part.task.name == "nc"]
    for name, g in gradients(total(method, model, episode), model).items():
        assert (g is None) == name.startswith(("heads.gc", "heads.lp")), name


def test_isame_adapts_encoder_and_head():
    store, tasks, model = make()
    for task, support, _ in draw(store, tasks):
        adapted = ISAME().adapt(model, task, support)
        assert all(not torch.equal(value, model.get_parameter(name)) for name, value in adapted.items())
        assert {name.split(".")[0] for name in adapted} == {"encoder", "heads"}


def test_esame_encodes_an_episode_once():
    store, tasks, model = make()
    calls = []
    model.encoder.register_forward_hook(lambda *a: calls.append(1))
    ESAME().losses(model, draw(store, tasks))
    assert len(calls) == 1


def permuted(batch: GraphBatch, rng) -> tuple[GraphBatch, torch.Tensor]:
    """The batch with the nodes of each graph in another order, and the new index of each node."""
    ends = itertools.pairwise(batch.node_ptr.tolist())
    new = torch.cat([start + torch.from_numpy(rng.permutation(end - start)) for start, end in ends])
    back = torch.argsort(new)
    edges = new[batch.edges].sort(dim=0).values
    edges = edges[:, np.lexsort(edges.flip(0).numpy())]
    labels = {**batch.labels, "node_y": batch.labels["node_y"].take(back)}
    return replace(batch, x=batch.x[back], labels=labels, edges=edges), new


@pytest.mark.parametrize("method", [ISAME(), ESAME()])
def test_the_order_of_nodes_does_not_matter(method):
    store, tasks, model = make(seed=5)
    episode, rng = draw(store, tasks), np.random.default_rng(0)
    inputs = {id(e.inputs): e.inputs for _, *both in episode for e in both}
    other_order = {key: permuted(b, rng) for key, b in inputs.items()}

    def move(e: Examples) -> Examples:
        batch, new = other_order[id(e.inputs)]
        return Examples(batch, e.y, None if e.index is None else new[e.index])

    other = [Part(t, move(s), move(g)) for t, s, g in episode]
    for key, b in inputs.items():
        batch, new = other_order[key]
        torch.testing.assert_close(model.encoder(batch)[new], model.encoder(b), rtol=1e-9, atol=1e-12)
    for name, value in method.losses(model, episode).items():
        torch.testing.assert_close(method.losses(model, other)[name], value, rtol=1e-9, atol=1e-12)


class Fit(Task):
    """A regression task without graphs."""

    def __init__(self, name):
        self.name = name

    def loss(self, output, examples):
        return (output - examples.y).square().mean()

    def score(self, output, examples):
        return -float(self.loss(output, examples))


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 1)

    def forward(self, h, examples):
        return self.out(h)[:, 0]


@pytest.mark.parametrize("variant", [ISAME, ESAME])
def test_the_method_works_without_graphs(variant):
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    tasks = {"sum": x.sum(1), "first": x[:, 0]}
    model = Model(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), {name: Linear() for name in tasks})
    method = variant(inner_lr=0.1)

    def episode():
        order = torch.randperm(64)
        halves = [(order[:32], order[32:]) for _ in tasks]
        return [
            Part(Fit(name), Examples(x[s], y[s]), Examples(x[t], y[t]))
            for (name, y), (s, t) in zip(tasks.items(), halves, strict=True)
        ]

    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(150):
        loss = total(method, model, episode())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_outer_losses_reads_any_iterable():
    store, tasks, model = make()
    losses = outer_losses(model, [tuple(p) for p in draw(store, tasks)], lambda m, t, s: adapt(m, t, s, lr=0.1))
    assert list(losses) == list(TASKS)
