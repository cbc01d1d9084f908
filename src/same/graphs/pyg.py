"""From and to PyTorch Geometric's `Data`."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor

from same.errors import InputError
from same.graphs.store import GraphStore

Array = np.ndarray

_MOST_COUNTED = 10**7  # Nodes that are only counted cost nothing to ask for, and memory to make.


def from_pyg(graphs: Iterable[Any], *, name: str | None = None, node_labels: int | None = None) -> GraphStore:
    """A store from PyG graphs: a `Dataset` or a list of `Data`.

    `x` and `edge_index` are taken as they are, edges as undirected. `node_y` holds the nodes' classes or targets, `y`
    the graphs'; a `y` with one entry a node, in a set where graphs have more than one node, is taken as the nodes'.

    Args:
        graphs: the graphs; all with the same columns.
        name: what to call the set; the dataset's own name by default.
        node_labels: how many of the last columns of `x` are node labels, one-hot. They become the nodes' classes and
            are taken out of `x`. By default what a `TUDataset` says of itself, and 0 for anything else.

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
    sizes = np.array([_num_nodes(name, i, item) for i, item in enumerate(items)])
    starts = np.cumsum(sizes) - sizes

    x = _joined(name, "x", items, sizes)
    x = np.empty((int(sizes.sum()), 0), np.float32) if x is None else x.reshape(len(x), -1)
    edges = [
        np.empty((2, 0), np.int64) if item.get("edge_index") is None else _array(name, i, "edge_index", item.edge_index)
        for i, item in enumerate(items)
    ]
    for i, (item, e, size) in enumerate(zip(items, edges, sizes, strict=True)):
        if item.get("edge_index") is None and item.get("adj_t") is not None:
            raise InputError(f"{name}: graph {i} has adj_t; give edges as edge_index")
        if e.ndim != 2 or len(e) != 2 or e.dtype.kind not in "iu" or (e.size and not 0 <= e.min() <= e.max() < size):
            raise InputError(f"{name}: the edge_index of graph {i} is not [2, edges] of its nodes 0..{size - 1}")

    node_y = _joined(name, "node_y", items, sizes)
    graph_y = None
    per_graph = [1 if item.get("y") is None else _rows(_array(name, i, "y", item.y)) for i, item in enumerate(items)]
    if node_y is None and sizes.max() > 1 and per_graph == sizes.tolist():
        node_y = _joined(name, "y", items, sizes)
    else:
        graph_y = _joined(name, "y", items, np.ones(len(items), np.int64))
    if node_labels:
        if node_y is not None:
            raise InputError(f"{name}: node labels come twice, as node_y and in the last {node_labels} columns of x")
        x, node_y = _split_one_hot(name, x, node_labels)
    edge_index = np.concatenate([e + start for e, start in zip(edges, starts, strict=True)], axis=1)
    return GraphStore.build(name, x=x, sizes=sizes, edge_index=edge_index, graph_y=graph_y, node_y=node_y)


def to_pyg(store: GraphStore) -> list[Any]:
    """The graphs as PyG `Data`, with `x`, `edge_index` in both directions, `y` and `node_y`."""
    from torch_geometric.data import Data

    graphs = []
    for i in range(store.num_graphs):
        batch = store.cut([i])
        data = Data(x=batch.x, edge_index=batch.edge_index)
        if batch.graph_y is not None:
            data.y = batch.graph_y
        if batch.node_y is not None:
            data.node_y = batch.node_y
        graphs.append(data)
    return graphs


def _array(name: str, i: int, key: str, value: Any) -> Array:
    """Numbers in any form, as an array."""
    try:
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind in "iufb":
            return array
        found = str(array.dtype)
    except (TypeError, ValueError, RuntimeError) as error:  # Sparse, of a type that numpy does not have, ragged.
        found = str(error).splitlines()[0]
    raise InputError(f"{name}: {key} of graph {i} must be plain numbers ({found})")


def _rows(array: Array) -> int:
    return 1 if array.ndim == 0 else len(array)


def _num_nodes(name: str, i: int, item: Any) -> int:
    """How many nodes a graph has: rows of `x` or `node_y`, what it says, or what its edges name."""
    for key in ("x", "node_y"):
        if item.get(key) is not None and (rows := _rows(_array(name, i, key, item[key]))):
            return rows
    known = item.get("num_nodes")
    edges = None if item.get("edge_index") is None else _array(name, i, "edge_index", item.edge_index)
    if known is None and edges is not None and edges.size:
        known = int(edges.max()) + 1
    if isinstance(known, bool) or not isinstance(known, int | None):
        raise InputError(f"{name}: graph {i} has a num_nodes of {type(known).__name__}, expected a whole number")
    if not known or known < 1:
        raise InputError(f"{name}: graph {i} has no nodes; leave it out")
    if known > _MOST_COUNTED:
        raise InputError(f"{name}: graph {i} has {known} nodes, of which nothing is known; at most {_MOST_COUNTED}")
    return known


def _joined(name: str, key: str, items: list[Any], counts: Array) -> Array | None:
    """One attribute of all graphs, one after the other; either all graphs have it or none."""
    values = [item.get(key) for item in items]
    if all(value is None for value in values):
        return None
    arrays: list[Array] = []
    for i, (value, count) in enumerate(zip(values, counts.tolist(), strict=True)):
        if value is None:
            raise InputError(f"{name}: graph {i} has no {key}, others have")
        array = np.atleast_1d(_array(name, i, key, value))
        if len(array) != count:
            raise InputError(f"{name}: {key} of graph {i} has {len(array)} rows, expected {count}")
        if array.shape[1:] != (arrays[0] if arrays else array).shape[1:]:
            raise InputError(
                f"{name}: {key} of graph {i} has the columns {array.shape[1:]}, others {arrays[0].shape[1:]}"
            )
        arrays.append(array)
    joined = np.concatenate(arrays)
    # [rows, 1] is a common way to write one label a row.
    return joined[:, 0] if key != "x" and joined.ndim == 2 and joined.shape[1] == 1 else joined


def _split_one_hot(name: str, x: Array, width: int) -> tuple[Array, Array]:
    if x.shape[1] < width:
        raise InputError(f"{name}: x has {x.shape[1]} columns, fewer than the {width} node labels")
    one_hot = x[:, x.shape[1] - width :]
    if not (((one_hot == 0) | (one_hot == 1)).all() and (one_hot.sum(axis=1) == 1).all()):
        raise InputError(f"{name}: the last {width} columns of x are not one-hot node labels")
    return x[:, : x.shape[1] - width], one_hot.argmax(axis=1)
