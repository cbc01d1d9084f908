"""What a task is."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn

from same.graphs.batch import Examples, GraphBatch
from same.graphs.flat import Array
from same.graphs.store import GraphStore
from same.linear import Features
from same.metrics import Kind


class Task(ABC):
    """A name, a loss and a score. Any object with these can be trained by `same.methods`."""

    name: str

    @abstractmethod
    def loss(self, output: Tensor, examples: Any) -> Tensor:
        """Scalar loss to minimise."""

    @abstractmethod
    def score(self, output: Tensor, examples: Any) -> float:
        """Score of the outputs; higher is better."""


class GraphTask(Task):
    """A task on graphs, which also has a head and can cut graphs into a support and a target set.

    A new task is one class with these methods. It is made without a set of graphs; `bind` adapts it to one.
    """

    kind: ClassVar[Kind]  # What the task predicts, which decides its metrics.
    pools: tuple[str, ...] = ()  # Poolings that a linear head may choose from, the simplest first.

    def bind(self, store: GraphStore) -> Self:
        """The task for a set, where a task depends on it, as the number of classes does."""
        return self

    def match(self, store: GraphStore) -> GraphStore:
        """A set to score, with its labels coded as this task codes them."""
        return store

    def reads(self, store: GraphStore) -> str | None:
        """Name of the label column of a set that the task predicts, or None."""
        return None

    @abstractmethod
    def missing(self, store: GraphStore) -> str | None:
        """What a set lacks for this task, or None."""

    @abstractmethod
    def head(self, width: int) -> nn.Module:
        """A new head for embeddings of this width."""

    @abstractmethod
    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """Algorithm 4: a support and a target set from the graphs with these ids."""

    @abstractmethod
    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All examples of a batch of whole graphs, for classical training and for probes."""

    @abstractmethod
    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """[examples, d] input of a linear probe, from the embeddings `h` of the nodes."""

    def pooled(self, pool: str) -> Self:
        """The task with another pooling, if it has `pools`."""
        return self


def features(task: GraphTask, examples: Examples, pools: tuple[str, ...] | None = None) -> Features:
    """Return the features of examples with embeddings, for each of the poolings; by default for all of the task."""
    assert examples.embeddings is not None
    h, names = examples.embeddings, task.pools if pools is None else pools if task.pools else ()
    x = {name: task.pooled(name).features(h, examples).cpu().numpy() for name in names}
    return Features(x or {"": task.features(h, examples).cpu().numpy()}, examples.y.cpu().numpy())


def judge(task: Task, output: Tensor, examples: Any) -> tuple[float, float]:
    """Loss and score of some outputs; the score is NaN where the loss is not finite."""
    loss = float(task.loss(output, examples))
    return loss, task.score(output, examples) if math.isfinite(loss) else math.nan


def loss_of(function: Callable[[Tensor, Tensor], Tensor], output: Tensor, y: Tensor) -> Tensor:
    """A mean loss; without examples, as in graphs without edges, it is 0 and has a gradient of 0."""
    return function(output, y) if len(y) else output.sum()


def share(counts: Array, part: float) -> Array:
    """[…] rounded share of each count; of two or more, at least one and not all."""
    wanted = np.floor(part * counts + 0.5).astype(np.int64)
    return np.where(counts < 2, wanted, np.clip(wanted, 1, counts - 1))


def ranks(groups: Array, rng: np.random.Generator) -> Array:
    """[n] random rank, 0, 1, …, of each member within its group; `groups` are [n] sorted numbers."""
    order = np.lexsort((rng.random(len(groups)), groups))
    rank = np.empty(len(groups), np.int64)
    rank[order] = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return rank
