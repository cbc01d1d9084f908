from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_store, stores
from same.errors import InputError
from same.graphs import GraphStore, Inputs, Labels


def dense_adjacency(batch) -> torch.Tensor:
    """Â, one edge at a time."""
    a = torch.eye(batch.num_nodes, dtype=torch.float64)
    for u, v in batch.edges.T.tolist():
        a[u, v] = a[v, u] = 1.0
    d = a.sum(1)
    return a / torch.sqrt(d[:, None] * d[None])


def literal_cut(store, ids):
    """The expected cut, graph by graph."""
    x, edges, graph, start = [], [], [], 0
    for place, g in enumerate(ids):
        a, b = store.node_ptr[g], store.node_ptr[g + 1]
        x.append(store.x[a:b])
        edges += [(u + start, v + start) for u, v in store.edges[:, store.edge_ptr[g] : store.edge_ptr[g + 1]].T]
        graph += [place] * (b - a)
        start += b - a
    return np.concatenate(x), edges, graph


@settings(max_examples=60, deadline=None)
@given(store=stores, data=st.data())
def test_cut_equals_graph_by_graph(store, data):
    ids = data.draw(st.lists(st.integers(0, store.num_graphs - 1), min_size=1, max_size=8))
    batch = store.cut(ids)
    x, edges, graph = literal_cut(store, ids)
    np.testing.assert_array_equal(batch.x, x)
    assert [tuple(e) for e in batch.edges.T.tolist()] == edges
    assert batch.batch.tolist() == graph
    np.testing.assert_array_equal(batch.graph_y, store.graph_y[ids])
    assert torch.equal(batch.edge_ptr, torch.searchsorted(batch.edges[0].contiguous(), batch.node_ptr))
    torch.testing.assert_close(batch.adjacency.to_dense(), dense_adjacency(batch).float())
    assert batch.edge_index.shape[1] == 2 * len(edges)


def test_build_drops_loops_and_repeated_edges_with_a_note():
    edges = [[0, 1, 1, 0, 2, 1], [1, 0, 2, 1, 2, 0]]
    store = GraphStore.build("toy", x=np.zeros((3, 1)), sizes=[3], edge_index=edges)
    assert store.edges.T.tolist() == [[0, 1], [1, 2]]
    assert store.notes == (
        "1 self-loops were dropped",
        "2 repeated edges were dropped",
        "1 edges came in one direction only; all edges are taken as undirected",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [[0.0]]}, "2 nodes"),
        ({"x": [[0.0], [np.nan]]}, "attribute 0 of node 1 is nan"),
        ({"sizes": [0, 2]}, "graph 0 has no nodes"),
        ({"sizes": []}, "no graphs"),
        ({"edge_index": [[0, 1], [1, 0], [0, 1]]}, r"edge_index has the shape \(3, 2\), expected \(2, edges\)"),
        ({"edge_index": [[0], [2]]}, "node 2, but there are only 2"),
        ({"edge_index": [[0], [-1]]}, "node -1"),
        ({"sizes": [1, 1]}, "joins node 0 of graph 0 and node 1 of graph 1"),
        ({"graph_y": [0, 1]}, "bad: y has 2 labels, but there are 1 graphs"),
        ({"graph_y": Labels("graph", np.array([-1], np.int32), ("a",))}, "bad: y: has the code -1"),
        ({"node_y": [0.0, np.inf]}, "target of node 1 is not finite"),
        ({"node_y": [0.0, 1e300]}, "target of node 1 is not finite"),
        ({"x": [[0.0], [-1e300]]}, "attribute 0 of node 1 is -1e\\+300; attributes must be finite in float32"),
        ({"x": [["a"], ["b"]]}, "x must hold plain numbers"),
        ({"x": [[1j], [0]]}, "x must hold plain numbers"),
        ({"labels": {"z": [1, 2, 3]}}, "bad: z has 3 labels, but there are 1 graphs"),
        ({"node_y": Labels("node", np.array([0, 2], np.int32), ("a", "b"))}, "bad: node_y: has the code 2"),
    ],
)
def test_build_refuses(change, message):
    good = {"x": [[0.0], [1.0]], "sizes": [2], "edge_index": [[0], [1]]}
    with pytest.raises(InputError, match=message):
        GraphStore.build("bad", **{**good, **change})


def test_cut_refuses_unknown_ids():
    with pytest.raises(InputError, match="no graph 7"):
        random_store(0, [3, 3]).cut([0, 7])


def assert_same_store(a: GraphStore, b: GraphStore) -> None:
    for key in ("x", "node_ptr", "edges", "edge_ptr"):
        np.testing.assert_array_equal(getattr(a, key), getattr(b, key))
    assert (a.name, a.notes, list(a.labels)) == (b.name, b.notes, list(b.labels))
    for name, column in a.labels.items():
        other = b.labels[name]
        assert (column.level, column.classes, column.y.dtype) == (other.level, other.classes, other.y.dtype)
        np.testing.assert_array_equal(column.y, other.y)
        np.testing.assert_array_equal(column.known, other.known)


@settings(max_examples=30, deadline=None)
@given(store=stores, data=st.data())
def test_chosen_graphs_are_a_store_and_join_again(store, data):
    store = store.with_inputs(Inputs.fit(store, np.arange(len(store)), degree=3))
    ids = data.draw(st.lists(st.integers(0, len(store) - 1), min_size=1, max_size=8))
    chosen, expected = store[ids], store.cut(ids)
    for name in ("x", "edges", "node_ptr", "edge_ptr", "graph_y", "node_y"):
        assert torch.equal(getattr(chosen.cut(np.arange(len(ids))), name), getattr(expected, name)), name
    assert_same_store(GraphStore.join([store[i] for i in ids]), replace(chosen, inputs=None))


def test_graphs_are_indexed_like_a_list():
    store = random_store(0, [3, 4, 5, 6])
    assert len(list(store)) == 4
    assert store[-1].num_nodes == 6
    assert np.diff(store[1:3].node_ptr).tolist() == [4, 5]
    assert np.diff(store[np.array([True, False, False, True])].node_ptr).tolist() == [3, 6]
    with pytest.raises(IndexError):
        store[4]
    with pytest.raises(InputError, match="no graphs were chosen"):
        store[[False] * 4]
    with pytest.raises(InputError, match="do not have the same columns"):
        GraphStore.join([store, random_store(0, [3], columns=2)])


def test_numbers_beyond_single_precision_are_refused():
    graphs = {"sizes": [2], "edge_index": [[0], [1]]}
    with pytest.raises(InputError, match=r"attribute 0 of node 1 is 1e\+300"):
        GraphStore.build("a", x=np.array([[0.0], [1e300]]), **graphs)
    with pytest.raises(InputError, match="the target of graph 0 is not finite"):
        GraphStore.build("a", x=np.ones((2, 1)), graph_y=np.array([1e300]), **graphs)


def test_labels_are_columns():
    store = random_store(0, [3, 4]).with_labels("mass", [0.5, 1.5]).with_labels("element", list("CCOCNOC"))
    assert {name: column.level for name, column in store.labels.items()} == {
        "y": "graph",
        "node_y": "node",
        "mass": "graph",
        "element": "node",
    }
    assert store.labels["element"].classes == ("C", "N", "O")
    batch = store.cut([1])
    assert batch.labels["element"].y.tolist() == [0, 1, 2, 0]
    assert batch.labels["mass"].y.dtype == torch.float32
    built = GraphStore.build("again", x=store.x, sizes=[3, 4], edge_index=[[], []], labels=store.labels)
    assert_same_store(replace(built, name="random", edges=store.edges, edge_ptr=store.edge_ptr), store)


def test_the_default_columns_have_views():
    store = random_store(0, [3, 4])
    assert store.graph_y is store.labels["y"].y
    assert store.node_y is store.labels["node_y"].y
    assert (store.graph_classes, store.node_classes) == ((0, 1), (0, 1, 2))
    bare = replace(store, labels={})
    assert bare.graph_y is bare.node_y is bare.graph_classes is bare.node_classes is None


def test_graphs_and_nodes_of_each_class_are_counted():
    store = replace(random_store(0, [1, 2]), labels={})
    assert store.counts("graph") == store.with_labels("y", [0.5, 1.0]).counts("graph") == {}
    assert store.with_labels("y", Labels.of(["b", "b"], "graph").matched(("a", "b"))).counts("graph") == {
        "a": 0,
        "b": 2,
    }
    half = Labels("node", np.array([0, -1, 0], np.int32), (7,), np.array([True, False, True]))
    assert store.with_labels("node_y", half).counts("node") == {7: 2}


def test_as_many_values_as_nodes_belong_to_nodes_unless_every_graph_has_one_node():
    dots = {"x": np.ones((2, 1)), "edge_index": [[], []]}
    assert GraphStore.build("a", sizes=[2], labels={"y": [0, 1]}, **dots).node_y.tolist() == [0, 1]
    assert GraphStore.build("a", sizes=[1, 1], labels={"y": [0, 1]}, **dots).graph_y.tolist() == [0, 1]


def test_new_labels_of_graphs_do_not_hide_those_of_nodes():
    store = GraphStore.build("a", x=np.ones((3, 1)), sizes=[1, 2], edge_index=[[], []], labels={"y": [5, 6, 7]})
    changed = store.with_labels("y", Labels.of([True, False], "graph"))
    assert changed.graph_classes == (False, True)
    assert changed.node_classes == (5, 6, 7)


def test_classes_are_joined_by_value():
    dot = {"x": np.ones((1, 1)), "sizes": [1], "edge_index": [[], []]}
    joined = GraphStore.join([GraphStore.build("a", graph_y=[value], **dot) for value in (7, 3, 7)])
    assert joined.labels["y"].values.tolist() == [7, 3, 7]
    with pytest.raises(InputError, match="do not have the same columns"):
        GraphStore.join([GraphStore.build("a", graph_y=[0.5], **dot), GraphStore.build("a", graph_y=[1], **dot)])


def test_attributes_keep_their_precision_and_batches_are_single():
    time = np.array([[1_700_000_001], [1_700_000_002]])
    store = GraphStore.build("times", x=time, sizes=[2], edge_index=[[0], [1]])
    assert store.x.tolist() == time.tolist()
    assert store.cut([0]).x.dtype == torch.float32
    single = np.ones((2, 1), np.float32)
    assert GraphStore.build("ones", x=single, sizes=[2], edge_index=[[0], [1]]).x is single
