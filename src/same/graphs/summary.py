"""Summary of a set of graphs."""

from collections import defaultdict
from typing import Any

import numpy as np

from same.graphs.flat import Array
from same.graphs.io.download import KNOWN, Contents
from same.graphs.labels import Value
from same.graphs.splits import PARTS, rare_classes
from same.graphs.store import GraphStore


def summarise(store: GraphStore) -> dict[str, Any]:
    """Summary of a set as plain values: counts, degrees, class balance and oddities.

    >>> from same.graphs.planted import planted
    >>> summarise(planted())["graph_classes"]
    {'alike': 100, 'unlike': 100, 'any': 100}
    """
    edges = store.edges + np.repeat(store.node_ptr[:-1], np.diff(store.edge_ptr))
    degrees = np.bincount(edges.reshape(-1), minlength=store.num_nodes)
    expected = KNOWN.get(store.name)
    return {
        "name": store.name,
        "graphs": store.num_graphs,
        "nodes": store.num_nodes,
        "edges": store.num_edges,
        "attributes": store.x.shape[1],
        "nodes_per_graph": _spread(np.diff(store.node_ptr)),
        "degree": _spread(degrees),
        "isolated_nodes": int((degrees == 0).sum()),
        "graph_classes": _balance(store.graph_y, store.graph_classes),
        "node_classes": _balance(store.node_y, store.node_classes),
        "constant_columns": np.flatnonzero((store.x == store.x[:1]).all(axis=0)).tolist(),
        "duplicate_columns": _duplicate_columns(store.x),
        "as_known": None if expected is None else Contents.of(store) == expected,
        "notes": [*store.notes, *_advice(store)],
    }


def _spread(values: Array) -> dict[str, float]:
    return {"min": int(values.min()), "mean": round(float(values.mean()), 2), "max": int(values.max())}


def _balance(y: Array | None, classes: tuple[Value, ...] | None) -> dict[str, int] | None:
    if y is None or classes is None:
        return None
    counts = np.bincount(y[y >= 0], minlength=len(classes)).tolist()
    return dict(zip(map(str, classes), counts, strict=True))


def _duplicate_columns(x: Array) -> list[list[int]]:
    groups = defaultdict(list)
    for column in range(x.shape[1]):
        groups[x[:, column].tobytes()].append(column)
    return [group for group in groups.values() if len(group) > 1]


def _advice(store: GraphStore) -> list[str]:
    notes = []
    if store.num_graphs < PARTS:
        notes.append(f"fewer than {PARTS} graphs: the set cannot be split")
    if rare := rare_classes(store):
        notes.append(f"graph classes with fewer than {PARTS} graphs, absent from some splits: {', '.join(rare)}")
    if not store.x.shape[1]:
        notes.append("no attributes: an encoder sees a constant and the degree")
    return notes
