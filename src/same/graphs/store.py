"""A set of graphs as a few flat arrays, from which batches are cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from same.errors import InputError
from same.graphs.batch import GraphBatch
from same.graphs.flat import Array, as_numbers, not_finite, pick, pointers
from same.graphs.inputs import Inputs
from same.graphs.labels import Graphs, Labels, Level


@dataclass(frozen=True, eq=False)
class GraphStore(Graphs):
    """A set of undirected graphs as flat arrays, in memory or memory-mapped.

    Attributes:
        name: name of the set.
        x: [N, d] node attributes, float32 or float64, in the precision of the source; d may be 0.
        node_ptr: [G+1] int64; graph g has the nodes node_ptr[g]..node_ptr[g+1]-1.
        edges: [2, M] int32; each edge once, smaller node first, sorted; nodes are counted from 0 within their graph.
        edge_ptr: [G+1] int64; offsets of each graph's edges.
        labels: label columns by name.
        notes: changes that were made to the source, one sentence each.
        inputs: input columns of an encoder; without them a batch shows `x` as it is, in float32.
        checked: whether the numbers have been checked; those of a large file are checked when they are cut.

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
    labels: Mapping[str, Labels] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    inputs: Inputs | None = None
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
        labels: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> "GraphStore":
        """Build a store from arrays, which are checked and brought to normal form.

        Args:
            name: name of the set.
            x: [N, d] attributes of all nodes, graph after graph.
            sizes: [G] number of nodes of each graph.
            edge_index: [2, E] edges of all graphs, nodes counted through the whole set, in one or both directions.
                Self-loops and repeated edges are dropped; the notes say so.
            graph_y: column `y`: classes (whole numbers, booleans, text), numbers (floats) or `Labels` of the graphs.
            node_y: column `node_y`: the same for the nodes.
            labels: further columns by name, see `with_labels`.
            notes: remarks on the source.
        """
        sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        if not len(sizes):
            raise InputError(f"{name}: there are no graphs")
        if (sizes < 1).any():
            raise InputError(f"{name}: graph {int(np.argmax(sizes < 1))} has no nodes; leave it out")
        node_ptr, n = pointers(sizes), int(sizes.sum())
        try:
            x = as_numbers(x)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: x must hold plain numbers ({error})") from None
        if x.ndim != 2 or len(x) != n:
            raise InputError(f"{name}: x has the shape {x.shape}, but the graphs have {n} nodes: expected ({n}, d)")
        if (bad := not_finite(x)).any():
            row, column = np.argwhere(bad)[0]
            where = f"attribute {column} of node {row} is {x[row, column]}"
            raise InputError(f"{name}: {where}; attributes must be finite in float32")
        edges, edge_ptr, changes = _canonical_edges(name, np.asarray(edge_index, dtype=np.int64), node_ptr)
        store = cls(name, x, node_ptr, edges, edge_ptr, notes=(*notes, *changes))
        if graph_y is not None:
            store = store.with_labels("y", graph_y, "graph")
        if node_y is not None:
            store = store.with_labels("node_y", node_y, "node")
        for key, values in (labels or {}).items():
            store = store.with_labels(key, values)
        return store

    def __repr__(self) -> str:
        counts = f"graphs={self.num_graphs}, nodes={self.num_nodes}, edges={self.num_edges}"
        return f"GraphStore({self.name!r}, {counts}, attributes={self.x.shape[1]})"

    def __len__(self) -> int:
        return self.num_graphs

    @property
    def num_edges(self) -> int:
        """Number of undirected edges in all graphs."""
        return self.edges.shape[1]

    @property
    def num_features(self) -> int:
        """Number of columns that an encoder sees."""
        return self.x.shape[1] if self.inputs is None else self.inputs.num_features

    @property
    def joint_edges(self) -> Array:
        """[2, M] edges, with nodes counted through all graphs."""
        return self.edges + np.repeat(self.node_ptr[:-1], np.diff(self.edge_ptr))

    def __getitem__(self, which: Any) -> "GraphStore":
        """Some graphs as a store: by index, slice, array of indices or boolean mask."""
        ids = np.atleast_1d(np.arange(self.num_graphs)[which])
        if not len(ids):
            raise InputError(f"{self.name}: no graphs were chosen")
        part, _ = self._part(ids)
        return part if self.inputs is None else part.with_inputs(self.inputs)

    def _part(self, ids: Array) -> "tuple[GraphStore, Array]":
        """Some graphs as a store without inputs, and the rows of their nodes."""
        nodes, node_ptr, edges, edge_ptr = pick(self.node_ptr, self.edge_ptr, ids)
        part = replace(
            self,
            x=self.x[nodes],
            node_ptr=node_ptr,
            edges=self.edges[:, edges],
            edge_ptr=edge_ptr,
            labels={name: c.take(ids if c.level == "graph" else nodes) for name, c in self.labels.items()},
            inputs=None,
        )
        return part, nodes

    @staticmethod
    def join(stores: "Sequence[GraphStore]") -> "GraphStore":
        """Many stores with the same attributes and label columns as one; classes are matched by value."""
        first = stores[0]
        kinds = [[(n, c.level, c.classes is None, c.y.shape[1:]) for n, c in s.labels.items()] for s in stores]
        if any((s.x.shape[1], kind) != (first.x.shape[1], kinds[0]) for s, kind in zip(stores, kinds, strict=True)):
            raise InputError(f"{first.name}: the sets to join do not have the same columns and labels")
        return replace(
            first,
            x=np.concatenate([s.x for s in stores]),
            node_ptr=pointers(np.concatenate([np.diff(s.node_ptr) for s in stores])),
            edges=np.concatenate([s.edges for s in stores], axis=1),
            edge_ptr=pointers(np.concatenate([np.diff(s.edge_ptr) for s in stores])),
            labels={name: Labels.join([s.labels[name] for s in stores]) for name in first.labels},
            inputs=None,
        )

    def with_labels(self, name: str, values: Any, level: Level | None = None) -> "GraphStore":
        """The same graphs with a column of labels added or replaced.

        Where a column for graphs replaces the node-level `y` of a set without `node_y`, the old one becomes `node_y`.

        Args:
            name: name of the column.
            values: `Labels`, or one value per graph or per node.
            level: what the values belong to. By default, as many values as there are nodes belong to the nodes, unless
                every graph has one node.
        """
        where, column = f"{self.name}: {name}", values
        if not isinstance(column, Labels):
            per_node = len(values) == self.num_nodes > self.num_graphs
            column = Labels.of(values, level or ("node" if per_node else "graph"), name=where)
        column.check(where)
        expected = self.num_graphs if column.level == "graph" else self.num_nodes
        if len(column) != expected:
            raise InputError(f"{where} has {len(column)} labels, but there are {expected} {column.level}s")
        labels = dict(self.labels)
        if name == "y" and column.level == "graph" and name in labels and labels[name].level == "node":
            labels.setdefault("node_y", labels[name])
        return replace(self, labels=labels | {name: column})

    def with_inputs(self, inputs: Inputs) -> "GraphStore":
        """The same graphs, with these input columns in their batches."""
        return replace(self, inputs=inputs.for_store(self))

    def cut(self, ids: Any) -> GraphBatch:
        """Batch of the graphs with these ids, 0..G-1, in this order."""
        ids = np.asarray(ids, dtype=np.int64).reshape(-1)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.num_graphs):
            raise InputError(f"{self.name}: there is no graph {ids[(ids < 0) | (ids >= self.num_graphs)][0]}")
        part, nodes = self._part(ids)
        if not self.checked:
            part.check()
        edges = part.joint_edges
        x = part.x if self.inputs is None else self.inputs.columns(part.x, edges, nodes, part.column("node"))
        return GraphBatch(
            x=torch.from_numpy(np.ascontiguousarray(x, np.float32)),
            edges=torch.from_numpy(edges),
            node_ptr=torch.from_numpy(part.node_ptr),
            edge_ptr=torch.from_numpy(part.edge_ptr),
            graph_ids=torch.from_numpy(ids),
            labels={name: column.map(_tensor) for name, column in part.labels.items()},
            inputs=self.inputs,
        )

    def check(self) -> None:
        """Refuse numbers that `build` would not have made: a file may be damaged, or written by another program."""
        sizes, counts = np.diff(self.node_ptr), np.diff(self.edge_ptr)
        u, v = self.edges
        rises = np.diff(u.astype(np.int64) << 32 | v, prepend=-1) > 0
        rises[self.edge_ptr[:-1][counts > 0]] = True  # The first edge of each graph.
        wrong = {
            "attributes that are not finite": not_finite(self.x).any(),
            "edges to nodes that do not exist": ((u < 0) | (u >= v) | (v >= np.repeat(sizes, counts))).any(),
            "edges that are not in order": not rises.all(),
        }
        if problems := [what for what, is_wrong in wrong.items() if is_wrong]:
            raise InputError(f"{self.name}: the store has {problems[0]}; write it again")
        for name, column in self.labels.items():
            column.check(f"{self.name}: the store has labels {name!r} that do not exist; write it again")


def _tensor(values: Array) -> torch.Tensor:
    """Codes as int64 and numbers as float32, as losses take them; masks as they are."""
    return torch.from_numpy(values.astype({"i": np.int64, "f": np.float32, "b": np.bool_}[values.dtype.kind]))


def _canonical_edges(name: str, edge_index: Array, node_ptr: Array) -> tuple[Array, Array, list[str]]:
    """Each edge once, smaller node first, sorted, counted within its graph; and notes on what was changed."""
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
    directed = _distinct(source * n + target)
    if len(directed) < len(source):
        notes.append(f"{len(source) - len(directed)} repeated edges were dropped")
    source, target = directed // n, directed % n
    keys = _distinct(np.minimum(source, target) * n + np.maximum(source, target))
    one_way = 2 * len(keys) - len(directed)
    if 0 < one_way < len(keys):
        notes.append(f"{one_way} edges came in one direction only; all edges are taken as undirected")
    low, high = keys // n, keys % n
    edge_ptr = pointers(np.bincount(graph[low], minlength=len(node_ptr) - 1))
    start = node_ptr[graph[low]]
    # Stored edge after edge, so that cutting a graph touches one stretch of memory.
    edges = np.stack([low - start, high - start], axis=1).astype(np.int32).T
    return edges, edge_ptr, notes


def _distinct(numbers: Array) -> Array:
    """Sorted distinct numbers: `np.unique`, several times as fast."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]
