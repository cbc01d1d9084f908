import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from helpers import random_store
from same.episodes import multi_task_episode, whole_episode
from same.errors import InputError
from same.graphs import GraphStore
from same.methods import esame, isame
from same.nn import Encoder, Model
from same.tasks import TASKS, Examples, GraphRegression, LinkPrediction, make_tasks


def test_losses_take_logits_and_one_sigmoid():
    task = LinkPrediction(random_store(0, [5]))
    logits, y = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([1.0, 0.0, 0.0])
    p = torch.sigmoid(logits)
    expected = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    torch.testing.assert_close(task.loss(logits, Examples(None, y)), expected)
    assert task.score(logits, Examples(None, y)) == roc_auc_score(y, p) == 1.0


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_symmetric_pairs_do_not_depend_on_direction(pair):
    store = random_store(0, [6])
    head = LinkPrediction(store, pair).head(4)
    h, index = torch.randn(6, 4), torch.tensor([[0, 1], [2, 3]])
    there, back = (head(h, Examples(None, torch.empty(0), i)) for i in (index, index.flip(0)))
    assert torch.allclose(there, back) == (pair == "symmetric")


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_a_linear_head_is_a_linear_layer_on_what_a_linear_probe_sees(pair):
    store = random_store(0, [6, 9, 4, 7], density=0.5)
    hidden = make_tasks(["gc", "nc", "lp"], store, pair=pair)
    for task, other in zip(make_tasks(["gc", "nc", "lp"], store, pair=pair, linear_heads=True), hidden, strict=True):
        examples = task.examples(store.cut(np.arange(4)), np.random.default_rng(0))
        h = torch.randn(examples.inputs.num_nodes, 5)
        head = task.head(5)
        told = head(h, examples)
        seen = task.features(h * 5**0.5 if task.name == "lp" else h, examples)
        torch.testing.assert_close(told, head.out(seen).view_as(told))
        layers = [len(list(each.parameters())) // 2 for each in (head, other.head(5))]
        assert layers == ([1, 1] if task.name == "nc" else [1, 2])


def test_what_a_set_does_not_offer_is_refused():
    bare = GraphStore.build("bare", x=np.zeros((3, 1)), sizes=[1, 2], edge_index=np.empty((2, 0)), graph_y=[0, 0])
    for name, reason in [("gc", "at least two classes"), ("nc", "at least two classes"), ("lp", "edges")]:
        with pytest.raises(InputError, match=f"tasks: {name} needs .*{reason}.*, and bare has none"):
            make_tasks([name], bare)
    with pytest.raises(InputError, match=r"targets of graphs \(floats\)"):
        make_tasks(["graph_regression"], bare)
    with pytest.raises(InputError, match="'gcn' is not one of gc, nc, lp"):
        make_tasks(["gcn"], bare)
    with pytest.raises(InputError, match="each once"):
        make_tasks(["lp", "lp"], random_store(0, [5], density=1.0))
    with pytest.raises(InputError, match="name one or more"):
        make_tasks([], bare)


@pytest.mark.parametrize("columns", [1, 2])
def test_regression_learns(columns):
    rng = np.random.default_rng(0)
    base = random_store(0, [8] * 30, density=0.3)
    x = base.x.reshape(30, 8, 3)
    graph_y = x.mean(1)[:, :columns] if columns > 1 else x.mean(1)[:, 0]
    edge_index = base.edges + np.repeat(base.node_ptr[:-1], np.diff(base.edge_ptr))
    store = GraphStore.build(
        "r", x=base.x, sizes=[8] * 30, edge_index=edge_index, graph_y=graph_y, node_y=base.x[:, 1] ** 2
    )
    tasks = make_tasks(["graph_regression", "node_regression", "lp"], store)
    assert tasks[0].targets == columns
    torch.manual_seed(0)
    model = Model(Encoder(3, width=16, unit_norm=False), {task.name: task.head(16) for task in tasks})
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    fixed = whole_episode(store, tasks, np.arange(30), np.random.default_rng(1))
    before = esame().evaluate(model, fixed)
    for _ in range(300):
        episode = whole_episode(store, tasks, rng.permutation(30)[:12], rng)
        loss = sum(esame().losses(model, episode).values())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = esame().evaluate(model, fixed)
    for name in ("graph_regression", "node_regression"):
        assert after[name][0] < 0.75 * before[name][0]
        assert after[name][1] > 0.3
    assert isinstance(tasks[0], GraphRegression)


def test_graphs_with_hardly_any_edges_or_nodes_train():
    """No pairs, or no nodes on one side of an episode, are a loss of 0 and no gradient, not a number that is none."""
    sizes = [1, 2, 1, 3, 1, 2, 1, 1, 2, 1, 1, 1]
    ptr = np.cumsum([0, *sizes])
    store = GraphStore.build(
        "sparse",
        x=np.random.default_rng(0).normal(size=(ptr[-1], 3)),
        sizes=sizes,
        edge_index=[[ptr[3]], [ptr[3] + 1]],
        graph_y=np.arange(12) % 2,
        node_y=np.arange(ptr[-1]) % 2,
    )
    tasks = make_tasks(["gc", "nc", "lp"], store)
    model = Model(Encoder(3, width=4), {task.name: task.head(4) for task in tasks})
    for method in (esame(), isame()):
        for seed in range(20):
            episode = multi_task_episode(store, tasks, np.arange(12), np.random.default_rng(seed))
            losses = method.losses(model, episode)
            assert all(torch.isfinite(loss) for loss in losses.values())
            sum(losses.values()).backward()
            assert all(np.isfinite(v) for pair in method.evaluate(model, episode).values() for v in pair)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_every_task_has_a_name_and_a_kind():
    assert {name: task.kind for name, task in TASKS.items()} == {
        "gc": "classes",
        "nc": "classes",
        "lp": "links",
        "graph_regression": "numbers",
        "node_regression": "numbers",
    }
