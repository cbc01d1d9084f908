"""Conversion from and to PyTorch Geometric's `Data`."""

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
        name: name of the set; the dataset's own name by default.
        node_labels: number of one-hot node labels in the last columns of `x`. They become the column `node_y` and
            are removed from `x`. By default what a `TUDataset` says of itself, and 0 for anything else.
        labels: names of further attributes to read as columns of labels.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> graph = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0]))
    >>> from_pyg([graph, graph])
    GraphStore('graphs', graphs=2, nodes=6, edges=4, attributes=2)
    """
    name = name or str(getattr(graphs, "name", "graphs"))
    if node_labels is None:
        node_labels = int(getattr(graphs, "num_node_labels", 0))
    from torch_geometric.data import Data

    items = [graphs] if isinstance(graphs, Data) else list(graphs)
    if not items:
        raise InputError(f"{name}: there are no graphs")
    for i, item in enumerate(items):
        if not isinstance(item, Data):
            raise InputError(f"{name}: graph {i} is {type(item).__name__}, expected PyG's Data")
    sizes = [_num_nodes(name, i, item) for i, item in enumerate(items)]

    rows = _arrays(name, "x", items)
    x: Array = np.empty((sum(sizes), 0), np.float32)
    if rows is not None:
        x = _joined(name, "x", rows, sizes).reshape(sum(sizes), -1)
    edges, start = [np.empty((2, 0), np.int64)], 0
    for i, (item, size) in enumerate(zip(items, sizes, strict=True)):
        if item.get("edge_index") is None:
            if item.get("adj_t") is not None:
                raise InputError(f"{name}: graph {i} has adj_t; give edges as edge_index")
        else:
            e = _array(name, i, "edge_index", item.edge_index)
            outside = e.size and not 0 <= e.min() <= e.max() < size
            if e.ndim != 2 or len(e) != 2 or e.dtype.kind not in "iu" or outside:
                raise InputError(f"{name}: the edge_index of graph {i} is not [2, edges] of its nodes 0..{size - 1}")
            edges.append(e + start)
        start += size

    columns = {key: _column(name, key, items, sizes) for key in dict.fromkeys(("y", "node_y", *labels))}
    if missing := [key for key in labels if columns[key] is None]:
        raise InputError(f"{name}: the graphs have no {missing[0]}")
    if node_labels:
        if columns["node_y"] is not None or (columns["y"] is not None and columns["y"].level == "node"):
            raise InputError(f"{name}: node labels come twice, as node_y and in the last {node_labels} columns of x")
        x, codes = _split_one_hot(name, x, node_labels)
        columns["node_y"] = Labels.coded(codes, "node", range(node_labels), name=f"{name}: node_y")
    return GraphStore.build(
        name,
        x=x,
        sizes=sizes,
        edge_index=np.concatenate(edges, axis=1),
        labels={key: column for key, column in columns.items() if column is not None},
    )


def to_pyg(store: GraphStore, *, codes: bool = False) -> list[Any]:
    """Convert a store to PyG `Data` with `x`, `edge_index` in both directions, and one attribute per label column.

    Args:
        store: the set; its inputs, where it has any, become `x`.
        codes: give classes as codes 0..k-1, which a loss takes, instead of their values (tensors, or text).
    """
    from torch_geometric.data import Data

    graphs = []
    for i in range(store.num_graphs):
        batch = store.cut([i])
        rows = {"graph": np.array([i]), "node": np.arange(store.node_ptr[i], store.node_ptr[i + 1])}
        labels: dict[str, Any] = {}
        for name, column in store.labels.items():
            values = column.take(rows[column.level]).values
            text = values.dtype.kind not in "biuf"
            given = values.tolist() if text else torch.from_numpy(values)
            labels[name] = batch.labels[name] if codes or column.classes is None else given
        graphs.append(Data(x=batch.x, edge_index=batch.edge_index, **labels))
    return graphs


def _array(name: str, i: int, key: str, value: Any, kinds: str = "iufb") -> Array:
    """A value in any form as an array of numbers, or also of text."""
    try:
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind in kinds:
            return array
        problem = str(array.dtype)
    except (TypeError, ValueError, RuntimeError) as error:  # Sparse, of a type that numpy does not have, or ragged.
        problem = str(error).splitlines()[0]
    raise InputError(f"{name}: {key} of graph {i} must be plain numbers{' or text' * ('U' in kinds)} ({problem})")


def _rows(array: Array) -> int:
    return 1 if array.ndim == 0 else len(array)


def _num_nodes(name: str, i: int, item: Any) -> int:
    """Number of nodes of a graph: rows of `x` or `node_y`, or as it says, or as its edges say."""
    for key, kinds in (("x", "iufb"), ("node_y", "iufbU")):
        if item.get(key) is not None and (rows := _rows(_array(name, i, key, item[key], kinds))):
            return rows
    count = item.get("num_nodes")
    edges = None if item.get("edge_index") is None else _array(name, i, "edge_index", item.edge_index)
    if count is None and edges is not None and edges.size:
        count = int(edges.max()) + 1
    if isinstance(count, bool) or not isinstance(count, int | None):
        raise InputError(f"{name}: graph {i} has a num_nodes of {type(count).__name__}, expected a whole number")
    if not count or count < 1:
        raise InputError(f"{name}: graph {i} has no nodes; leave it out")
    if count > _MOST_COUNTED:
        raise InputError(f"{name}: graph {i} has {count} nodes without attributes; at most {_MOST_COUNTED}")
    return count


def _arrays(name: str, key: str, items: list[Any], kinds: str = "iufb") -> list[Array] | None:
    """One attribute of each graph; either all graphs have it or none."""
    values = [item.get(key) for item in items]
    if all(value is None for value in values):
        return None
    arrays = []
    for i, value in enumerate(values):
        if value is None:
            raise InputError(f"{name}: graph {i} has no {key}, others have")
        arrays.append(np.atleast_1d(_array(name, i, key, value, kinds)))
    return arrays


def _joined(name: str, key: str, arrays: list[Array], counts: Sequence[int]) -> Array:
    first = arrays[0]
    for i, (array, count) in enumerate(zip(arrays, counts, strict=True)):
        if len(array) != count:
            raise InputError(f"{name}: {key} of graph {i} has {len(array)} rows, expected {count}")
        if array.shape[1:] != first.shape[1:]:
            raise InputError(f"{name}: {key} of graph {i} has the columns {array.shape[1:]}, others {first.shape[1:]}")
        if (array.dtype.kind == "U") != (first.dtype.kind == "U"):
            raise InputError(f"{name}: {key} of graph {i} is {array.dtype}, of others {first.dtype}")
    return np.concatenate(arrays)


def _column(name: str, key: str, items: list[Any], sizes: list[int]) -> Labels | None:
    """One attribute of all graphs as a column of labels."""
    arrays = _arrays(name, key, items, "iufbU")
    if arrays is None:
        return None
    per_node = max(sizes) > 1 and [len(array) for array in arrays] == sizes
    level: Level = "node" if per_node or key == "node_y" else "graph"
    joined = _joined(name, key, arrays, sizes if level == "node" else [1] * len(items))
    # [rows, 1] is a common shape for one label per row.
    flat = joined[:, 0] if joined.ndim == 2 and joined.shape[1] == 1 else joined
    return Labels.of(flat, level, name=f"{name}: {key}")


def _split_one_hot(name: str, x: Array, width: int) -> tuple[Array, Array]:
    if x.shape[1] < width:
        raise InputError(f"{name}: x has {x.shape[1]} columns, fewer than the {width} node labels")
    one_hot = x[:, x.shape[1] - width :]
    if not (((one_hot == 0) | (one_hot == 1)).all() and (one_hot.sum(axis=1) == 1).all()):
        raise InputError(f"{name}: the last {width} columns of x are not one-hot node labels")
    return x[:, : x.shape[1] - width], one_hot.argmax(axis=1)
