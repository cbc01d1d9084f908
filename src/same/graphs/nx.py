"""From networkx."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from same.errors import InputError
from same.graphs.batch import pointers
from same.graphs.store import GraphStore

Array = np.ndarray


def from_networkx(
    graphs: Iterable[Any], *, name: str = "graphs", x: str = "x", node_y: str = "y", graph_y: str = "y"
) -> GraphStore:
    """A store from networkx graphs; nodes keep their order, and edges are taken as undirected.

    Args:
        graphs: the graphs.
        name: what to call the set.
        x: the nodes' attribute that holds what a node shows, a number or a row of numbers.
        node_y: the nodes' attribute that holds their classes (0, 1, …) or targets (floats).
        graph_y: the graphs' own attribute, `graph.graph["y"]`, that holds theirs.

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
        place = {node: start + i for i, node in enumerate(graph)}
        edges.append(np.array([(place[u], place[v]) for u, v in graph.edges()], np.int64).reshape(-1, 2))
    nodes = [(i, node, shown) for i, graph in enumerate(items) for node, shown in graph.nodes(data=True)]
    where = [f"node {node!r} of graph {i}" for i, node, _ in nodes]
    columns = _column(name, x, where, [shown.get(x) for _, _, shown in nodes])
    return GraphStore.build(
        name,
        x=np.empty((len(nodes), 0)) if columns is None else columns.reshape(len(nodes), -1),
        sizes=np.diff(starts),
        edge_index=np.concatenate(edges).T,
        graph_y=_column(
            name, graph_y, [f"graph {i}" for i in range(len(items))], [g.graph.get(graph_y) for g in items]
        ),
        node_y=_column(name, node_y, where, [shown.get(node_y) for _, _, shown in nodes]),
    )


def _column(name: str, key: str, where: Sequence[str], values: Sequence[Any]) -> Array | None:
    """One attribute of all nodes or graphs; either all have it or none."""
    if all(value is None for value in values):
        return None
    for place, value in zip(where, values, strict=True):
        if value is None:
            raise InputError(f"{name}: {place} has no {key!r}, others have")
    try:
        found = np.array(values)
        if found.dtype.kind in "iufb":
            return found
    except ValueError:  # Rows of different lengths.
        pass
    raise InputError(f"{name}: {key!r} must be numbers, the same number of them everywhere")
