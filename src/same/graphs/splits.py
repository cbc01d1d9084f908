"""Ten splits of a set of graphs into training, validation and test graphs."""

from dataclasses import dataclass

import numpy as np

from same.errors import InputError
from same.graphs.store import GraphStore
from same.seeding import stream

Array = np.ndarray

PARTS = 10
# The order in which a class is dealt to the parts. With it, what remains of a class after the last full round never
# takes any of the three shares of any split further than one graph from 70/10/20; consecutive parts would.
_ORDER = np.array([0, 3, 6, 8, 1, 4, 7, 2, 5, 9])


@dataclass(frozen=True)
class Split:
    """Which graphs are for training, for validation and for testing: three sorted arrays of graph ids."""

    train: Array
    validation: Array
    test: Array


def parts(store: GraphStore, seed: int = 0) -> Array:
    """[G] the part, 0..9, of each graph: every class is dealt out evenly, at random.

    The result depends on the graphs' classes and the seed only, on no platform and no version of numpy.
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
    """A split into training and validation graphs alone, stratified by graph class.

    Args:
        store: the set.
        share: of the graphs that are held back, in (0, 1); at least two are.
        seed: of the draw.

    >>> from same.graphs.planted import planted
    >>> s = hold_out(planted(), 0.2)
    >>> len(s.train), len(s.validation), len(s.test)
    (240, 60, 0)
    """
    if not 0 < share < 1:
        raise InputError(f"validation: a share of the graphs lies between 0 and 1, not at {share}")
    count, n = max(2, round(share * store.num_graphs)), store.num_graphs
    if count >= n:
        raise InputError(f"{store.name}: has {n} graphs; {count} held back for validation leave none to learn from")
    # Graphs of a class lie side by side: equal steps take an equal share of each.
    held = np.zeros(n, bool)
    held[_shuffled(store, seed)[0][((np.arange(count) + 0.5) * n / count).astype(np.int64)]] = True
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def _shuffled(store: GraphStore, seed: int) -> tuple[Array, Array]:
    """[G] the graphs in a random order within their classes, one class after the other; and [G] their classes."""
    classes = store.graph_y if store.graph_classes is not None else None
    strata = np.zeros(store.num_graphs, np.int64) if classes is None else np.asarray(classes)
    # The raw bits are what numpy promises to keep; shuffles built on them are not.
    bits = stream(seed, "splits").bit_generator.random_raw(store.num_graphs)
    shuffled = np.lexsort((np.arange(store.num_graphs), bits, strata))
    return shuffled, strata


def split(store: GraphStore, k: int, seed: int = 0) -> Split:
    """Split k of ten: parts k and k+1 for testing, k+2 for validation, the other seven for training.

    Over the ten splits every graph is tested exactly twice.

    >>> from same.graphs.planted import planted
    >>> s = split(planted(), 0)
    >>> len(s.train), len(s.validation), len(s.test)
    (210, 30, 60)
    """
    if not 0 <= k < PARTS:
        raise InputError(f"split: {k} is not one of 0..{PARTS - 1}")
    turn = (parts(store, seed) - k) % PARTS
    return Split(np.flatnonzero(turn > 2), np.flatnonzero(turn == 2), np.flatnonzero(turn < 2))


def rare_classes(store: GraphStore) -> list[str]:
    """The graph classes too rare for every part to get one, as `name (count)`."""
    if store.graph_classes is None or store.graph_y is None:
        return []
    counts = np.bincount(store.graph_y, minlength=len(store.graph_classes))
    return [f"{name} ({count})" for name, count in zip(store.graph_classes, counts, strict=True) if count < PARTS]
