"""What a task is."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.examples import Examples as Examples
from same.graphs.store import GraphStore

Array = np.ndarray
Kind = Literal["classes", "links", "numbers"]
"""What is told: one of several classes, yes or no for a pair of nodes, or numbers. It decides how a task is scored."""


class Task(ABC):
    """A name, a loss and a score. Any object with these can be learned by `same.methods`."""

    name: str

    @abstractmethod
    def loss(self, output: Tensor, examples: Any) -> Tensor:
        """The loss to minimise, a scalar."""

    @abstractmethod
    def score(self, output: Tensor, examples: Any) -> float:
        """How good the outputs are; more is better."""


class GraphTask(Task):
    """A task on graphs: one that also knows its head and how to cut graphs into a support and a target set.

    A task of your own is one class with these methods; see `same/tasks/regression.py`.
    """

    kind: ClassVar[Kind]

    @classmethod
    @abstractmethod
    def missing(cls, store: GraphStore) -> str | None:
        """What a set lacks for this task, or None if it has everything."""

    @abstractmethod
    def head(self, width: int) -> nn.Module:
        """A new head for embeddings of this width."""

    @abstractmethod
    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """Algorithm 4: a support and a target set from the graphs with these ids."""

    @abstractmethod
    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All that a batch of whole graphs offers: what classical training learns from, and what a probe sees."""

    @abstractmethod
    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """[examples, d] what a probe sees of the embeddings `h` of the examples' nodes."""


def judge(task: Task, output: Tensor, examples: Any) -> tuple[float, float]:
    """Return loss and score of some outputs; the score is NaN where the loss is not finite."""
    loss = float(task.loss(output, examples))
    return loss, task.score(output, examples) if math.isfinite(loss) else math.nan


def loss_of(function: Callable[[Tensor, Tensor], Tensor], output: Tensor, y: Tensor) -> Tensor:
    """A mean loss; of no examples, as graphs without edges give, it is 0 and moves nothing."""
    return function(output, y) if len(y) else output.sum()


def share(counts: Array, part: float) -> Array:
    """[…] a part of each count, rounded, but never nothing and never everything of two or more.

    >>> share(np.array([0, 1, 2, 10, 11]), 0.2)
    array([0, 0, 1, 2, 2])
    """
    wanted = np.floor(part * counts + 0.5).astype(np.int64)
    return np.where(counts < 2, wanted, np.clip(wanted, 1, counts - 1))


def ranks(groups: Array, rng: np.random.Generator) -> Array:
    """[n] a random order within each group: the place, 0, 1, …, of each member.

    Args:
        groups: [n] sorted group numbers.
        rng: the source of the order.

    >>> sorted(ranks(np.array([0, 0, 0, 5]), np.random.default_rng(0))[:3].tolist())
    [0, 1, 2]
    """
    order = np.lexsort((rng.random(len(groups)), groups))
    place = np.empty(len(groups), np.int64)
    place[order] = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return place
