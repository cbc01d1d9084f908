"""Splits of a set of graphs into training, validation and test graphs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from same.errors import InputError
from same.graphs.flat import Array
from same.graphs.store import GraphStore
from same.seeding import stream

PARTS = 10
# Order in which the graphs of a class are dealt to the parts. With it, the graphs left over after the last full round
# never take any share of any split further than one graph from 70/10/20; with consecutive parts they would.
_ORDER = np.array([0, 3, 6, 8, 1, 4, 7, 2, 5, 9])


@dataclass(frozen=True)
class Split:
    """Sorted ids of the graphs for training, validation and testing."""

    train: Array
    validation: Array
    test: Array


def split(store: GraphStore, k: int, seed: int = 0) -> Split:
    """Split k of ten: parts k and k+1 for testing, k+2 for validation, the other seven for training.

    The graphs of every class are dealt out evenly to the ten parts, at random: every graph is tested exactly twice. The
    result depends on the classes of the graphs and the seed alone, not on the platform or the version of numpy.

    Args:
        store: the set.
        k: number of the split, 0..9.
        seed: seed of the parts.
    """
    if not 0 <= k < PARTS:
        raise InputError(f"split: {k} is not one of 0..{PARTS - 1}")
    if store.num_graphs < PARTS:
        raise InputError(f"{store.name}: has {store.num_graphs} graphs; ten splits need at least {PARTS}")
    shuffled, strata = _shuffled(store, seed)
    part, dealt = np.empty(store.num_graphs, np.int64), 0
    for members in np.split(shuffled, np.flatnonzero(np.diff(strata[shuffled])) + 1):
        part[members] = (_ORDER[np.arange(len(members)) % PARTS] + dealt) % PARTS
        dealt += len(members)
    part = (part - k) % PARTS
    return Split(np.flatnonzero(part > 2), np.flatnonzero(part == 2), np.flatnonzero(part < 2))


def hold_out(store: GraphStore, validation: Any, seed: int = 0) -> Split:
    """Split into training and validation graphs only.

    Args:
        store: the set.
        validation: share of the graphs to hold out, stratified by class, at least two; or their indices or mask; or
            None to hold out none.
        seed: seed of the draw.
    """
    n = store.num_graphs
    if validation is None:
        return Split(np.arange(n), np.empty(0, np.int64), np.empty(0, np.int64))
    held = np.zeros(n, bool)
    if isinstance(validation, int | float) and not isinstance(validation, bool):
        if not 0 < validation < 1:
            raise InputError(f"validation: a share of the graphs is between 0 and 1, not {validation}")
        count = max(2, round(validation * n))
        if count >= n:
            raise InputError(f"{store.name}: holding out {count} of {n} graphs for validation leaves none to train on")
        # Graphs of a class are next to each other: equal steps take an equal share of each class.
        validation = _shuffled(store, seed)[0][((np.arange(count) + 0.5) * n / count).astype(np.int64)]
    try:
        held[np.asarray(validation)] = True
    except (IndexError, ValueError, TypeError):
        raise InputError(f"validation: expected a fraction or indices of graphs, 0..{n - 1}") from None
    if held.all():
        raise InputError("validation: names all graphs, which leaves none to train on")
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def rare_classes(store: GraphStore) -> list[str]:
    """Graph classes with fewer graphs than there are parts, as `name (count)`."""
    return [f"{name} ({count})" for name, count in store.counts("graph").items() if count < PARTS]


def _shuffled(store: GraphStore, seed: int) -> tuple[Array, Array]:
    """[G] ids in random order within each class, class after class; and [G] classes."""
    strata = np.zeros(store.num_graphs, np.int64) if store.graph_classes is None else np.asarray(store.graph_y)
    # numpy guarantees the raw bits across versions, but not the shuffles built on them.
    bits = stream(seed, "splits").bit_generator.random_raw(store.num_graphs)
    return np.lexsort((np.arange(store.num_graphs), bits, strata)), strata
