"""Episodes: what a method learns from in one step, drawn anew at every step (Algorithm 4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from same.errors import InputError
from same.graphs.store import GraphStore, move_tensor
from same.streams import stream
from same.tasks.task import Examples, GraphTask, Task

Array = np.ndarray


@dataclass(frozen=True)
class Part:
    """What an episode holds for one task: E(t) = (L(t), S(t), T(t))."""

    task: Task
    support: Examples
    target: Examples

    def __iter__(self) -> Iterator[Any]:
        return iter((self.task, self.support, self.target))


@dataclass(frozen=True, eq=False)
class Episode:
    """A multi-task episode: for each task a support set and a target set."""

    parts: Sequence[Part]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def to(self, where: torch.device | torch.dtype) -> "Episode":
        """The episode on another device, or with floating-point numbers of another type."""
        if where == torch.device("cpu"):  # Where episodes are made.
            return self
        moved = {id(inputs): inputs.to(where) for inputs in self.inputs}

        def move(examples: Examples) -> Examples:
            index = None if examples.index is None else move_tensor(examples.index, where)
            return Examples(moved[id(examples.inputs)], move_tensor(examples.y, where), index)

        return Episode([Part(task, move(support), move(target)) for task, support, target in self])

    @cached_property
    def inputs(self) -> list[Any]:
        """What there is to encode, each thing once: support and target may be parts of the same graphs."""
        return list({id(e.inputs): e.inputs for part in self.parts for e in (part.support, part.target)}.values())

    @cached_property
    def joined(self) -> tuple[Any, list[int]] | None:
        """The inputs as one, and how many rows each has, if they can be joined (as graphs can)."""
        return self.inputs[0].concat(self.inputs) if hasattr(self.inputs[0], "concat") else None


class EpisodeSampler:
    """Draws multi-task episodes from some graphs of a set.

    An epoch passes over the graphs once, in a random order. A batch of them is dealt out equally to the tasks, each
    graph to one task, and each task cuts its graphs into a support and a target set. Every draw depends on the seed,
    the epoch and the step alone, so that it can be repeated after an interruption.

    Args:
        store: the set.
        ids: the graphs to draw from.
        tasks: what is learned.
        batch_size: how many graphs an episode has, about: the batches of an epoch are of equal size.
        seed: of the run.
        split: tells the streams of a run's splits apart.
        device: where the episodes are wanted.

    >>> from same.graphs import planted
    >>> from same.tasks import make_tasks
    >>> store = planted(30)
    >>> sampler = EpisodeSampler(store, np.arange(30), make_tasks(["gc", "nc"], store), batch_size=10)
    >>> sampler.steps
    3
    >>> [(task.name, support.inputs.num_graphs) for task, support, target in sampler.draw(epoch=0, step=0)]
    [('gc', 3), ('nc', 5)]
    """

    def __init__(
        self,
        store: GraphStore,
        ids: Array,
        tasks: Sequence[GraphTask],
        *,
        batch_size: int,
        seed: int = 0,
        split: int = 0,
        device: torch.device | None = None,
    ) -> None:
        least = 2 * len(tasks)
        if batch_size < least or len(ids) < least:
            raise InputError(
                f"batch_size: {len(tasks)} tasks need at least {least} graphs an episode, "
                f"not {batch_size} of {len(ids)}"
            )
        self.store, self.ids, self.tasks = store, np.asarray(ids), tasks
        self.key, self.device = (seed, split), device or torch.device("cpu")
        self.steps = max(1, round(len(ids) / batch_size))
        self._epoch: tuple[int, list[Array]] = (-1, [])

    def draw(self, epoch: int, step: int) -> Episode:
        """The episode of a step, 0..steps-1, of an epoch."""
        seed, split = self.key
        if self._epoch[0] != epoch:
            order = stream(seed, "episodes", split, epoch).permutation(self.ids)
            self._epoch = (epoch, np.array_split(order, self.steps))
        rng = stream(seed, "episodes", split, epoch, step + 1)
        batch = self._epoch[1][step]
        # Equal shares; if they do not come out even, chance says which tasks get one more.
        sizes = np.full(len(self.tasks), len(batch) // len(self.tasks))
        sizes[rng.permutation(len(sizes))[: len(batch) % len(sizes)]] += 1
        dealt = np.split(batch, np.cumsum(sizes)[:-1])
        parts = [Part(task, *task.cut(self.store, own, rng)) for task, own in zip(self.tasks, dealt, strict=True)]
        return Episode(parts).to(self.device)


def fixed_episodes(
    store: GraphStore, ids: Array, tasks: Sequence[GraphTask], *, count: int, seed: int = 0, split: int = 0
) -> list[Episode]:
    """Episodes for validation: the same whenever they are made, and in each of them every task uses all the graphs."""
    if len(ids) < 2:
        raise InputError(f"{store.name}: {len(ids)} validation graphs; at least two are needed")
    episodes = []
    for number in range(count):
        rng = stream(seed, "validation", split, number)
        episodes.append(Episode([Part(task, *task.cut(store, ids, rng)) for task in tasks]))
    return episodes
