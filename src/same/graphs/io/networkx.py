"""Conversion from networkx graphs."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from same.errors import InputError
from same.graphs.flat import Array, pointers
from same.graphs.store import GraphStore


def from_networkx(
    graphs: Iterable[Any], *, name: str = "graphs", x: str = "x", node_y: str = "y", graph_y: str = "y"
) -> GraphStore:
    """Convert networkx graphs to a store; nodes keep their order, and edges are taken as undirected.

    Args:
        graphs: the graphs.
        name: name of the set.
        x: node attribute with the inputs, a number or a list of numbers.
        node_y: node attribute with the classes (whole numbers, text) or targets (floats) of the nodes.
        graph_y: graph attribute, `graph.graph["y"]`, with those of the graphs.

    >>> import networkx as nx
    >>> graph = nx.path_graph(3)
    >>> nx.set_node_attributes(graph, 1.0, "x")
    >>> from_networkx([graph, graph])
    GraphStore('graphs', graphs=2, nodes=6, edges=4, attributes=1)
    """
    items = list(graphs)
    starts = pointers(np.array([len(graph) for graph in items], np.int64))
    edges = [np.empty((0, 2), np.int64)]
    for graph, start in zip(items, starts.tolist(), strict=False):
        index = {node: start + i for i, node in enumerate(graph)}
        edges.append(np.array([(index[u], index[v]) for u, v in graph.edges()], np.int64).reshape(-1, 2))
    nodes = [(i, node, attributes) for i, graph in enumerate(items) for node, attributes in graph.nodes(data=True)]
    of_nodes = [f"node {node!r} of graph {i}" for i, node, _ in nodes]
    of_graphs = [f"graph {i}" for i in range(len(items))]
    rows = _values(name, x, of_nodes, [attributes.get(x) for _, _, attributes in nodes])
    return GraphStore.build(
        name,
        x=np.empty((len(nodes), 0), np.float32) if rows is None else _numbers(name, x, rows).reshape(len(nodes), -1),
        sizes=np.diff(starts),
        edge_index=np.concatenate(edges).T,
        graph_y=_values(name, graph_y, of_graphs, [graph.graph.get(graph_y) for graph in items]),
        node_y=_values(name, node_y, of_nodes, [attributes.get(node_y) for _, _, attributes in nodes]),
    )


def _values(name: str, key: str, where: Sequence[str], values: list[Any]) -> list[Any] | None:
    """One attribute of all nodes or graphs; either all have it or none."""
    if all(value is None for value in values):
        return None
    for place, value in zip(where, values, strict=True):
        if value is None:
            raise InputError(f"{name}: {place} has no {key!r}, others have")
    return values


def _numbers(name: str, key: str, values: list[Any]) -> Array:
    try:
        array = np.array(values)
        if array.dtype.kind in "iufb":
            return array
    except ValueError:  # Rows of different lengths.
        pass
    raise InputError(f"{name}: {key!r} must be numbers, the same number of them everywhere")
