"""Tasks that read a column of labels: what those on graphs and on nodes, of classes and of numbers, have in common."""

import copy
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from same.errors import InputError
from same.graphs.batch import Examples, GraphBatch
from same.graphs.flat import Array
from same.graphs.labels import Level, Value
from same.graphs.store import GraphStore
from same.nn.heads import GraphHead, NodeHead
from same.nn.pooling import pool_nodes
from same.tasks.task import GraphTask, share


class LabelTask(GraphTask):
    """A task that reads one column of labels; `bind` takes its classes and the number of outputs from a set."""

    level: ClassVar[Level]
    column: str | None = None
    classes: tuple[Value, ...] | None = None
    outputs: int = 0

    def missing(self, store: GraphStore) -> str | None:
        """Numbers or at least two classes are needed, for every graph or node."""
        labels = store.column(self.level, self.column)
        where = "" if self.column is None else f" in the column {self.column!r}"
        if self.kind == "numbers" and (labels is None or labels.classes is not None):
            return f"targets of {self.level}s (floats){where}"
        if self.kind == "classes" and (labels is None or len(labels.classes or ()) < 2):
            return f"{self.level}s of at least two classes{where}"
        return None if labels is None or labels.known is None else f"{self.level} labels without unknown entries{where}"

    def reads(self, store: GraphStore) -> str | None:
        """The column of labels."""
        return store.column_name(self.level, self.column)

    def bind(self, store: GraphStore) -> Self:
        """The task with the classes or the number of targets of a set."""
        labels, bound = store.column(self.level, self.column), copy.copy(self)
        if labels is not None:
            bound.classes = labels.classes
            bound.outputs = labels.y[0].size if labels.classes is None else len(labels.classes)
        return bound

    def match(self, store: GraphStore) -> GraphStore:
        """A set with its column coded by the classes of this task, matched by value."""
        name = store.column_name(self.level, self.column)
        if name is None or self.classes is None or store.labels[name].classes is None:
            return store
        return store.with_labels(name, store.labels[name].matched(self.classes))

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All graphs or nodes."""
        labels = batch.column(self.level, self.column)
        if labels is None:
            raise InputError(f"{self.name}: the graphs have no {self.level} labels {self.column or 'y'!r}")
        return Examples(batch, labels.y)


class GraphLevel(LabelTask):
    """A task on graphs. Support and target are different graphs, 60/40 at random."""

    level = "graph"

    def __init__(self, column: str | None = None, *, linear: bool = False, pool: str = "mean") -> None:
        self.column, self.linear, self.pool = column, linear, pool
        self.pools = tuple(dict.fromkeys((pool, "mean", "sum", "mean+max", "mean+std+size")))

    def head(self, width: int) -> nn.Module:
        """See `GraphHead`."""
        return GraphHead(width, self.outputs, linear=self.linear, pool=self.pool)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """60 % of the graphs, at random, and the others."""
        ids = rng.permutation(ids)
        first = int(share(np.array(len(ids)), 0.6))
        return self.examples(store.cut(ids[:first]), rng), self.examples(store.cut(ids[first:]), rng)

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """Pooled node embeddings of each graph."""
        return pool_nodes(examples.inputs, h, self.pool)

    def pooled(self, pool: str) -> Self:
        """The task with another pooling, see `same.nn.pool_nodes`."""
        changed = copy.copy(self)
        changed.pool = pool
        return changed


class NodeLevel(LabelTask):
    """A task on nodes. Support and target are different nodes of the same graphs, 30/70."""

    level = "node"

    def __init__(self, column: str | None = None) -> None:
        self.column = column

    def head(self, width: int) -> nn.Module:
        """See `NodeHead`."""
        return NodeHead(width, self.outputs)

    def rounds(self, examples: Examples, rng: np.random.Generator) -> Array:
        """[n] rounds in which nodes are drawn: those of earlier rounds come first, in random order within a round."""
        return np.zeros(len(examples.y), np.int64)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """30 % of the nodes of each graph, those of the first rounds, and the others."""
        batch = store.cut(ids)
        whole = self.examples(batch, rng)
        rounds, graph, starts = self.rounds(whole, rng), batch.batch.numpy(), batch.node_ptr.numpy()
        order = np.lexsort((rng.random(len(graph)), rounds, graph))
        rank = np.arange(len(graph)) - starts[graph]
        chosen = np.zeros(len(graph), bool)
        chosen[order] = rank < share(np.diff(starts), 0.3)[graph]
        support, target = torch.from_numpy(np.flatnonzero(chosen)), torch.from_numpy(np.flatnonzero(~chosen))
        return Examples(batch, whole.y[support], support), Examples(batch, whole.y[target], target)

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """Embeddings as they are."""
        return h if examples.index is None else h[examples.index]
