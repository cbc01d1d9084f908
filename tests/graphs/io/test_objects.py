import zipfile

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.utils import to_networkx

from helpers import random_store, stores
from same.errors import InputError
from same.graphs import as_store, from_networkx, from_pyg, load, to_pyg


@settings(max_examples=30, deadline=None)
@given(store=stores)
def test_round_trip(store):
    back = from_pyg(to_pyg(store), name=store.name)
    for key in ("x", "node_ptr", "edges", "edge_ptr"):
        np.testing.assert_array_equal(getattr(back, key), getattr(store, key))
    assert list(back.labels) == list(store.labels)
    for name, column in store.labels.items():
        assert back.labels[name].level == column.level
        np.testing.assert_array_equal(back.labels[name].values, column.values)


def test_values_of_any_type_come_back():
    store = random_store(0, [3, 2])
    columns = {"y": ["ring", "chain"], "big": [2**40, -1], "flag": [True, False], "node_y": list("CCONN")}
    for name, values in columns.items():
        store = store.with_labels(name, values)
    back = from_pyg(to_pyg(store), labels=("big", "flag"))
    assert {name: column.values.tolist() for name, column in back.labels.items()} == columns
    assert back.labels["y"].classes == ("chain", "ring")
    codes = to_pyg(store, codes=True)
    assert [int(data.y) for data in codes] == [1, 0]
    assert codes[0].node_y.tolist() == [0, 0, 2]


def test_pyg_sees_ordinary_data():
    (data,) = to_pyg(random_store(0, [6], density=0.5))
    data.validate(raise_on_error=True)
    assert data.is_undirected()
    assert data.y.shape == (1,)


PATH = torch.tensor([[0, 1], [1, 2]])


def test_labels_of_nodes_in_y_and_one_hot():
    by_node = [Data(x=torch.ones(3, 1), edge_index=PATH, y=torch.tensor([0, 1, 0]))] * 2
    assert from_pyg(by_node).node_y.tolist() == [0, 1, 0] * 2
    assert from_pyg(by_node).graph_y is None
    assert from_pyg(by_node).labels["y"].level == "node"

    x = torch.tensor([[0.5, 1, 0], [0.25, 0, 1], [0.75, 0, 1]])
    store = from_pyg([Data(x=x, edge_index=PATH, y=torch.tensor([7]))], node_labels=2)
    assert store.node_y.tolist() == [0, 1, 1]
    assert store.x[:, 0].tolist() == [0.5, 0.25, 0.75]
    assert (store.graph_y.tolist(), store.graph_classes) == ([0], (7,))
    assert store.node_classes == (0, 1)


def test_floats_are_targets_and_columns_of_one_are_flat():
    store = from_pyg([Data(x=torch.ones(3, 1), edge_index=PATH, y=torch.tensor([[0.5]]))] * 2)
    assert store.graph_y.tolist() == [0.5, 0.5]
    assert store.graph_classes is None


def test_a_single_graph_and_edges_as_a_matrix():
    assert from_pyg(Data(x=torch.ones(3, 1), edge_index=PATH)).num_graphs == 1
    with pytest.raises(InputError, match="graph 0 has adj_t; give edges as edge_index"):
        from_pyg([Data(x=torch.ones(3, 1), adj_t=torch.eye(3).to_sparse_csr())])


def test_graphs_without_features():
    store = from_pyg([Data(edge_index=PATH, num_nodes=5, y=torch.tensor([0]))])
    assert store.x.shape == (5, 0)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "there are no graphs"),
        ([Data(x=torch.ones(0, 1))], "graph 0 has no nodes"),
        ([Data(x=torch.ones(2, 1), edge_index=PATH)], r"edge_index of graph 0 is not .* 0\.\.1"),
        ([Data(x=torch.ones(3, 1)), Data(x=torch.ones(3, 2))], "x of graph 1 has the columns"),
        ([Data(x=torch.ones(3, 1), y=torch.tensor([1])), Data(x=torch.ones(3, 1))], "graph 1 has no y, others have"),
        ([Data(x=torch.full((3, 1), torch.nan))], "must be finite"),
        ([Data(x=torch.ones(3, 1), node_y=torch.ones(2))], "node_y of graph 0 has 2 rows, expected 3"),
        ([Data(x=torch.ones(3, 1), y="a"), Data(x=torch.ones(3, 1), y=1)], "graphs: y: labels of different types"),
        ([Data(x=torch.ones(3, 1), y=b"a")], r"y of graph 0 must be plain numbers or text \(.S1\)"),
    ],
)
def test_bad_graphs(graphs, message):
    with pytest.raises(InputError, match=message):
        from_pyg(graphs)


def test_one_hot_columns_must_be_one_hot():
    with pytest.raises(InputError, match="not one-hot"):
        from_pyg([Data(x=torch.full((3, 2), 0.5), edge_index=PATH)], node_labels=2)


def test_enzymes_of_pyg_is_our_enzymes(real_sets, tmp_path):
    with zipfile.ZipFile(real_sets / "ENZYMES.zip") as archive:
        (tmp_path / "ENZYMES" / "raw").mkdir(parents=True)
        for member in archive.infolist():
            (tmp_path / "ENZYMES" / "raw" / member.filename.split("/")[-1]).write_bytes(archive.read(member))
    theirs = from_pyg(TUDataset(str(tmp_path), "ENZYMES", use_node_attr=True))
    ours = load("ENZYMES", real_sets)
    for key in ("node_ptr", "edges", "edge_ptr", "graph_y", "node_y"):
        np.testing.assert_array_equal(getattr(theirs, key), getattr(ours, key))
    np.testing.assert_array_equal(theirs.x, ours.x.astype(np.float32))


def test_named_columns_must_exist():
    with pytest.raises(InputError, match="graphs: the graphs have no mass"):
        from_pyg([Data(x=torch.ones(3, 1))], labels=("mass",))


def test_attributes_keep_their_precision():
    times = torch.tensor([[1_700_000_001], [1_700_000_002]])
    assert from_pyg([Data(x=times)]).x.tolist() == times.tolist()
    assert from_pyg([Data(x=times.double() + 0.25)]).x.tolist() == (times.double() + 0.25).tolist()
    assert from_pyg([Data(x=torch.ones(2, 1))]).x.dtype == np.float32


def networks(store) -> list[nx.Graph]:
    graphs = []
    for data in to_pyg(store):
        graph = to_networkx(data, node_attrs=["x", "node_y"], to_undirected=True)
        graph.graph["y"] = int(data.y)
        graphs.append(graph)
    return graphs


@settings(max_examples=20, deadline=None)
@given(store=stores)
def test_round_trip_through_networkx(store):
    back = from_networkx(networks(store), name=store.name, node_y="node_y")
    for key in ("x", "node_ptr", "edges", "edge_ptr"):
        np.testing.assert_array_equal(getattr(back, key), getattr(store, key))
    for name in ("y", "node_y"):
        np.testing.assert_array_equal(back.labels[name].values, store.labels[name].values)


def test_named_nodes_keep_their_order_and_directions_do_not_matter():
    graph = nx.DiGraph()
    graph.add_node("b", x=[2.0, 0.0])
    graph.add_node("a", x=[1.0, 0.0])
    graph.add_edges_from([("b", "a"), ("a", "b"), ("a", "a")])
    store = as_store(graph)
    assert store.x[:, 0].tolist() == [2.0, 1.0]
    assert store.edges.T.tolist() == [[0, 1]]
    assert store.notes == ("1 self-loops were dropped",)


def test_attributes_belong_to_all_nodes_or_to_none():
    assert as_store([nx.path_graph(3)]).x.shape == (3, 0)
    graph = nx.path_graph(3)
    graph.nodes[0]["x"] = 1.0
    with pytest.raises(InputError, match="node 1 of graph 0 has no 'x', others have"):
        from_networkx([graph])
    nx.set_node_attributes(graph, {0: [1.0], 1: [1.0, 2.0], 2: [0.0]}, "x")
    with pytest.raises(InputError, match="x of graph 0 must be plain numbers"):
        from_networkx([graph])
    nx.set_node_attributes(graph, "carbon", "x")
    with pytest.raises(InputError, match="x of graph 0 must be plain numbers"):
        from_networkx([graph])
    with pytest.raises(InputError, match="there are no graphs"):
        from_networkx([])


def test_networkx_labels_may_be_text():
    graphs = [nx.path_graph(2), nx.path_graph(3)]
    for graph, y in zip(graphs, ("ring", "chain"), strict=True):
        graph.graph["y"] = y
        nx.set_node_attributes(graph, "C", "y")
    store = from_networkx(graphs)
    assert store.graph_classes == ("chain", "ring")
    assert store.node_classes == ("C",)
    graphs[1].nodes[2]["y"] = 7
    with pytest.raises(InputError, match="graphs: node_y: labels of different types"):
        from_networkx(graphs)
