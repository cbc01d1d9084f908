import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from torch_geometric.utils import to_networkx

from helpers import random_store, stores
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
    for key in ("x", "node_ptr", "edges", "edge_ptr", "graph_y", "node_y"):
        np.testing.assert_array_equal(getattr(back, key), getattr(store, key))


def test_nodes_of_any_name_keep_their_order_and_directions_do_not_matter():
    graph = nx.DiGraph()
    graph.add_node("b", x=[2.0, 0.0])
    graph.add_node("a", x=[1.0, 0.0])
    graph.add_edges_from([("b", "a"), ("a", "b"), ("a", "a")])
    store = as_store(graph)
    assert store.x[:, 0].tolist() == [2.0, 1.0]
    assert store.edges.T.tolist() == [[0, 1]]
    assert store.notes == ("1 self-loops were dropped",)


def test_attributes_are_for_all_or_for_none():
    assert as_store([nx.path_graph(3)]).x.shape == (3, 0)
    graph = nx.path_graph(3)
    graph.nodes[0]["x"] = 1.0
    with pytest.raises(InputError, match="node 1 of graph 0 has no 'x', others have"):
        from_networkx([graph])
    nx.set_node_attributes(graph, {0: [1.0], 1: [1.0, 2.0], 2: [0.0]}, "x")
    with pytest.raises(InputError, match="'x' must be numbers"):
        from_networkx([graph])
    nx.set_node_attributes(graph, "carbon", "x")
    with pytest.raises(InputError, match="'x' must be numbers"):
        from_networkx([graph])
    with pytest.raises(InputError, match="there are no graphs"):
        from_networkx([])


def test_all_forms_are_one(tmp_path):
    store = random_store(0, [5, 7, 9])
    store.save(tmp_path / "set")
    for form in (store, [store[i] for i in range(3)], to_pyg(store), str(tmp_path / "set"), tmp_path / "set"):
        assert as_store(form).node_ptr.tolist() == store.node_ptr.tolist()
        np.testing.assert_array_equal(as_store(form).x, store.x)


@pytest.mark.parametrize("graphs", [3, [], [1, 2], np.ones((3, 4)), None, [nx.path_graph(2), 1]], ids=range(6))
def test_what_are_no_graphs(graphs):
    with pytest.raises(InputError, match="give PyG data, networkx graphs, a GraphStore"):
        as_store(graphs)
