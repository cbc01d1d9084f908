"""Support and target sets: what Algorithm 4 promises, on random graphs from empty to complete."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from helpers import random_store, stores
from same.graphs import GraphStore, Inputs
from same.tasks import GraphClassification, LinkPrediction, NodeClassification, NodeRegression

seeds = st.integers(0, 2**32 - 1)
many = settings(max_examples=150, deadline=None)


def pairs(examples, y):
    return [tuple(sorted(p)) for p in examples.index[:, examples.y == y].T.tolist()]


def per_graph(batch, found):
    graph = batch.batch[torch.tensor([u for u, _ in found], dtype=torch.int64)]
    return torch.bincount(graph, minlength=batch.num_graphs).tolist()


@many
@given(store=stores, seed=seeds)
def test_gc(store, seed):
    ids = np.arange(store.num_graphs)
    if len(ids) < 2:
        return
    support, target = GraphClassification(store).cut(store, ids, np.random.default_rng(seed))
    sides = [e.inputs.graph_ids.tolist() for e in (support, target)]
    assert sorted(sides[0] + sides[1]) == ids.tolist()
    assert len(sides[0]) == literal.part_of(len(ids), 0.6)
    for e, side in zip((support, target), sides, strict=True):
        assert e.y.tolist() == store.graph_y[side].tolist()


@many
@given(store=stores, seed=seeds)
def test_nc(store, seed):
    ids = np.arange(store.num_graphs)
    support, target = NodeClassification(store).cut(store, ids, np.random.default_rng(seed))
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


@many
@given(store=stores, seed=seeds)
def test_lp(store, seed):
    store = store.with_inputs(Inputs.fit(store, np.arange(store.num_graphs), degree=3, walk=3))
    ids = np.arange(store.num_graphs)
    support, target = LinkPrediction(store).cut(store, ids, np.random.default_rng(seed))
    whole, batch = store.cut(ids), support.inputs
    assert batch is target.inputs
    edges = {tuple(e) for e in whole.edges.T.tolist()}
    kept = {tuple(e) for e in batch.edges.T.tolist()}
    removed = set(pairs(target, 1))

    # Positives: the remaining edges, which carry messages, and the removed ones, which do not.
    assert set(pairs(support, 1)) == kept
    assert kept | removed == edges
    assert not kept & removed
    m = whole.edge_ptr.diff().tolist()
    assert per_graph(whole, sorted(removed)) == [literal.part_of(k, 0.2) for k in m]

    # Negatives: no edges, no repeats, inside a graph, as many as edges or all there are.
    negatives = pairs(support, 0) + pairs(target, 0)
    assert len(set(negatives)) == len(negatives)
    assert not set(negatives) & edges
    assert all(u < v and whole.batch[u] == whole.batch[v] for u, v in negatives)
    n = whole.node_ptr.diff().tolist()
    wanted = [min(k, a * (a - 1) // 2 - k) for a, k in zip(n, m, strict=True)]
    assert per_graph(whole, negatives) == wanted
    assert per_graph(whole, pairs(target, 0)) == [literal.part_of(k, 0.2) for k in wanted]

    # Nothing that is seen of the nodes knows of the removed edges.
    blind = GraphStore.build("blind", x=store.x, sizes=n, edge_index=batch.edges.numpy())
    blind = blind.with_inputs(store.inputs).cut(ids)
    torch.testing.assert_close(batch.x, blind.x)
    torch.testing.assert_close(batch.adjacency.to_dense(), blind.adjacency.to_dense())


def test_complete_and_nearly_complete_graphs():
    complete = random_store(0, [6, 5], density=1.0)
    support, target = LinkPrediction(complete).cut(complete, np.array([0, 1]), np.random.default_rng(0))
    assert pairs(support, 0) + pairs(target, 0) == []
    nearly = GraphStore.build("nearly", x=np.zeros((4, 1)), sizes=[4], edge_index=[[0, 0, 0, 1, 1], [1, 2, 3, 2, 3]])
    support, target = LinkPrediction(nearly).cut(nearly, np.array([0]), np.random.default_rng(0))
    assert pairs(support, 0) + pairs(target, 0) == [(2, 3)]


@pytest.mark.parametrize("density", [0.1, 0.45])
def test_removed_edges_and_negatives_are_drawn_evenly(density):
    """Each edge is removed, and each non-edge is drawn, as often as any other, whichever way of drawing is taken."""
    store = random_store(1, [5, 12, 9], density)
    batch, rounds, rng = store.cut([0, 1, 2]), 3000, np.random.default_rng(0)
    removed, drawn, apart = {}, {}, {}
    for _ in range(rounds):
        support, target = LinkPrediction(store).cut(store, np.arange(3), rng)
        for counts, found in ((removed, pairs(target, 1)), (drawn, pairs(support, 0)), (apart, pairs(target, 0))):
            for p in found:
                counts[p] = counts.get(p, 0) + 1
    for g in range(3):
        start, end = batch.node_ptr[g : g + 2].tolist()
        edges = {tuple(e) for e in batch.edges.T.tolist() if start <= e[0] < end}
        others = {(u, v) for u in range(start, end) for v in range(u + 1, end)} - edges
        wanted = min(len(edges), len(others))
        far = literal.part_of(wanted, 0.2)
        for counts, which, expected in (
            (removed, edges, literal.part_of(len(edges), 0.2) / max(len(edges), 1)),
            (drawn, others, (wanted - far) / max(len(others), 1)),
            (apart, others, far / max(len(others), 1)),
        ):
            deviation = 5 * np.sqrt(max(expected * (1 - expected), 1e-9) / rounds)
            for p in which:
                assert abs(counts.get(p, 0) / rounds - expected) <= deviation + 1e-9


def test_which_node_of_a_pair_comes_first_tells_nothing():
    """Edges are stored with the smaller node first; a concatenated pair must not show the order in the file."""
    store = random_store(1, [30, 30], density=0.3)
    rng, first = np.random.default_rng(0), {0: [], 1: []}
    for _ in range(50):
        for examples in LinkPrediction(store).cut(store, np.arange(2), rng):
            for y in (0, 1):
                u, v = examples.index[:, examples.y == y]
                first[y] += (u < v).tolist()
    for y in (0, 1):
        assert abs(np.mean(first[y]) - 0.5) < 0.02


def test_nodes_are_drawn_evenly_within_their_class():
    store = random_store(2, [20], density=0.2)
    counts, rounds, rng = np.zeros(20), 3000, np.random.default_rng(0)
    for _ in range(rounds):
        support, _ = NodeClassification(store).cut(store, np.array([0]), rng)
        counts[support.index.numpy()] += 1
    for c in range(3):
        mine = counts[store.node_y == c] / rounds
        assert np.ptp(mine) < 0.06


def test_node_regression_takes_any_nodes():
    store = random_store(0, [10, 10])
    y = np.arange(20, dtype=np.float32)
    store = GraphStore.build("r", x=store.x, sizes=[10, 10], edge_index=np.empty((2, 0)), node_y=y)
    support, target = NodeRegression(store).cut(store, np.array([0, 1]), np.random.default_rng(0))
    assert len(support.index) == 6
    assert sorted([*support.y.tolist(), *target.y.tolist()]) == y.tolist()
