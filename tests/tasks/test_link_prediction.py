"""Support and target sets of pairs: the properties that Algorithm 4 promises, from empty to complete graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import literal
from helpers import random_store, stores
from same.graphs import GraphStore, Inputs
from same.tasks import Examples, LinkPrediction


def pairs(examples, y):
    return [tuple(sorted(p)) for p in examples.index[:, examples.y == y].T.tolist()]


def per_graph(batch, chosen):
    graph = batch.batch[torch.tensor([u for u, _ in chosen], dtype=torch.int64)]
    return torch.bincount(graph, minlength=batch.num_graphs).tolist()


@settings(max_examples=150, deadline=None)
@given(store=stores, seed=st.integers(0, 2**32 - 1))
def test_cut(store, seed):
    store = store.with_inputs(Inputs.fit(store, np.arange(store.num_graphs), degree=3, walk=3))
    ids = np.arange(store.num_graphs)
    support, target = LinkPrediction().cut(store, ids, np.random.default_rng(seed))
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

    # No input of the encoder depends on the removed edges.
    thinned = GraphStore.build("thinned", x=store.x, sizes=n, edge_index=batch.edges.numpy())
    thinned = thinned.with_inputs(store.inputs).cut(ids)
    torch.testing.assert_close(batch.x, thinned.x)
    torch.testing.assert_close(batch.adjacency.to_dense(), thinned.adjacency.to_dense())


def test_complete_and_nearly_complete_graphs():
    complete = random_store(0, [6, 5], density=1.0)
    support, target = LinkPrediction().cut(complete, np.array([0, 1]), np.random.default_rng(0))
    assert pairs(support, 0) + pairs(target, 0) == []
    nearly = GraphStore.build("nearly", x=np.zeros((4, 1)), sizes=[4], edge_index=[[0, 0, 0, 1, 1], [1, 2, 3, 2, 3]])
    support, target = LinkPrediction().cut(nearly, np.array([0]), np.random.default_rng(0))
    assert pairs(support, 0) + pairs(target, 0) == [(2, 3)]


@pytest.mark.parametrize("density", [0.1, 0.45])
def test_removed_edges_and_negatives_are_drawn_evenly(density):
    """Every edge is removed, and every non-edge drawn, equally often, in both ways of drawing."""
    store = random_store(1, [5, 12, 9], density)
    batch, rounds, rng = store.cut([0, 1, 2]), 3000, np.random.default_rng(0)
    removed, drawn, apart = {}, {}, {}
    for _ in range(rounds):
        support, target = LinkPrediction().cut(store, np.arange(3), rng)
        for counts, chosen in ((removed, pairs(target, 1)), (drawn, pairs(support, 0)), (apart, pairs(target, 0))):
            for p in chosen:
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


def test_the_order_within_a_pair_is_random():
    """Edges are stored with the smaller node first; a concatenated pair must not depend on the order in the file."""
    store = random_store(1, [30, 30], density=0.3)
    rng, first = np.random.default_rng(0), {0: [], 1: []}
    for _ in range(50):
        for examples in LinkPrediction().cut(store, np.arange(2), rng):
            for y in (0, 1):
                u, v = examples.index[:, examples.y == y]
                first[y] += (u < v).tolist()
    for y in (0, 1):
        assert abs(np.mean(first[y]) - 0.5) < 0.02


def test_the_loss_applies_one_sigmoid_to_logits():
    task = LinkPrediction()
    logits, y = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([1.0, 0.0, 0.0])
    p = torch.sigmoid(logits)
    expected = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    torch.testing.assert_close(task.loss(logits, Examples(None, y)), expected)
    assert task.score(logits, Examples(None, y)) == roc_auc_score(y, p) == 1.0


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_symmetric_pairs_do_not_depend_on_direction(pair):
    head = LinkPrediction(pair).head(4)
    h, index = torch.randn(6, 4), torch.tensor([[0, 1], [2, 3]])
    forward, back = (head(h, Examples(None, torch.empty(0), i)) for i in (index, index.flip(0)))
    assert torch.allclose(forward, back) == (pair == "symmetric")
