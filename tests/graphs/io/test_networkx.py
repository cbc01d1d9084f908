import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from torch_geometric.utils import to_networkx

from helpers import stores
from same.errors import InputError
from same.graphs import as_store, from_networkx, to_pyg


def networks(store) -> list[nx.Graph]:
    graphs = []
    for data in to_pyg(store):
        graph = to_networkx(data, node_attrs=["x", "node_y"], to_undirected=True)
        graph.graph["y"] = int(data.y)
        graphs.append(graph)
    return graphs


@settings(max_examples=20, deadline=None)
@given(store=stores)
def test_round_trip(store):
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


def test_labels_may_be_text():
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
