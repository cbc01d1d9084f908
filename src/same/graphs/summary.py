"""Summary of a set of graphs."""

from collections import defaultdict
from typing import Any

import numpy as np

from same.graphs.flat import Array
from same.graphs.io.sources import KNOWN, contents
from same.graphs.splits import PARTS, rare_classes
from same.graphs.store import GraphStore


def summarise(store: GraphStore) -> dict[str, Any]:
    """Summary of a set as plain values: counts, degrees, class balance and oddities."""
    degrees = np.bincount(store.joint_edges.reshape(-1), minlength=store.num_nodes)
    expected = KNOWN.get(store.name)
    same_columns = defaultdict(list)
    for column in range(store.x.shape[1]):
        same_columns[store.x[:, column].tobytes()].append(column)
    notes = list(store.notes)
    if store.num_graphs < PARTS:
        notes.append(f"fewer than {PARTS} graphs: the set cannot be split")
    if rare := rare_classes(store):
        notes.append(f"graph classes with fewer than {PARTS} graphs, absent from some splits: {', '.join(rare)}")
    if not store.x.shape[1]:
        notes.append("no attributes: an encoder sees a constant and the degree")
    return {
        "name": store.name,
        "graphs": store.num_graphs,
        "nodes": store.num_nodes,
        "edges": store.num_edges,
        "attributes": store.x.shape[1],
        "nodes_per_graph": _spread(np.diff(store.node_ptr)),
        "degree": _spread(degrees),
        "isolated_nodes": int((degrees == 0).sum()),
        "graph_classes": {str(value): count for value, count in store.counts("graph").items()} or None,
        "node_classes": {str(value): count for value, count in store.counts("node").items()} or None,
        "constant_columns": np.flatnonzero((store.x == store.x[:1]).all(axis=0)).tolist(),
        "duplicate_columns": [columns for columns in same_columns.values() if len(columns) > 1],
        "as_known": None if expected is None else contents(store) == expected,
        "notes": notes,
    }


def _spread(values: Array) -> dict[str, float]:
    return {"min": int(values.min()), "mean": round(float(values.mean()), 2), "max": int(values.max())}
