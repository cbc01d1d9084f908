"""Index arithmetic on flat arrays."""

from typing import Any

import numpy as np

Array = np.ndarray

_EXACT = 2**24  # float32 represents every integer up to here.


def ranges(starts: Array, lengths: Array) -> Array:
    """Concatenate the integer ranges start, start+1, …, start+length-1."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def pointers(lengths: Array) -> Array:
    """Offsets of consecutive blocks: [0, l₀, l₀+l₁, …]."""
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def as_numbers(values: Any) -> Array:
    """Numbers as a float32 array, or float64 where float32 would lose digits; raises `TypeError` for anything else."""
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


def pick(node_ptr: Array, edge_ptr: Array, ids: Array) -> tuple[Array, Array, Array, Array]:
    """Rows of the nodes and of the edges of some graphs, in the order of `ids`, each followed by its new offsets."""
    sizes, counts = node_ptr[ids + 1] - node_ptr[ids], edge_ptr[ids + 1] - edge_ptr[ids]
    return ranges(node_ptr[ids], sizes), pointers(sizes), ranges(edge_ptr[ids], counts), pointers(counts)
