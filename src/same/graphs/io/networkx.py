"""Conversion from networkx graphs."""

from collections.abc import Iterable
from typing import Any

from same.errors import InputError
from same.graphs.io.pyg import join_graphs
from same.graphs.store import GraphStore


def from_networkx(graphs: Iterable[Any], *, name: str = "graphs", node_y: str = "y") -> GraphStore:
    """Convert networkx graphs to a store; nodes keep their order, and edges are taken as undirected.

    The node attribute `x`, a number or a list of numbers, holds the inputs. The graph attribute `graph.graph["y"]`
    holds the class (whole number, text) or the targets (floats) of a graph.

    Args:
        graphs: the graphs.
        name: name of the set.
        node_y: node attribute with the classes or targets of the nodes.
    """
    items: list[dict[str, Any]] = []
    for i, graph in enumerate(graphs):
        place = {node: k for k, node in enumerate(graph)}
        edges = [(place[u], place[v]) for u, v in graph.edges()]
        item: dict[str, Any] = {"num_nodes": len(graph), "edge_index": list(zip(*edges, strict=True)) or None}
        item["y"] = [graph.graph["y"]] if graph.graph.get("y") is not None else None
        for key, attribute in (("x", "x"), ("node_y", node_y)):
            values = [attributes.get(attribute) for _, attributes in graph.nodes(data=True)]
            missing = [node for node, value in zip(graph, values, strict=True) if value is None]
            if missing and len(missing) < len(values):
                raise InputError(f"{name}: node {missing[0]!r} of graph {i} has no {attribute!r}, others have")
            item[key] = None if missing else values
        items.append(item)
    return join_graphs(name, items)
