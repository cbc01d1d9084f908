"""What is in a set of graphs, and what it can be used for."""

from collections import defaultdict
from typing import Any

import numpy as np

from same.graphs.sources import KNOWN, Contents
from same.graphs.splits import PARTS, rare_classes
from same.graphs.store import GraphStore
from same.tasks import TASKS


def check(store: GraphStore) -> dict[str, Any]:
    """A summary of a set, as plain values: counts, degrees, class balance, oddities, and the tasks it offers.

    >>> from same.graphs.planted import planted
    >>> check(planted())["tasks"]
    ['gc', 'nc', 'lp']
    """
    degrees = np.bincount(_global_edges(store).reshape(-1), minlength=store.num_nodes)
    sizes = np.diff(store.node_ptr)
    known = KNOWN.get(store.name)
    return {
        "name": store.name,
        "graphs": store.num_graphs,
        "nodes": store.num_nodes,
        "edges": store.num_edges,
        "attributes": store.x.shape[1],
        "nodes_per_graph": _spread(sizes),
        "degree": _spread(degrees),
        "isolated_nodes": int((degrees == 0).sum()),
        "graph_classes": _balance(store.graph_y, store.graph_classes),
        "node_classes": _balance(store.node_y, store.node_classes),
        "constant_columns": np.flatnonzero((store.x == store.x[:1]).all(axis=0)).tolist(),
        "duplicate_columns": _duplicate_columns(store.x),
        "tasks": [name for name, task in TASKS.items() if not task.missing(store)],
        "as_known": None if known is None else Contents.of(store) == known,
        "notes": [*store.notes, *_advice(store)],
    }


def _global_edges(store: GraphStore) -> np.ndarray:
    return store.edges + np.repeat(store.node_ptr[:-1], np.diff(store.edge_ptr))


def _spread(values: np.ndarray) -> dict[str, float]:
    return {"min": int(values.min()), "mean": round(float(values.mean()), 2), "max": int(values.max())}


def _balance(y: np.ndarray | None, classes: tuple[str, ...] | None) -> dict[str, int] | None:
    if y is None or classes is None:
        return None
    return dict(zip(classes, np.bincount(y, minlength=len(classes)).tolist(), strict=True))


def _duplicate_columns(x: np.ndarray) -> list[list[int]]:
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
