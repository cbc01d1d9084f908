"""Conversion of objects of other libraries: from and to PyTorch Geometric, and from networkx."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from same.errors import InputError
from same.graphs.flat import Array
from same.graphs.labels import Labels, Level
from same.graphs.store import GraphStore

_MOST_COUNTED = 10**7  # Nodes without attributes cost nothing to ask for, but memory to make.


def from_pyg(
    graphs: Iterable[Any], *, name: str | None = None, node_labels: int | None = None, labels: Sequence[str] = ()
) -> GraphStore:
    """Convert PyG graphs, a `Dataset` or a list of `Data`, to a store.

    `x` and `edge_index` are taken as they are, edges as undirected. The attributes `y` and `node_y` become columns of
    labels. A column belongs to the nodes if it has one entry per node in every graph, and some graph has more than one
    node; otherwise it belongs to the graphs.

    Args:
        graphs: the graphs; all need the same attributes.
        name: name of the set; by default the name of the dataset.
        node_labels: number of one-hot node labels in the last columns of `x`. They become the column `node_y` and
            are removed from `x`. By default what a `TUDataset` says of itself, and 0 for anything else.
        labels: names of further attributes to read as columns of labels.
    """
    from torch_geometric.data import Data

    name = name or str(getattr(graphs, "name", "graphs"))
    node_labels = int(getattr(graphs, "num_node_labels", 0)) if node_labels is None else node_labels
    items = [graphs] if isinstance(graphs, Data) else list(graphs)
    for i, item in enumerate(items):
        if not isinstance(item, Data):
            raise InputError(f"{name}: graph {i} is {type(item).__name__}, expected PyG's Data")
    return _join(name, items, node_labels=node_labels, labels=labels)


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
    return _join(name, items)


def _join(name: str, items: Sequence[Any], *, node_labels: int = 0, labels: Sequence[str] = ()) -> GraphStore:
    """Join graphs to a store, see `from_pyg`; they are `Data`, or dictionaries with the same keys."""
    if not items:
        raise InputError(f"{name}: there are no graphs")
    sizes = [_num_nodes(name, i, item) for i, item in enumerate(items)]
    joined = _joined(name, "x", items, sizes)
    x = np.empty((sum(sizes), 0), np.float32) if joined is None else joined[0].reshape(sum(sizes), -1)
    columns: dict[str, Labels] = {}
    for key in dict.fromkeys(("y", "node_y", *labels)):
        if (joined := _joined(name, key, items, sizes)) is not None:
            values, level = joined
            # [rows, 1] is a common shape for one label per row.
            values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
            columns[key] = Labels.of(values, level, name=f"{name}: {key}")
        elif key in labels:
            raise InputError(f"{name}: the graphs have no {key}")
    if node_labels:
        if "node" in {columns[key].level for key in ("y", "node_y") if key in columns}:
            raise InputError(f"{name}: node labels come twice, as node_y and in the last {node_labels} columns of x")
        x, columns["node_y"] = _split_one_hot(name, x, node_labels)
    return GraphStore.build(name, x=x, sizes=sizes, edge_index=_edges(name, items, sizes), labels=columns)


def to_pyg(store: GraphStore, *, codes: bool = False) -> list[Any]:
    """Convert a store to PyG `Data` with `x`, `edge_index` in both directions, and one attribute per label column.

    Args:
        store: the set; its inputs, where it has any, become `x`.
        codes: give classes as codes 0..k-1, which a loss takes, instead of their values (tensors, or text).
    """
    from torch_geometric.data import Data

    graphs = []
    for i in range(store.num_graphs):
        batch, labels = store.cut([i]), {}
        for name, column in batch.labels.items():
            values = column.y if codes or column.classes is None else column.values
            if isinstance(values, np.ndarray):
                values = values.tolist() if values.dtype.kind == "O" else torch.from_numpy(values)
            labels[name] = values
        graphs.append(Data(x=batch.x, edge_index=batch.edge_index, **labels))
    return graphs


def _array(name: str, i: int, key: str, value: Any) -> Array:
    """A value in any form as an array of numbers, or, for labels, also of text."""
    text = key not in ("x", "edge_index")
    try:
        array = np.atleast_1d(value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value))
        if array.dtype.kind in "iufb":
            return array
        if text and array.dtype.kind == "U":
            return np.atleast_1d(np.asarray(value, object))
        problem = str(array.dtype)
    except (TypeError, ValueError, RuntimeError) as error:  # Sparse, of a type that numpy does not have, or ragged.
        problem = str(error).splitlines()[0]
    raise InputError(f"{name}: {key} of graph {i} must be plain numbers{' or text' * text} ({problem})")


def _joined(name: str, key: str, items: Sequence[Any], sizes: list[int]) -> tuple[Array, Level] | None:
    """One attribute of all graphs, and what its rows belong to; None if no graph has it."""
    values = [item.get(key) for item in items]
    if all(value is None for value in values):
        return None
    if absent := [i for i, value in enumerate(values) if value is None]:
        raise InputError(f"{name}: graph {absent[0]} has no {key}, others have")
    arrays = [_array(name, i, key, value) for i, value in enumerate(values)]
    per_node = key in ("x", "node_y") or (max(sizes) > 1 and [len(array) for array in arrays] == sizes)
    columns = arrays[0].shape[1:]
    for i, (array, count) in enumerate(zip(arrays, sizes if per_node else [1] * len(sizes), strict=True)):
        if len(array) != count:
            raise InputError(f"{name}: {key} of graph {i} has {len(array)} rows, expected {count}")
        if array.shape[1:] != columns:
            raise InputError(f"{name}: {key} of graph {i} has the columns {array.shape[1:]}, others {columns}")
    return np.concatenate(arrays), "node" if per_node else "graph"


def _num_nodes(name: str, i: int, item: Any) -> int:
    """Number of nodes of a graph: rows of `x` or `node_y`, or as it says, or as its edges say."""
    for key in ("x", "node_y"):
        if item.get(key) is not None and (rows := len(_array(name, i, key, item[key]))):
            return rows
    count = item.get("num_nodes")
    if count is None and item.get("edge_index") is not None:
        count = int(_array(name, i, "edge_index", item["edge_index"]).max(initial=-1)) + 1
    if isinstance(count, bool) or not isinstance(count, int | None):
        raise InputError(f"{name}: graph {i} has a num_nodes of {type(count).__name__}, expected a whole number")
    if not count or count < 1:
        raise InputError(f"{name}: graph {i} has no nodes; leave it out")
    if count > _MOST_COUNTED:
        raise InputError(f"{name}: graph {i} has {count} nodes without attributes; at most {_MOST_COUNTED}")
    return count


def _edges(name: str, items: Sequence[Any], sizes: list[int]) -> Array:
    """[2, E] edges of all graphs, with nodes counted through the whole set."""
    edges, start = [np.empty((2, 0), np.int64)], 0
    for i, (item, size) in enumerate(zip(items, sizes, strict=True)):
        if item.get("edge_index") is not None:
            e = _array(name, i, "edge_index", item["edge_index"])
            outside = e.size and not 0 <= e.min() <= e.max() < size
            if e.ndim != 2 or len(e) != 2 or e.dtype.kind not in "iu" or outside:
                raise InputError(f"{name}: the edge_index of graph {i} is not [2, edges] of its nodes 0..{size - 1}")
            edges.append(e + start)
        elif item.get("adj_t") is not None:
            raise InputError(f"{name}: graph {i} has adj_t; give edges as edge_index")
        start += size
    return np.concatenate(edges, axis=1)


def _split_one_hot(name: str, x: Array, width: int) -> tuple[Array, Labels]:
    if x.shape[1] < width:
        raise InputError(f"{name}: x has {x.shape[1]} columns, fewer than the {width} node labels")
    rest, one_hot = np.split(x, [x.shape[1] - width], axis=1)
    if not (((one_hot == 0) | (one_hot == 1)).all() and (one_hot.sum(axis=1) == 1).all()):
        raise InputError(f"{name}: the last {width} columns of x are not one-hot node labels")
    return rest, Labels("node", one_hot.argmax(axis=1).astype(np.int32), tuple(range(width)))
