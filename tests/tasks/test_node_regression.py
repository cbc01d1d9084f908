import numpy as np

from helpers import random_store
from same.graphs import GraphStore
from same.tasks import NodeRegression


def test_cut_takes_any_nodes():
    store = random_store(0, [10, 10])
    y = np.arange(20, dtype=np.float32)
    store = GraphStore.build("r", x=store.x, sizes=[10, 10], edge_index=np.empty((2, 0)), node_y=y)
    support, target = NodeRegression().cut(store, np.array([0, 1]), np.random.default_rng(0))
    assert len(support.index) == 6
    assert sorted([*support.y.tolist(), *target.y.tolist()]) == y.tolist()
