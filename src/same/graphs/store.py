"""A set of graphs as a few flat arrays, from which batches are cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from same.errors import InputError
from same.graphs.batch import GraphBatch
from same.graphs.flat import Array, FlatGraphs, as_numbers, distinct, not_finite, pointers
from same.graphs.inputs import Inputs
from same.graphs.labels import Labels, Level, Value, find_column


@dataclass(frozen=True, eq=False)
class GraphStore(FlatGraphs):
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
        graph_classes: Sequence[Value] | None = None,
        node_classes: Sequence[Value] | None = None,
        labels: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> "GraphStore":
        """Build a store from node attributes, graph sizes and edges; they are checked and brought to normal form.

        Args:
            name: name of the set.
            x: [N, d] attributes of all nodes, graph after graph.
            sizes: [G] number of nodes of each graph.
            edge_index: [2, E] edges of all graphs, nodes counted through the whole set, in one or both directions.
                Self-loops and repeated edges are dropped; the notes say so.
            graph_y: column `y`: classes (whole numbers, booleans, text) or numbers (floats) of the graphs.
            node_y: column `node_y`: the same for the nodes.
            graph_classes: classes that the codes 0..k-1 in `graph_y` stand for; without them `graph_y` holds values.
            node_classes: the same for `node_y`.
            labels: further columns by name: `Labels`, or one value per graph or per node.
            notes: remarks on the source.
        """
        sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        if not len(sizes):
            raise InputError(f"{name}: there are no graphs")
        if (sizes < 1).any():
            raise InputError(f"{name}: graph {int(np.argmax(sizes < 1))} has no nodes; leave it out")
        node_ptr = pointers(sizes)
        n = int(node_ptr[-1])
        try:
            x = as_numbers(x)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: x must hold plain numbers ({error})") from None
        if x.ndim != 2 or len(x) != n:
            raise InputError(f"{name}: x has the shape {x.shape}, but the graphs have {n} nodes: expected ({n}, d)")
        if (bad := not_finite(x)).any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"{name}: attribute {column} of node {row} is {x[row, column]}; attributes must be finite in float32"
            )
        edges, edge_ptr, changes = _canonical_edges(name, np.asarray(edge_index, dtype=np.int64), node_ptr)
        store = cls(name, x, node_ptr, edges, edge_ptr, notes=(*notes, *changes))
        if graph_y is not None:
            store = store.with_labels("y", _column(f"{name}: graph_y", graph_y, "graph", graph_classes))
        if node_y is not None:
            store = store.with_labels("node_y", _column(f"{name}: node_y", node_y, "node", node_classes))
        for column, values in (labels or {}).items():
            store = store.with_labels(column, values)
        return store

    def __repr__(self) -> str:
        return (
            f"GraphStore({self.name!r}, graphs={self.num_graphs}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"attributes={self.x.shape[1]})"
        )

    def __getitem__(self, which: Any) -> "GraphStore":
        """Some graphs as a store: by index, slice, array of indices or boolean mask.

        >>> from same.graphs import planted
        >>> planted(10)[2:5].num_graphs
        3
        """
        ids = np.atleast_1d(np.arange(self.num_graphs)[which])
        if not len(ids):
            raise InputError(f"{self.name}: no graphs were chosen")
        picked = self.pick(ids)
        rows = {"graph": ids, "node": picked.nodes}
        chosen = replace(
            self,
            x=self.x[picked.nodes],
            node_ptr=pointers(picked.sizes),
            edges=picked.edges,
            edge_ptr=pointers(picked.counts),
            labels={name: column.take(rows[column.level]) for name, column in self.labels.items()},
            inputs=None,
        )
        return chosen if self.inputs is None else chosen.with_inputs(self.inputs)

    @staticmethod
    def join(stores: "Sequence[GraphStore]") -> "GraphStore":
        """Many stores with the same attributes and label columns as one, without inputs; classes are matched by value.

        >>> from same.graphs import planted
        >>> GraphStore.join([planted(10), planted(20)]).num_graphs
        30
        """
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

    @property
    def num_features(self) -> int:
        """Number of columns that an encoder sees."""
        return self.x.shape[1] if self.inputs is None else self.inputs.num_features

    def column_name(self, level: Level, name: str | None = None) -> str | None:
        """Name of a column, by default that of graph or node classification; None if there is no such column."""
        return find_column({name: column.level for name, column in self.labels.items()}, level, name)

    def column(self, level: Level, name: str | None = None) -> Labels | None:
        """A column, by default that of graph or node classification; None if there is no such column."""
        found = self.column_name(level, name)
        return None if found is None else self.labels[found]

    @property
    def graph_y(self) -> Array | None:
        """[G] codes or [G] or [G, t] numbers of the graphs: the column `y`."""
        return None if (column := self.column("graph")) is None else column.y

    @property
    def node_y(self) -> Array | None:
        """[N] codes or [N] or [N, t] numbers of the nodes: the column `node_y`, or else `y`."""
        return None if (column := self.column("node")) is None else column.y

    @property
    def graph_classes(self) -> tuple[Value, ...] | None:
        """Classes of the graphs, as the source has them."""
        return None if (column := self.column("graph")) is None else column.classes

    @property
    def node_classes(self) -> tuple[Value, ...] | None:
        """Classes of the nodes, as the source has them."""
        return None if (column := self.column("node")) is None else column.classes

    def with_labels(self, name: str, values: Any) -> "GraphStore":
        """The same graphs with a column of labels added or replaced.

        Where a column for graphs replaces the node-level `y` of a set without `node_y`, the old one becomes `node_y`.

        Args:
            name: name of the column.
            values: `Labels`, or one value per graph or per node. As many values as there are nodes belong to the nodes,
                unless every graph has one node.

        >>> from same.graphs import planted
        >>> store = planted(10)
        >>> store.with_labels("even", [i % 2 == 0 for i in range(10)]).labels["even"].classes
        (False, True)
        """
        where = f"{self.name}: {name}"
        if not isinstance(values, Labels):
            per_node = len(values) == self.num_nodes > self.num_graphs
            values = Labels.of(values, "node" if per_node else "graph", name=where)
        expected = self.num_graphs if values.level == "graph" else self.num_nodes
        if len(values) != expected:
            raise InputError(f"{where} has {len(values)} labels, but there are {expected} {values.level}s")
        labels = dict(self.labels)
        old = labels.get(name)
        if name == "y" and values.level == "graph" and old is not None and old.level == "node":
            labels.setdefault("node_y", old)
        return replace(self, labels=labels | {name: values})

    def with_inputs(self, inputs: Inputs) -> "GraphStore":
        """The same graphs, with these input columns in their batches."""
        return replace(self, inputs=inputs.for_store(self))

    def cut(self, ids: Any) -> GraphBatch:
        """Batch of the graphs with these ids, in this order.

        Args:
            ids: [g] ids of graphs, 0..G-1.
        """
        ids = np.asarray(ids, dtype=np.int64).reshape(-1)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.num_graphs):
            raise InputError(f"{self.name}: there is no graph {ids[(ids < 0) | (ids >= self.num_graphs)][0]}")
        picked = self.pick(ids)
        rows = {"graph": ids, "node": picked.nodes}
        x, edges = self.x[picked.nodes], picked.joint_edges
        labels = {name: column.take(rows[column.level]) for name, column in self.labels.items()}
        if not self.checked:
            _check(self.name, x, picked.edges, picked.sizes, picked.counts, labels)
        if self.inputs is not None:
            x = self.inputs.columns(x, edges, picked.nodes)
        return GraphBatch(
            x=torch.from_numpy(np.ascontiguousarray(x, np.float32)),
            edges=torch.from_numpy(edges),
            node_ptr=torch.from_numpy(pointers(picked.sizes)),
            edge_ptr=torch.from_numpy(pointers(picked.counts)),
            graph_ids=torch.from_numpy(ids),
            labels={
                name: torch.from_numpy(column.y.astype(np.float32 if column.classes is None else np.int64))
                for name, column in labels.items()
            },
            known={name: torch.from_numpy(c.known) for name, c in labels.items() if c.known is not None},
            levels={name: column.level for name, column in labels.items()},
            inputs=self.inputs,
        )

    def check(self) -> None:
        """Refuse numbers that `build` would not have made: a file may be damaged, or written by another program."""
        _check(self.name, self.x, self.edges, np.diff(self.node_ptr), np.diff(self.edge_ptr), self.labels)


def _check(name: str, x: Array, edges: Array, sizes: Array, counts: Array, labels: Mapping[str, Labels]) -> None:
    u, v = edges
    key = u.astype(np.int64) << 32 | v
    rises = np.diff(key, prepend=-1) > 0
    rises[pointers(counts)[:-1][counts > 0]] = True  # The first edge of each graph.
    wrong = {
        "attributes that are not finite": not_finite(x).any(),
        "edges to nodes that do not exist": ((u < 0) | (u >= v) | (v >= np.repeat(sizes, counts))).any(),
        "edges that are not in order": not rises.all(),
        **{f"labels {column!r} that do not exist": not labels[column].valid for column in labels},
    }
    if problems := [what for what, is_wrong in wrong.items() if is_wrong]:
        raise InputError(f"{name}: the store has {problems[0]}; write it again")


def _column(name: str, y: Any, level: Level, classes: Sequence[Value] | None) -> Labels:
    return Labels.of(y, level, name=name) if classes is None else Labels.coded(y, level, classes, name=name)


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
    # Stored edge after edge, so that cutting a graph touches one stretch of memory.
    edges = np.stack([low - start, high - start], axis=1).astype(np.int32).T
    return edges, edge_ptr, notes
