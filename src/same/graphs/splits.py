"""Ten splits of a set of graphs into training, validation and test graphs."""

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


def parts(store: GraphStore, seed: int = 0) -> Array:
    """[G] part, 0..9, of each graph: the graphs of every class are dealt out evenly, at random.

    The result depends on the classes of the graphs and the seed alone, not on the platform or the version of numpy.
    """
    if store.num_graphs < PARTS:
        raise InputError(f"{store.name}: has {store.num_graphs} graphs; ten splits need at least {PARTS}")
    shuffled, strata = _shuffled(store, seed)
    part, dealt = np.empty(store.num_graphs, np.int64), 0
    for members in np.split(shuffled, np.flatnonzero(np.diff(strata[shuffled])) + 1):
        part[members] = (_ORDER[np.arange(len(members)) % PARTS] + dealt) % PARTS
        dealt += len(members)
    return part


def hold_out(store: GraphStore, share: float, seed: int = 0) -> Split:
    """Split into training and validation graphs only, stratified by graph class.

    Args:
        store: the set.
        share: share of the graphs to hold out, in (0, 1); at least two are held out.
        seed: seed of the draw.

    >>> from same.graphs.planted import planted
    >>> s = hold_out(planted(), 0.2)
    >>> len(s.train), len(s.validation), len(s.test)
    (240, 60, 0)
    """
    if not 0 < share < 1:
        raise InputError(f"validation: a share of the graphs is between 0 and 1, not {share}")
    count, n = max(2, round(share * store.num_graphs)), store.num_graphs
    if count >= n:
        raise InputError(f"{store.name}: has {n} graphs; holding out {count} for validation leaves none to train on")
    # Graphs of a class are next to each other: equal steps take an equal share of each class.
    held = np.zeros(n, bool)
    held[_shuffled(store, seed)[0][((np.arange(count) + 0.5) * n / count).astype(np.int64)]] = True
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def validation_split(store: GraphStore, validation: Any, seed: int = 0) -> Split:
    """A split into training and validation graphs, from a fraction or from the validation graphs themselves.

    Args:
        store: set of graphs.
        validation: fraction of the graphs to hold out, or their indices or mask.
        seed: seed of the draw.

    >>> from same.graphs.planted import planted
    >>> validation_split(planted(20), [3, 5]).validation.tolist()
    [3, 5]
    """
    if isinstance(validation, int | float) and not isinstance(validation, bool):
        return hold_out(store, validation, seed)
    held = np.zeros(len(store), bool)
    try:
        held[np.asarray(validation)] = True
    except (IndexError, ValueError, TypeError):
        raise InputError(f"validation: expected a fraction or indices of graphs, 0..{len(store) - 1}") from None
    if held.all():
        raise InputError("validation: names all graphs, which leaves none to train on")
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def _shuffled(store: GraphStore, seed: int) -> tuple[Array, Array]:
    """[G] ids in random order within each class, class after class; and [G] classes."""
    classes = store.graph_y if store.graph_classes is not None else None
    strata = np.zeros(store.num_graphs, np.int64) if classes is None else np.asarray(classes)
    # numpy guarantees the raw bits across versions, but not the shuffles built on them.
    bits = stream(seed, "splits").bit_generator.random_raw(store.num_graphs)
    shuffled = np.lexsort((np.arange(store.num_graphs), bits, strata))
    return shuffled, strata


def split(store: GraphStore, k: int, seed: int = 0) -> Split:
    """Split k of ten: parts k and k+1 for testing, k+2 for validation, the other seven for training.

    Over the ten splits, every graph is tested exactly twice.

    Args:
        store: the set.
        k: number of the split, 0..9.
        seed: seed of the parts.

    >>> from same.graphs.planted import planted
    >>> s = split(planted(), 0)
    >>> len(s.train), len(s.validation), len(s.test)
    (210, 30, 60)
    """
    if not 0 <= k < PARTS:
        raise InputError(f"split: {k} is not one of 0..{PARTS - 1}")
    part = (parts(store, seed) - k) % PARTS
    return Split(np.flatnonzero(part > 2), np.flatnonzero(part == 2), np.flatnonzero(part < 2))


def rare_classes(store: GraphStore) -> list[str]:
    """Graph classes with fewer graphs than there are parts, as `name (count)`."""
    if store.graph_classes is None or store.graph_y is None:
        return []
    counts = np.bincount(store.graph_y[store.graph_y >= 0], minlength=len(store.graph_classes))
    return [f"{name} ({count})" for name, count in zip(store.graph_classes, counts, strict=True) if count < PARTS]
