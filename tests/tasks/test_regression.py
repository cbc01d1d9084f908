import numpy as np
import pytest
import torch

from helpers import random_store
from same.episodes import whole_episode
from same.graphs import GraphStore
from same.methods import ESAME
from same.nn import Encoder, Model
from same.tasks import GraphRegression, NodeRegression, make_tasks


@pytest.mark.parametrize("columns", [1, 2])
def test_graph_and_node_regression_learn(columns):
    rng = np.random.default_rng(0)
    base = random_store(0, [8] * 30, density=0.3)
    x = base.x.reshape(30, 8, 3)
    graph_y = x.mean(1)[:, :columns] if columns > 1 else x.mean(1)[:, 0]
    edge_index = base.edges + np.repeat(base.node_ptr[:-1], np.diff(base.edge_ptr))
    store = GraphStore.build(
        "r", x=base.x, sizes=[8] * 30, edge_index=edge_index, graph_y=graph_y, node_y=base.x[:, 1] ** 2
    )
    tasks = make_tasks(["graph_regression", "node_regression", "lp"], store)
    assert tasks[0].outputs == columns
    torch.manual_seed(0)
    model = Model(Encoder(3, width=16, unit_norm=False), {task.name: task.head(16) for task in tasks})
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    fixed = whole_episode(store, tasks, np.arange(30), np.random.default_rng(1))
    before = ESAME().evaluate(model, fixed)
    for _ in range(300):
        episode = whole_episode(store, tasks, rng.permutation(30)[:12], rng)
        loss = sum(ESAME().losses(model, episode).values())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = ESAME().evaluate(model, fixed)
    for name in ("graph_regression", "node_regression"):
        assert after[name][0] < 0.75 * before[name][0]
        assert after[name][1] > 0.3
    assert isinstance(tasks[0], GraphRegression)


def test_cut_takes_any_nodes():
    store = random_store(0, [10, 10])
    y = np.arange(20, dtype=np.float32)
    store = GraphStore.build("r", x=store.x, sizes=[10, 10], edge_index=np.empty((2, 0)), node_y=y)
    support, target = NodeRegression().cut(store, np.array([0, 1]), np.random.default_rng(0))
    assert len(support.index) == 6
    assert sorted([*support.y.tolist(), *target.y.tolist()]) == y.tolist()
