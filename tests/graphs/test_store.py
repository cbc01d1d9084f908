import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_store, stores
from same.errors import InputError
from same.graphs.inputs import Inputs
from same.graphs.store import GraphStore


def dense_adjacency(batch) -> torch.Tensor:
    """Â, one edge at a time."""
    a = torch.eye(batch.num_nodes, dtype=torch.float64)
    for u, v in batch.edges.T.tolist():
        a[u, v] = a[v, u] = 1.0
    d = a.sum(1)
    return a / torch.sqrt(d[:, None] * d[None])


def literal_cut(store, ids):
    """What a cut should be, graph by graph."""
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


@settings(max_examples=60, deadline=None)
@given(store=stores, nodes=st.integers(1, 40))
def test_pieces_are_the_same_graphs_in_order(store, nodes):
    pieces = list(store.cut(np.arange(store.num_graphs)).pieces(nodes))
    assert all(piece.num_nodes <= nodes or piece.num_graphs == 1 for piece in pieces)
    start = 0
    for piece in pieces:
        alone = store.cut(np.arange(start, start + piece.num_graphs))
        for name in ("x", "edges", "node_ptr", "edge_ptr", "graph_ids", "graph_y", "node_y"):
            a, b = getattr(piece, name), getattr(alone, name)
            assert (a is None and b is None) or torch.equal(a, b), name
        start += piece.num_graphs
    assert start == store.num_graphs


@settings(max_examples=60, deadline=None)
@given(store=stores, data=st.data())
def test_dropped_edges_are_gone_from_messages_and_structural_inputs(store, data):
    store = store.with_inputs(Inputs.fit(store, np.arange(store.num_graphs), degree=5, walk=4))
    batch = store.cut(np.arange(store.num_graphs))
    drop = torch.tensor(
        data.draw(st.lists(st.booleans(), min_size=batch.edges.shape[1], max_size=batch.edges.shape[1])),
        dtype=torch.bool,
    )
    thinner = batch.drop_edges(drop)
    # The same graphs, built without these edges from the start.
    kept = batch.edges[:, ~drop].numpy()
    fresh = GraphStore.build("fresh", x=store.x, sizes=np.diff(store.node_ptr), edge_index=kept)
    fresh = fresh.with_inputs(store.inputs).cut(np.arange(store.num_graphs))
    torch.testing.assert_close(thinner.x, fresh.x)
    assert torch.equal(thinner.edges, fresh.edges)
    assert torch.equal(thinner.edge_ptr, fresh.edge_ptr)
    torch.testing.assert_close(thinner.adjacency.to_dense(), fresh.adjacency.to_dense())


def test_build_drops_loops_and_repetitions_and_says_so():
    edges = [[0, 1, 1, 0, 2, 1], [1, 0, 2, 1, 2, 0]]
    store = GraphStore.build("toy", x=np.zeros((3, 1)), sizes=[3], edge_index=edges)
    assert store.edges.T.tolist() == [[0, 1], [1, 2]]
    assert store.notes == (
        "1 self-loops were dropped",
        "2 repeated edges were dropped",
        "1 edges came in one direction only; all edges are taken as undirected",
    )


def test_isolated_nodes_and_single_nodes():
    store = GraphStore.build("dots", x=np.ones((3, 2)), sizes=[1, 2], edge_index=np.empty((2, 0)))
    batch = store.cut([0, 1])
    torch.testing.assert_close(batch.adjacency.to_dense(), torch.eye(3))
    assert batch.edges.shape == (2, 0)


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
        ({"graph_y": [0, 1]}, "1 graphs"),
        ({"graph_y": [-1]}, "classes 0..k-1"),
        ({"node_y": [0.0, np.inf]}, "target of node 1 is not finite"),
        ({"node_y": [0.0, 1e300]}, "target of node 1 is not finite"),
        ({"x": [[0.0], [-1e300]]}, "attribute 0 of node 1 is -inf"),
        ({"node_y": [0, 2], "node_classes": ("a", "b")}, "only 2 class names"),
    ],
)
def test_build_refuses(change, message):
    good = {"x": [[0.0], [1.0]], "sizes": [2], "edge_index": [[0], [1]]}
    with pytest.raises(InputError, match=message):
        GraphStore.build("bad", **{**good, **change})


def test_cut_refuses_unknown_ids():
    with pytest.raises(InputError, match="no graph 7"):
        random_store(0, [3, 3]).cut([0, 7])


def same_store(a: GraphStore, b: GraphStore) -> bool:
    arrays = ("x", "node_ptr", "edges", "edge_ptr", "graph_y", "node_y")
    names = ("name", "graph_classes", "node_classes", "notes")
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in arrays) and all(
        getattr(a, k) == getattr(b, k) for k in names
    )


def test_save_and_open_round_trip(tmp_path):
    store = replace(random_store(1, [4, 1, 7]), notes=("a note",))
    store.save(tmp_path / "store")
    opened = GraphStore.open(tmp_path / "store")
    assert isinstance(opened.x.base, np.memmap)
    assert same_store(store, opened)
    assert torch.equal(store.cut([2, 0]).x, opened.cut([2, 0]).x)
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_parts_are_written_as_one(tmp_path):
    whole = random_store(2, [4, 1, 7, 2, 5], density=0.5)
    parts = []
    for ids in ([0, 1], [2], [3, 4]):
        b = whole.cut(ids)
        parts.append(
            replace(
                whole,
                x=b.x.numpy(),
                node_ptr=b.node_ptr.numpy(),
                edges=(b.edges - b.node_ptr[b.batch[b.edges[0]]]).numpy().astype(np.int32),
                edge_ptr=b.edge_ptr.numpy(),
                graph_y=whole.graph_y[ids],
                node_y=b.node_y.numpy().astype(np.int32),
            )
        )
    GraphStore.write(tmp_path / "store", iter(parts))
    assert same_store(whole, GraphStore.open(tmp_path / "store"))


def test_parts_that_do_not_fit_leave_nothing(tmp_path):
    parts = [random_store(0, [3]), random_store(0, [3], columns=4)]
    with pytest.raises(InputError, match="same arrays and columns"):
        GraphStore.write(tmp_path / "store", parts)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="exists already"):
        random_store(0, [3]).save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_open_refuses_what_is_not_whole(tmp_path):
    with pytest.raises(InputError, match=r"store\.json: missing"):
        GraphStore.open(tmp_path)
    folder = tmp_path / "store"
    random_store(0, [3, 4]).save(folder)
    header = json.loads((folder / "store.json").read_text())
    for key, value in [("format", 99), ("arrays", {"x": {"dtype": "|O", "shape": [1]}}), ("arrays", {"../x": {}})]:
        (folder / "store.json").write_text(json.dumps({**header, key: value}))
        with pytest.raises(InputError, match="store"):
            GraphStore.open(folder)
    (folder / "store.json").write_text(json.dumps(header))
    with (folder / "x.bin").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"x\.bin: has \d+ bytes"):
        GraphStore.open(folder)


def test_to_double():
    batch = random_store(0, [5]).cut([0]).to(torch.float64)
    assert batch.x.dtype == torch.float64
    assert batch.adjacency.dtype == torch.float64
    assert batch.edges.dtype == torch.int64


@settings(max_examples=30, deadline=None)
@given(store=stores, data=st.data())
def test_chosen_graphs_are_a_store_of_their_own_and_join_again(store, data):
    store = store.with_inputs(Inputs.fit(store, np.arange(len(store)), degree=3))
    ids = data.draw(st.lists(st.integers(0, len(store) - 1), min_size=1, max_size=8))
    chosen, expected = store[ids], store.cut(ids)
    for name in ("x", "edges", "node_ptr", "edge_ptr", "graph_y", "node_y"):
        assert torch.equal(getattr(chosen.cut(np.arange(len(ids))), name), getattr(expected, name)), name
    assert same_store(GraphStore.join([store[i] for i in ids]), chosen)


def test_graphs_are_chosen_as_from_a_list():
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
    with pytest.raises(InputError, match="attribute 0 of node 1 is inf"):
        GraphStore.build("a", x=np.array([[0.0], [1e300]]), **graphs)
    with pytest.raises(InputError, match="the target of graph 0 is not finite"):
        GraphStore.build("a", x=np.ones((2, 1)), graph_y=np.array([1e300]), **graphs)
