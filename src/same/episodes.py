"""What a method learns from in one step: multi-task episodes (Algorithm 4), and the batches of Appendix A."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from same.errors import InputError
from same.graphs.batch import GraphBatch, move_tensor
from same.graphs.store import GraphStore
from same.streams import Stream, stream
from same.tasks.task import Examples, GraphTask, Task, share

Array = np.ndarray

VALIDATION_NODES = 2**16
"""About how many nodes a validation episode has at most; of a larger set it is a sample."""


class Part(NamedTuple):
    """What an episode holds for one task: E(t) = (L(t), S(t), T(t)), the loss being the task's."""

    task: Task
    support: Examples
    target: Examples


Episode = list[Part]
"""A multi-task episode: for each task a support set and a target set."""

Batch = list[tuple[Task, Examples]]
"""Examples of several tasks, performed concurrently."""


def multi_task_episode(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Episode:
    """Algorithm 4: the graphs are dealt out equally to the tasks, and each task cuts its own into support and target.

    Args:
        store: the set.
        tasks: what is learned.
        ids: a batch of graphs, in random order.
        rng: the source of all cuts.
    """
    # If equal shares do not come out even, chance says which tasks get one more.
    sizes = np.full(len(tasks), len(ids) // len(tasks))
    sizes[rng.permutation(len(sizes))[: len(ids) % len(sizes)]] += 1
    dealt = np.split(ids, np.cumsum(sizes)[:-1])
    return [Part(task, *task.cut(store, own, rng)) for task, own in zip(tasks, dealt, strict=True)]


def whole_episode(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Episode:
    """An episode for validation, in which every task uses all the graphs."""
    return [Part(task, *task.cut(store, ids, own)) for task, own in zip(tasks, _generators(tasks, rng), strict=True)]


def _generators(tasks: Sequence[Task], rng: np.random.Generator) -> list[np.random.Generator]:
    """A generator for each task: what one task draws does not depend on which others there are."""
    seed = int(rng.integers(2**63))
    keys = (zlib.crc32(task.name.encode()) for task in tasks)
    return [np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,)))) for key in keys]


def concurrent_batch(store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator) -> Batch:
    """All tasks on all graphs, as classical training has it (Algorithm 2)."""
    batch = store.cut(ids)
    return [(task, task.examples(batch, own)) for task, own in zip(tasks, _generators(tasks, rng), strict=True)]


def concurrent_episode(
    store: GraphStore, tasks: Sequence[GraphTask], ids: Array, rng: np.random.Generator
) -> tuple[Batch, Batch]:
    """One support and one target set of graphs, 60/40, all tasks on all graphs of each (Algorithm 3)."""
    first = int(share(np.array(len(ids)), 0.6))
    ids = rng.permutation(ids)
    return concurrent_batch(store, tasks, ids[:first], rng), concurrent_batch(store, tasks, ids[first:], rng)


Build = Callable[[GraphStore, Sequence[GraphTask], Array, np.random.Generator], Any]


@dataclass
class EpisodeSampler:
    """Draws what a method learns from, anew at every step, from some graphs of a set.

    An epoch passes over the graphs once, in a random order. Every draw depends on the seed, the split, the epoch and
    the step alone, so that it can be repeated after an interruption.

    Args:
        store: the set.
        ids: the graphs to draw from.
        tasks: what is learned.
        batch_size: how many graphs a step sees, about: the batches of an epoch are of equal size.
        build: makes the episode or batch of a step.
        seed: of the run.
        split: tells the streams of a run's splits apart.

    >>> from same.graphs import planted
    >>> from same.tasks import make_tasks
    >>> store = planted(30)
    >>> sampler = EpisodeSampler(store, np.arange(30), make_tasks(["gc", "nc"], store), batch_size=10)
    >>> sampler.steps
    3
    >>> [(task.name, support.inputs.num_graphs) for task, support, target in sampler.draw(epoch=0, step=0)]
    [('gc', 3), ('nc', 5)]
    """

    store: GraphStore
    ids: Array
    tasks: Sequence[GraphTask]
    batch_size: int
    build: Build = multi_task_episode
    seed: int = 0
    split: int = 0

    def __post_init__(self) -> None:
        # A multi-task episode needs two graphs of its own for each task, and other batches are not worse for it.
        least = 2 * len(self.tasks)
        if self.batch_size < least or len(self.ids) < least:
            raise InputError(
                f"batch_size: {len(self.tasks)} tasks need at least {least} graphs an episode, "
                f"not {self.batch_size} of {len(self.ids)}"
            )
        self.steps = max(1, min(round(len(self.ids) / self.batch_size), len(self.ids) // least))
        self._epoch: tuple[int, list[Array]] = (-1, [])

    def draw(self, epoch: int, step: int) -> Any:
        """The episode or batch of a step, 0..steps-1, of an epoch."""
        if self._epoch[0] != epoch:
            order = stream(self.seed, "episodes", self.split, epoch).permutation(self.ids)
            self._epoch = (epoch, np.array_split(order, self.steps))
        rng = stream(self.seed, "episodes", self.split, epoch, step + 1)
        return self.build(self.store, self.tasks, self._epoch[1][step], rng)


def fixed(
    build: Build,
    store: GraphStore,
    tasks: Sequence[GraphTask],
    ids: Array,
    *,
    count: int = 1,
    seed: int = 0,
    split: int = 0,
    name: Stream = "validation",
) -> list[Any]:
    """Episodes or batches of all of some graphs, for validation: the same whenever they are made.

    Where the graphs are too many to be validated on time and again, each episode is a sample of its own.
    """
    if len(ids) < 2:
        raise InputError(f"{store.name}: {len(ids)} graphs for {name}; at least two are needed")
    sizes = store.node_ptr[ids + 1] - store.node_ptr[ids]
    large, built = int(sizes.sum()) > VALIDATION_NODES, []
    for number in range(count):
        rng, some = stream(seed, name, split, number), ids
        if large:
            order = rng.permutation(len(ids))
            some = ids[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), VALIDATION_NODES)))]]
        built.append(build(store, tasks, some, rng))
    return built


def count_targets(thing: Any) -> dict[str, int]:
    """How many examples of each task an episode or batch tests on."""
    if isinstance(thing, tuple) and thing and isinstance(thing[0], list):
        return count_targets(thing[1])  # Of a support and a target batch, the latter.
    return {task.name: len(examples[-1].y) for task, *examples in thing if isinstance(task, Task)}


def embed(encoder: Callable[[Any], Tensor], sets: Sequence[Examples]) -> list[Examples]:
    """The same examples with their embeddings known: everything there is to encode is encoded once.

    Args:
        encoder: from inputs to rows of embeddings.
        sets: examples, some of which may share their inputs. Inputs that have a `concat`, as graphs do, are encoded in
            one go.
    """
    inputs = list({id(examples.inputs): examples.inputs for examples in sets}.values())
    rows: Sequence[Tensor]
    if len(inputs) > 1 and hasattr(inputs[0], "concat"):
        joined, sizes = inputs[0].concat(inputs)
        rows = encoder(joined).split(sizes)
    else:
        rows = [encoder(each) for each in inputs]
    known = {id(each): h for each, h in zip(inputs, rows, strict=True)}
    return [replace(examples, embeddings=known[id(examples.inputs)]) for examples in sets]


def moved(thing: Any, where: Any) -> Any:
    """An episode or batch on another device, or with floating-point numbers of another type.

    What several examples share, they share afterwards.
    """
    known: dict[int, Any] = {}

    def move(thing: Any) -> Any:
        if isinstance(thing, GraphBatch):
            return thing.to(where)
        if isinstance(thing, Examples):
            if id(thing.inputs) not in known:
                known[id(thing.inputs)] = thing.inputs.to(where)
            index = None if thing.index is None else move_tensor(thing.index, where)
            return Examples(known[id(thing.inputs)], move_tensor(thing.y, where), index)
        if isinstance(thing, Part):
            return Part(*map(move, thing))
        return type(thing)(map(move, thing)) if isinstance(thing, list | tuple) else thing

    return move(thing)
