from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_store, stores
from same.graphs import GraphBatch, GraphStore, Inputs, Labels
from same.graphs.batch import Examples


def assert_same_batch(a: GraphBatch, b: GraphBatch) -> None:
    for name in ("x", "edges", "node_ptr", "edge_ptr", "graph_ids"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    assert a.labels.keys() == b.labels.keys()
    for name, column in a.labels.items():
        other = b.labels[name]
        assert (column.level, column.classes) == (other.level, other.classes)
        assert torch.equal(column.y, other.y)
        assert (column.known is None) == (other.known is None)
        assert column.known is None or torch.equal(column.known, other.known)


def with_unknown(store: GraphStore) -> GraphStore:
    """The store with a further column, of which every other node is unknown."""
    known = np.arange(store.num_nodes) % 2 == 0
    column = Labels("node", np.where(known, 1, -1).astype(np.int32), ("a", "b"), known)
    return store.with_labels("half", column)


@settings(max_examples=60, deadline=None)
@given(store=stores, nodes=st.integers(1, 40))
def test_pieces_are_the_same_graphs_in_order(store, nodes):
    store = with_unknown(store)
    pieces = list(store.cut(np.arange(store.num_graphs)).pieces(nodes))
    assert all(piece.num_nodes <= nodes or piece.num_graphs == 1 for piece in pieces)
    start = 0
    for piece in pieces:
        assert_same_batch(piece, store.cut(np.arange(start, start + piece.num_graphs)))
        start += piece.num_graphs
    assert start == store.num_graphs


@settings(max_examples=30, deadline=None)
@given(store=stores, data=st.data())
def test_graphs_taken_from_a_batch_are_a_cut(store, data):
    store = with_unknown(store)
    ids = data.draw(st.lists(st.integers(0, store.num_graphs - 1), min_size=1, max_size=8))
    places = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=8))
    assert_same_batch(store.cut(ids).take(np.array(places, int)), store.cut(np.array(ids)[np.array(places, int)]))


@settings(max_examples=30, deadline=None)
@given(store=stores, data=st.data())
def test_concatenated_batches_are_one_cut(store, data):
    store = with_unknown(store)
    ids = data.draw(st.lists(st.integers(0, store.num_graphs - 1), min_size=2, max_size=8))
    joined, sizes = GraphBatch.concat([store.cut(ids[:1]), store.cut(ids[1:])])
    assert_same_batch(joined, store.cut(ids))
    assert sizes == [store.cut(ids[:1]).num_nodes, store.cut(ids[1:]).num_nodes]


@settings(max_examples=60, deadline=None)
@given(store=stores, data=st.data())
def test_dropped_edges_leave_messages_and_structural_inputs(store, data):
    store = store.with_inputs(Inputs.fit(store, np.arange(store.num_graphs), degree=5, walk=4))
    batch = store.cut(np.arange(store.num_graphs))
    drop = torch.tensor(
        data.draw(st.lists(st.booleans(), min_size=batch.edges.shape[1], max_size=batch.edges.shape[1])),
        dtype=torch.bool,
    )
    thinned = batch.drop_edges(drop)
    # The same graphs, built without these edges from the start.
    kept = batch.edges[:, ~drop].numpy()
    fresh = GraphStore.build("fresh", x=store.x, sizes=np.diff(store.node_ptr), edge_index=kept)
    fresh = fresh.with_inputs(store.inputs).cut(np.arange(store.num_graphs))
    torch.testing.assert_close(thinned.x, fresh.x)
    assert torch.equal(thinned.edges, fresh.edges)
    assert torch.equal(thinned.edge_ptr, fresh.edge_ptr)
    torch.testing.assert_close(thinned.adjacency.to_dense(), fresh.adjacency.to_dense())
    assert torch.equal(thinned.node_y, batch.node_y)


def test_isolated_and_single_nodes():
    store = GraphStore.build("dots", x=np.ones((3, 2)), sizes=[1, 2], edge_index=np.empty((2, 0)))
    batch = store.cut([0, 1])
    torch.testing.assert_close(batch.adjacency.to_dense(), torch.eye(3))
    assert batch.edges.shape == (2, 0)


def test_to_double_changes_floats_only():
    store = with_unknown(random_store(0, [5])).with_labels("target", np.ones(5))
    batch = store.cut([0]).to(torch.float64)
    assert batch.x.dtype == batch.adjacency.dtype == batch.labels["target"].y.dtype == torch.float64
    assert batch.edges.dtype == batch.node_y.dtype == torch.int64
    assert batch.labels["half"].known.dtype == torch.bool


@pytest.mark.parametrize("level", ["graph", "node"])
def test_labels_by_name_and_level(level):
    batch = with_unknown(random_store(0, [5, 3])).cut([1])
    assert batch.column(level).y is (batch.graph_y if level == "graph" else batch.node_y)
    assert batch.column(level, "nothing") is None
    assert (batch.column(level, "half") is None) == (level == "graph")


def test_examples_stand_for_all_rows_and_cannot_be_changed():
    examples = Examples("inputs", torch.ones(3))
    assert examples.index is None
    assert examples.embeddings is None
    with pytest.raises(FrozenInstanceError):
        examples.y = torch.zeros(3)
