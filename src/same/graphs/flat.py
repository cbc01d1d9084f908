"""Flat arrays: how a set of graphs is laid out, and the index arithmetic to pick graphs from it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

_EXACT = 2**24  # float32 represents every integer up to here.


def ranges(starts: Array, lengths: Array) -> Array:
    """Concatenate the integer ranges start, start+1, …, start+length-1.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def pointers(lengths: Array) -> Array:
    """Offsets of consecutive blocks: [0, l₀, l₀+l₁, …].

    >>> pointers(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def distinct(numbers: Array) -> Array:
    """Sorted distinct numbers: `np.unique`, several times as fast.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    numbers = np.sort(numbers)
    return numbers[np.concatenate([np.ones(min(len(numbers), 1), bool), numbers[1:] != numbers[:-1]])]


def as_numbers(values: Any) -> Array:
    """Numbers as a float32 array, or float64 where float32 would lose digits; raises `TypeError` for anything else.

    >>> as_numbers([1, 2]).dtype, as_numbers([1_700_000_001]).dtype, as_numbers([0.1]).dtype
    (dtype('float32'), dtype('float64'), dtype('float64'))
    """
    array = np.asarray(values)
    if array.dtype.kind == "f":
        single = array.dtype.itemsize <= 4
    elif array.dtype.kind in "iub":
        single = not array.size or (array.min() >= -_EXACT and array.max() <= _EXACT)
    else:
        raise TypeError(f"{array.dtype} are not numbers")
    return np.ascontiguousarray(array, np.float32 if single else np.float64)


def not_finite(numbers: Array) -> Array:
    """Mask of the numbers that are not finite in float32, the precision that a model computes in."""
    return ~(np.abs(numbers) <= np.finfo(np.float32).max)


class Picked(NamedTuple):
    """Indices of the nodes of some graphs, graph sizes, edges counted within each graph, and numbers of edges."""

    nodes: Array
    sizes: Array
    edges: Array
    counts: Array

    @property
    def joint_edges(self) -> Array:
        """[2, m] edges, with nodes counted through all picked graphs."""
        return self.edges + np.repeat(pointers(self.sizes)[:-1], self.counts)


@dataclass(frozen=True, eq=False)
class FlatGraphs:
    """The arrays of a `GraphStore`, which documents them."""

    name: str
    x: Array
    node_ptr: Array
    edges: Array
    edge_ptr: Array

    def __len__(self) -> int:
        return self.num_graphs

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes in all graphs."""
        return len(self.x)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges in all graphs."""
        return self.edges.shape[1]

    def pick(self, ids: Array) -> Picked:
        """Nodes and edges of the graphs with these ids, in this order."""
        sizes = self.node_ptr[ids + 1] - self.node_ptr[ids]
        counts = self.edge_ptr[ids + 1] - self.edge_ptr[ids]
        local = self.edges[:, ranges(self.edge_ptr[ids], counts)]
        return Picked(ranges(self.node_ptr[ids], sizes), sizes, local, counts)
