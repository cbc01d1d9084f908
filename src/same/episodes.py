"""What a method learns from in one step: multi-task episodes (Algorithm 4), and the batches of Appendix A."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from same.errors import InputError
from same.graphs.batch import Examples, GraphBatch, move_tensor
from same.graphs.flat import Array
from same.graphs.store import GraphStore
from same.seeding import stream
from same.tasks.task import GraphTask, Task, share

VALIDATION_NODES = 2**16
"""About the most nodes of a validation episode; for larger sets it is a random subset."""

HEAD_NODES = 2**18
"""About the most nodes of graphs that linear heads are fitted to, and of those that choose their C."""

PARTS = ("train", "validation", "test")  # Of a split.
_DRAWS = (*PARTS, "again")  # Streams of examples: `again` is a second draw for training graphs.


class Part(NamedTuple):
    """One task of an episode, E(t) = (L(t), S(t), T(t)), where the task has the loss L(t)."""

    task: Task
    support: Examples
    target: Examples


Episode = list[Part]  # A multi-task episode: a support set and a target set for each task.
Batch = list[tuple[Task, Examples]]  # Examples of several tasks that are learned concurrently.
Draw = Callable[[GraphStore, Sequence[GraphTask], Array, np.random.Generator], Any]
"""Function from (store, tasks, graph ids, generator) to an episode or a batch."""


def multi_task_episode(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Episode:
    """Algorithm 4: deal the graphs equally to the tasks; each task cuts its share into support and target."""
    # If the graphs cannot be dealt evenly, random tasks get one more.
    sizes = np.full(len(tasks), len(ids) // len(tasks))
    sizes[rng.permutation(len(sizes))[: len(ids) % len(sizes)]] += 1
    shares = np.split(ids, np.cumsum(sizes)[:-1])
    return [Part(task, *task.cut(store, part, rng)) for task, part in zip(tasks, shares, strict=True)]


def whole_episode(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Episode:
    """A validation episode, in which every task uses all graphs."""
    return [Part(task, *task.cut(store, ids, own)) for task, own in zip(tasks, _spawn(tasks, rng), strict=True)]


def _spawn(tasks: Sequence[Task], rng: np.random.Generator) -> list[np.random.Generator]:
    """One generator per task, so that the draws of a task do not depend on which other tasks there are."""
    seed = int(rng.integers(2**63))
    keys = (zlib.crc32(task.name.encode()) for task in tasks)
    return [np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,)))) for key in keys]


def concurrent_batch(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Batch:
    """All tasks on all graphs, as in classical training (Algorithm 2)."""
    batch = store.cut(ids)
    return [(task, task.examples(batch, own)) for task, own in zip(tasks, _spawn(tasks, rng), strict=True)]


def concurrent_episode(
    store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator
) -> tuple[Batch, Batch]:
    """One support and one target set of graphs, 60/40, with all tasks on all graphs of each (Algorithm 3)."""
    first = int(share(np.array(len(ids)), 0.6))
    ids = rng.permutation(ids)
    return concurrent_batch(store, tasks, ids[:first], rng), concurrent_batch(store, tasks, ids[first:], rng)


@dataclass
class EpisodeSampler:
    """Draws the episodes or batches of a training, anew at every step.

    An epoch passes over the graphs once, in random order. A draw depends only on the seed, the split, the epoch and
    the step, so it can be repeated after an interruption.

    Args:
        store: set of graphs.
        ids: graphs to draw from.
        tasks: tasks to learn.
        batch_size: approximate number of graphs per step; all batches of an epoch have equal size.
        build: function that makes the episode or batch of a step.
        seed: seed of the run.
        split: number of the split, which selects the stream.
    """

    store: GraphStore
    ids: Array
    tasks: Sequence[GraphTask]
    batch_size: int
    build: Draw = multi_task_episode
    seed: int = 0
    split: int = 0

    def __post_init__(self) -> None:
        # A multi-task episode needs two graphs for each task.
        least = 2 * len(self.tasks)
        if self.batch_size < least or len(self.ids) < least:
            raise InputError(
                f"batch_size: {len(self.tasks)} tasks need at least {least} graphs per episode, "
                f"not {self.batch_size} of {len(self.ids)}"
            )
        self.steps = max(1, min(round(len(self.ids) / self.batch_size), len(self.ids) // least))
        self._epoch: tuple[int, list[Array]] = (-1, [])

    def draw(self, epoch: int, step: int) -> Any:
        """Return the episode or batch of a step, 0..steps-1, of an epoch."""
        if self._epoch[0] != epoch:
            order = stream(self.seed, "episodes", self.split, epoch).permutation(self.ids)
            self._epoch = (epoch, np.array_split(order, self.steps))
        rng = stream(self.seed, "episodes", self.split, epoch, step + 1)
        return self.build(self.store, self.tasks, self._epoch[1][step], rng)


def validation_episodes(
    build: Draw,
    store: GraphStore,
    tasks: Sequence[GraphTask],
    ids: Array,
    *,
    count: int = 1,
    seed: int = 0,
    split: int = 0,
) -> list[Any]:
    """Return fixed validation episodes over the given graphs; identical on every call.

    For large sets, each episode is a random subset of about `VALIDATION_NODES` nodes.
    """
    if len(ids) < 2:
        raise InputError(f"{store.name}: {len(ids)} graphs for validation; at least two are needed")
    sizes = store.node_ptr[ids + 1] - store.node_ptr[ids]
    large, episodes = int(sizes.sum()) > VALIDATION_NODES, []
    for number in range(count):
        rng, chosen = stream(seed, "validation", split, number), ids
        if large:
            order = rng.permutation(len(ids))
            chosen = ids[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), VALIDATION_NODES)))]]
        episodes.append(build(store, tasks, chosen, rng))
    return episodes


def sample_graphs(
    store: GraphStore, ids: Array, nodes: int, *, most: int | None = None, seed: int, split: int
) -> Array:
    """Return the given graphs, or a random sample of at most `most` graphs and about so many nodes."""
    sizes = store.node_ptr[ids + 1] - store.node_ptr[ids]
    if len(ids) <= (most or len(ids)) and int(sizes.sum()) <= nodes:
        return ids
    order = stream(seed, "validation", split, 2**31).permutation(len(ids))[:most]
    return np.sort(ids[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), nodes)))]])


def part_examples(
    store: GraphStore, ids: Array, tasks: Sequence[GraphTask], part: str, *, seed: int, split: int
) -> list[tuple[GraphTask, Examples]]:
    """Return all examples of each task in one part of a split; identical on every call.

    Held-out edges and negatives depend on the set, the seed and the split alone, so every model sees the same ones.
    """
    batch = store.cut(ids)
    # Every task draws from the start of the stream: its examples do not depend on which other tasks there are.
    return [(task, task.examples(batch, stream(seed, "probes", split, _DRAWS.index(part)))) for task in tasks]


def to_device(batch: Any, target: Any) -> Any:
    """Return an episode or batch on another device, or with floating-point numbers of another type.

    Inputs that several examples share stay shared.
    """
    shared: dict[int, Any] = {}

    def move(item: Any) -> Any:
        if isinstance(item, GraphBatch):
            return item.to(target)
        if isinstance(item, Examples):
            if id(item.inputs) not in shared:
                shared[id(item.inputs)] = item.inputs.to(target)
            index = None if item.index is None else move_tensor(item.index, target)
            return Examples(shared[id(item.inputs)], move_tensor(item.y, target), index)
        if isinstance(item, Part):
            return Part(*map(move, item))
        return type(item)(map(move, item)) if isinstance(item, list | tuple) else item

    return move(batch)
