"""A set of graphs as a few flat arrays, from which batches are cut."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from same.errors import InputError
from same.files import atomic
from same.graphs.batch import GraphBatch, pointers, ranges

if TYPE_CHECKING:
    from same.graphs.inputs import Inputs

Array = np.ndarray

_FORMAT = 1
_CHECKED_NUMBERS = 2**24
_HEADER = "store.json"
# A label of another sort taken for a class must not cost the memory of as many names and outputs.
_MOST_CLASSES = 2**16


@dataclass(frozen=True, eq=False)
class GraphStore:
    """A set of undirected graphs as flat arrays, in memory or memory-mapped.

    Attributes:
        name: what the set is called.
        x: [N, d] float32 node attributes, as the source had them; d may be 0.
        node_ptr: [G+1] int64, graph g has the nodes node_ptr[g]..node_ptr[g+1]-1.
        edges: [2, M] int32 each edge once, smaller node first, sorted; nodes are counted from 0 within their graph.
        edge_ptr: [G+1] int64, the same for edges.
        graph_y: [G] classes 0..k-1 (integers), [G] or [G, t] targets (floats), or None.
        node_y: [N] or [N, t], the same for nodes.
        graph_classes: the graph classes as the source called them.
        node_classes: the node classes as the source called them.
        notes: what was done to the source to make it fit, one sentence each.
        inputs: what an encoder sees of a batch; without it, `x` as it is.
        checked: whether the numbers are known to be sound; those of a large file are looked at when they are cut.

    >>> store = GraphStore.build("pair", x=[[0.5], [1.5], [2.5]], sizes=[2, 1], edge_index=[[0, 1], [1, 0]])
    >>> store
    GraphStore('pair', graphs=2, nodes=3, edges=1, attributes=1)
    >>> store.cut([1, 0]).x.flatten()
    tensor([2.5000, 0.5000, 1.5000])
    """

    name: str
    x: Array
    node_ptr: Array
    edges: Array
    edge_ptr: Array
    graph_y: Array | None = None
    node_y: Array | None = None
    graph_classes: tuple[str, ...] | None = None
    node_classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    inputs: "Inputs | None" = None
    checked: bool = True

    @classmethod
    def build(
        cls,
        name: str,
        *,
        x: Any,
        sizes: Any,
        edge_index: Any,
        graph_y: Any = None,
        node_y: Any = None,
        graph_classes: Sequence[str] | None = None,
        node_classes: Sequence[str] | None = None,
        notes: Sequence[str] = (),
    ) -> "GraphStore":
        """A store from node attributes, graph sizes and edges, checked and brought to its normal form.

        Args:
            name: what the set is called.
            x: [N, d] the attributes of all nodes, graph after graph.
            sizes: [G] how many nodes each graph has.
            edge_index: [2, E] the edges of all graphs, nodes counted through the whole set, in one or both directions.
                Self-loops and repetitions are dropped, and the notes say so.
            graph_y: classes 0..k-1 (integers) or targets (floats) of the graphs.
            node_y: the same for the nodes.
            graph_classes: what the graph classes are called; their numbers by default.
            node_classes: what the node classes are called; their numbers by default.
            notes: what to remember about the source.
        """
        sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        if not len(sizes):
            raise InputError(f"{name}: there are no graphs")
        if (sizes < 1).any():
            raise InputError(f"{name}: graph {int(np.argmax(sizes < 1))} has no nodes; leave it out")
        node_ptr = pointers(sizes)
        n = int(node_ptr[-1])
        x = _single(x)
        if x.ndim != 2 or len(x) != n:
            raise InputError(f"{name}: x has the shape {x.shape}, but the graphs have {n} nodes: expected ({n}, d)")
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise InputError(f"{name}: attribute {column} of node {row} is {x[row, column]}; attributes must be finite")
        edges, edge_ptr, found = _canonical_edges(name, np.asarray(edge_index, dtype=np.int64), node_ptr)
        graph_y, graph_classes = _labels(name, "graph", graph_y, graph_classes, len(sizes))
        node_y, node_classes = _labels(name, "node", node_y, node_classes, n)
        return cls(name, x, node_ptr, edges, edge_ptr, graph_y, node_y, graph_classes, node_classes, (*notes, *found))

    def __repr__(self) -> str:
        return (
            f"GraphStore({self.name!r}, graphs={self.num_graphs}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"attributes={self.x.shape[1]})"
        )

    def __len__(self) -> int:
        return self.num_graphs

    def __getitem__(self, which: Any) -> "GraphStore":
        """Some graphs as a store of their own: by place, by a slice, by an array of places or of yes and no.

        >>> from same.graphs import planted
        >>> planted(10)[2:5].num_graphs
        3
        """
        ids = np.atleast_1d(np.arange(self.num_graphs)[which])
        if not len(ids):
            raise InputError(f"{self.name}: no graphs were chosen")
        sizes, counts = np.diff(self.node_ptr)[ids], np.diff(self.edge_ptr)[ids]
        nodes = ranges(self.node_ptr[ids], sizes)
        chosen = replace(
            self,
            x=self.x[nodes],
            node_ptr=pointers(sizes),
            edges=self.edges[:, ranges(self.edge_ptr[ids], counts)],
            edge_ptr=pointers(counts),
            graph_y=None if self.graph_y is None else self.graph_y[ids],
            node_y=None if self.node_y is None else self.node_y[nodes],
            inputs=None,
        )
        return chosen if self.inputs is None else chosen.with_inputs(self.inputs)

    @staticmethod
    def join(stores: "Sequence[GraphStore]") -> "GraphStore":
        """Many stores of the same columns and classes as one, without inputs.

        >>> from same.graphs import planted
        >>> GraphStore.join([planted(10), planted(20)]).num_graphs
        30
        """
        first = stores[0]
        alike = {(s.x.shape[1], s.graph_classes, s.node_classes, s.graph_y is None, s.node_y is None) for s in stores}
        if len(alike) > 1:
            raise InputError(f"{first.name}: the sets to join do not have the same columns, labels and classes")
        return replace(
            first,
            x=np.concatenate([s.x for s in stores]),
            node_ptr=pointers(np.concatenate([np.diff(s.node_ptr) for s in stores])),
            edges=np.concatenate([s.edges for s in stores], axis=1),
            edge_ptr=pointers(np.concatenate([np.diff(s.edge_ptr) for s in stores])),
            graph_y=None
            if first.graph_y is None
            else np.concatenate([s.graph_y for s in stores if s.graph_y is not None]),
            node_y=None if first.node_y is None else np.concatenate([s.node_y for s in stores if s.node_y is not None]),
            inputs=None,
        )

    @property
    def num_graphs(self) -> int:
        """How many graphs."""
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """How many nodes in all graphs."""
        return len(self.x)

    @property
    def num_edges(self) -> int:
        """How many undirected edges in all graphs."""
        return self.edges.shape[1]

    @property
    def num_features(self) -> int:
        """How many columns an encoder sees."""
        return self.x.shape[1] if self.inputs is None else self.inputs.num_features

    def with_inputs(self, inputs: "Inputs") -> "GraphStore":
        """The same graphs, whose batches show what `inputs` makes of them."""
        return replace(self, inputs=inputs.for_store(self))

    def cut(self, ids: Any) -> GraphBatch:
        """The batch of the graphs with these ids, in this order.

        Args:
            ids: [g] places in the store, 0..G-1.
        """
        ids = np.asarray(ids, dtype=np.int64).reshape(-1)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.num_graphs):
            raise InputError(f"{self.name}: there is no graph {ids[(ids < 0) | (ids >= self.num_graphs)][0]}")
        first, sizes = self.node_ptr[ids], self.node_ptr[ids + 1] - self.node_ptr[ids]
        nodes, node_ptr = ranges(first, sizes), pointers(sizes)
        counts = self.edge_ptr[ids + 1] - self.edge_ptr[ids]
        local, x = self.edges[:, ranges(self.edge_ptr[ids], counts)], self.x[nodes]
        edges = local + np.repeat(node_ptr[:-1], counts)
        if not self.checked:
            self._check(x, local, sizes, counts, self.graph_y, None if self.node_y is None else self.node_y[nodes])
        if self.inputs is not None:
            x = self.inputs.columns(x, edges, nodes)
        return GraphBatch(
            x=torch.from_numpy(np.ascontiguousarray(x)),
            edges=torch.from_numpy(edges),
            node_ptr=torch.from_numpy(node_ptr),
            edge_ptr=torch.from_numpy(pointers(counts)),
            graph_ids=torch.from_numpy(ids),
            graph_y=None if self.graph_y is None else _tensor(self.graph_y[ids]),
            node_y=None if self.node_y is None else _tensor(self.node_y[nodes]),
            inputs=self.inputs,
        )

    def _check(
        self, x: Array, edges: Array, sizes: Array, counts: Array, graph_y: Array | None, node_y: Array | None
    ) -> None:
        """Refuses what `build` would not have made: a file may be damaged, or made by somebody else."""
        u, v = edges
        key = u.astype(np.int64) << 32 | v
        rises = np.diff(key, prepend=-1) > 0
        rises[pointers(counts)[:-1][counts > 0]] = True  # The first edges of graphs.
        wrong = {
            "attributes that are not finite": not np.isfinite(x).all(),
            "edges to nodes that are not there": bool(((u < 0) | (u >= v) | (v >= np.repeat(sizes, counts))).any()),
            "edges that are not in order": not rises.all(),
            "graph labels that are not there": not _are_labels(graph_y, self.graph_classes),
            "node labels that are not there": not _are_labels(node_y, self.node_classes),
        }
        if found := [what for what, is_so in wrong.items() if is_so]:
            raise InputError(f"{self.name}: the store has {found[0]}; write it again")

    def save(self, folder: str | Path) -> None:
        """Writes the store to a folder that `GraphStore.open` maps into memory."""
        GraphStore.write(folder, [self])

    @staticmethod
    def write(folder: str | Path, parts: "Iterable[GraphStore]") -> None:
        """Writes many stores as one to a folder, one after the other, so that never all of them are in memory.

        Args:
            folder: where to; it must not exist yet, or be empty.
            parts: stores of the same columns and classes.
        """
        folder = Path(folder)
        with atomic(folder, folder=True) as temporary:
            first: GraphStore | None = None
            shapes: dict[str, list[int]] = {}
            dtypes: dict[str, str] = {}
            offset: dict[str, int] = {"node_ptr": 0, "edge_ptr": 0}
            for part in parts:
                arrays = _arrays(part)
                if first is None:
                    first = part
                    shapes = {key: [0, *array.shape[1:]] for key, array in arrays.items()}
                    dtypes = {key: array.dtype.str for key, array in arrays.items()}
                elif (part.graph_classes, part.node_classes) != (first.graph_classes, first.node_classes):
                    raise InputError(f"{folder}: the parts do not have the same classes")
                if {k: (a.dtype.str, list(a.shape[1:])) for k, a in arrays.items()} != {
                    k: (dtypes[k], shapes[k][1:]) for k in shapes
                }:
                    raise InputError(f"{folder}: the parts do not have the same arrays and columns")
                for key, array in arrays.items():
                    if key in offset:
                        # Each part counts from 0: shift it, and leave out the first pointer, which the last part wrote.
                        ends, array = array[-1], array[bool(shapes[key][0]) :] + offset[key]
                        offset[key] += int(ends)
                    with (temporary / f"{key}.bin").open("ab") as file:
                        np.ascontiguousarray(array).tofile(file)
                    shapes[key][0] += len(array)
            if first is None:
                raise InputError(f"{folder}: there are no graphs to write")
            header = {
                "format": _FORMAT,
                "name": first.name,
                "arrays": {key: {"dtype": dtypes[key], "shape": shapes[key]} for key in shapes},
                "graph_classes": first.graph_classes,
                "node_classes": first.node_classes,
                "notes": first.notes,
            }
            (temporary / _HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path) -> "GraphStore":
        """The store in a folder, its arrays memory-mapped: only what is cut is read."""
        folder = Path(folder)
        try:
            header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
            if header["format"] != _FORMAT:
                raise InputError(f"{folder}: written in format {header['format']}, this version reads {_FORMAT}")
            arrays = {key: _map(folder / f"{key}.bin", key, **header["arrays"][key]) for key in header["arrays"]}
            store = cls(
                name=str(header["name"]),
                x=arrays["x"],
                node_ptr=arrays["node_ptr"],
                edges=arrays["edges"].T,
                edge_ptr=arrays["edge_ptr"],
                graph_y=arrays.get("graph_y"),
                node_y=arrays.get("node_y"),
                graph_classes=_names(header["graph_classes"]),
                node_classes=_names(header["node_classes"]),
                notes=_names(header["notes"]) or (),
                checked=False,
            )
            return _looked_at(store, folder)
        except FileNotFoundError as error:
            raise InputError(f"{error.filename}: missing; {folder} is not a whole store") from error
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{folder / _HEADER}: not the header of a store ({error})") from error


_DTYPES = {"x": "f4", "node_ptr": "i8", "edges": "i4", "edge_ptr": "i8", "graph_y": "i4 f4", "node_y": "i4 f4"}


def _arrays(store: GraphStore) -> dict[str, Array]:
    """The arrays as they lie on disk: everything grows along its first axis."""
    arrays = {"x": store.x, "node_ptr": store.node_ptr, "edges": store.edges.T, "edge_ptr": store.edge_ptr}
    if store.graph_y is not None:
        arrays["graph_y"] = store.graph_y
    if store.node_y is not None:
        arrays["node_y"] = store.node_y
    return arrays


def _map(path: Path, key: str, *, dtype: str, shape: list[int]) -> Array:
    if dtype.lstrip("<") not in _DTYPES[key].split():
        raise InputError(f"{path}: holds {dtype}, expected {_DTYPES[key]}")
    expected = math.prod(shape) * np.dtype(dtype).itemsize
    if min(shape) < 0 or path.stat().st_size != expected:
        raise InputError(f"{path}: has {path.stat().st_size} bytes, its header says {expected}; write the store again")
    # As a plain array: numpy's own class for mapped ones makes every small cut twice as expensive.
    return (
        np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=tuple(shape))) if expected else np.empty(shape, dtype)
    )


def _looked_at(store: GraphStore, folder: Path) -> GraphStore:
    """A store from files, its shape checked, and its numbers, too, if they are not many."""
    for what, ptr, count, least in (
        ("node_ptr", store.node_ptr, len(store.x), 1),
        ("edge_ptr", store.edge_ptr, store.edges.shape[-1], 0),
    ):
        if not (ptr.ndim == 1 and len(ptr) > 1 and ptr[0] == 0 and ptr[-1] == count and np.diff(ptr).min() >= least):
            raise InputError(f"{folder / what}.bin: does not say where graphs begin and end; write the store again")
    shapes = (store.x.ndim, store.edges.shape[0], len(store.edge_ptr))
    y = [(store.graph_y, store.num_graphs), (store.node_y, store.num_nodes)]
    if shapes != (2, 2, len(store.node_ptr)) or any(a is not None and len(a) != n for a, n in y):
        raise InputError(f"{folder / _HEADER}: the arrays do not belong together; write the store again")
    if store.x.size + 2 * store.num_edges > _CHECKED_NUMBERS:
        return store
    store._check(store.x, store.edges, np.diff(store.node_ptr), np.diff(store.edge_ptr), store.graph_y, store.node_y)
    return replace(store, checked=True)


def _are_labels(y: Array | None, classes: tuple[str, ...] | None) -> bool:
    if y is None or y.dtype.kind == "f":
        return classes is None and (y is None or bool(np.isfinite(y).all()))
    return y.ndim == 1 and classes is not None and bool(((y >= 0) & (y < len(classes))).all())


def _names(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(map(str, values))


def _tensor(y: Array) -> Tensor:
    return torch.from_numpy(y.astype(np.float32 if y.dtype.kind == "f" else np.int64))


def _single(values: Any) -> Array:
    """Numbers in single precision; those that are too large for it are infinite, and refused as such."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def _labels(
    name: str, kind: str, y: Any, classes: Sequence[str] | None, n: int
) -> tuple[Array | None, tuple[str, ...] | None]:
    """Labels as int32 classes or float32 targets, with the names of the classes."""
    if y is None:
        return None, None
    y = np.asarray(y)
    if len(y) != n or y.ndim > 2:
        raise InputError(f"{name}: {kind}_y has the shape {y.shape}, but there are {n} {kind}s")
    if y.dtype.kind == "f":
        y = _single(y)
        if not np.isfinite(y).all():
            raise InputError(f"{name}: the target of {kind} {np.argwhere(~np.isfinite(y))[0][0]} is not finite")
        return y, None
    if y.dtype.kind not in "iub" or y.ndim != 1 or y.min() < 0:
        found = f"{y.min()}" if y.dtype.kind == "i" and y.ndim == 1 else f"{y.dtype} of the shape {y.shape}"
        raise InputError(f"{name}: {kind}_y must be classes 0..k-1 (integers) or targets (floats), not {found}")
    count = int(y.max()) + 1
    if count > _MOST_CLASSES:
        raise InputError(f"{name}: {kind}_y has the class {count - 1}; classes are numbered 0..k-1, k at most 65536")
    classes = tuple(map(str, range(count))) if classes is None else tuple(classes)
    if len(classes) < count:
        raise InputError(f"{name}: {kind}_y has the class {count - 1}, but only {len(classes)} class names")
    return y.astype(np.int32), classes


def distinct(numbers: Array) -> Array:
    """The numbers, each once, in order: `np.unique`, several times as fast.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    numbers = np.sort(numbers)
    return numbers[np.concatenate([np.ones(min(len(numbers), 1), bool), numbers[1:] != numbers[:-1]])]


def _canonical_edges(name: str, edge_index: Array, node_ptr: Array) -> tuple[Array, Array, list[str]]:
    """Each edge once, smaller node first, sorted, counted within its graph; and what had to be done."""
    n = int(node_ptr[-1])
    if edge_index.size and (edge_index.ndim != 2 or len(edge_index) != 2):
        raise InputError(f"{name}: edge_index has the shape {edge_index.shape}, expected (2, edges)")
    edge_index = edge_index.reshape(2, -1)
    outside = (edge_index < 0) | (edge_index >= n)
    if outside.any():
        raise InputError(f"{name}: an edge leads to node {edge_index[outside][0]}, but there are only {n} nodes")
    graph = np.repeat(np.arange(len(node_ptr) - 1), np.diff(node_ptr))
    source, target = edge_index
    between = graph[source] != graph[target]
    if between.any():
        u, v = edge_index[:, np.argmax(between)]
        raise InputError(f"{name}: an edge joins node {u} of graph {graph[u]} and node {v} of graph {graph[v]}")
    notes = []
    loops = source == target
    if loops.any():
        notes.append(f"{int(loops.sum())} self-loops were dropped")
        source, target = source[~loops], target[~loops]
    directed = distinct(source * n + target)
    if len(directed) < len(source):
        notes.append(f"{len(source) - len(directed)} repeated edges were dropped")
    source, target = directed // n, directed % n
    keys = distinct(np.minimum(source, target) * n + np.maximum(source, target))
    one_way = 2 * len(keys) - len(directed)
    if 0 < one_way < len(keys):
        notes.append(f"{one_way} edges came in one direction only; all edges are taken as undirected")
    low, high = keys // n, keys % n
    edge_ptr = pointers(np.bincount(graph[low], minlength=len(node_ptr) - 1))
    start = node_ptr[graph[low]]
    # Stored edge after edge: cutting a graph touches one stretch of memory.
    edges = np.stack([low - start, high - start], axis=1).astype(np.int32).T
    return edges, edge_ptr, notes
