"""Support and target sets of graphs and of nodes: the properties that Algorithm 4 promises."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from helpers import random_store, stores
from same.tasks import GraphClassification, NodeClassification


@settings(max_examples=150, deadline=None)
@given(store=stores, seed=st.integers(0, 2**32 - 1))
def test_cut_of_graphs(store, seed):
    ids = np.arange(store.num_graphs)
    if len(ids) < 2:
        return
    support, target = GraphClassification().cut(store, ids, np.random.default_rng(seed))
    sides = [e.inputs.graph_ids.tolist() for e in (support, target)]
    assert sorted(sides[0] + sides[1]) == ids.tolist()
    assert len(sides[0]) == literal.part_of(len(ids), 0.6)
    for e, side in zip((support, target), sides, strict=True):
        assert e.y.tolist() == store.graph_y[side].tolist()


@settings(max_examples=150, deadline=None)
@given(store=stores, seed=st.integers(0, 2**32 - 1))
def test_cut_of_nodes(store, seed):
    ids = np.arange(store.num_graphs)
    support, target = NodeClassification().cut(store, ids, np.random.default_rng(seed))
    batch = support.inputs
    assert batch is target.inputs
    s, t = support.index.tolist(), target.index.tolist()
    assert sorted(s + t) == list(range(batch.num_nodes))
    assert torch.equal(support.y, batch.node_y[support.index])
    assert torch.equal(target.y, batch.node_y[target.index])
    for start, end in zip(batch.node_ptr.tolist(), batch.node_ptr[1:].tolist(), strict=False):
        mine = [v for v in s if start <= v < end]
        assert len(mine) == literal.part_of(end - start, 0.3)
        assert end - start < 2 or 0 < len(mine) < end - start
        # One of each class in turn: no class may be two ahead of another that still has nodes.
        y = batch.node_y[start:end]
        taken = [(batch.node_y[mine] == c).sum().item() for c in range(3)]
        left = [(y == c).sum().item() - n for c, n in enumerate(taken)]
        for c in range(3):
            assert all(taken[c] - taken[d] <= 1 for d in range(3) if left[d] > 0)


def test_nodes_are_drawn_evenly_within_their_class():
    store = random_store(2, [20], density=0.2)
    counts, rounds, rng = np.zeros(20), 3000, np.random.default_rng(0)
    for _ in range(rounds):
        support, _ = NodeClassification().cut(store, np.array([0]), rng)
        counts[support.index.numpy()] += 1
    for c in range(3):
        mine = counts[store.node_y == c] / rounds
        assert np.ptp(mine) < 0.06
