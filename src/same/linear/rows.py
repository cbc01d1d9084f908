"""Rows of features for linear models: standardised in float64, in blocks, so that the features may lie in a file."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from same.errors import InputError

Array = np.ndarray

_BLOCK = 8192  # Few rows enough for the processor's cache, and enough for fast matrix products.
_KEPT_BYTES = 2**29


class Scaler(NamedTuple):
    """Standardises columns and appends a constant 1, the feature of the bias.

    Attributes:
        mean: [d] subtracted from the columns.
        scale: [d] divides the columns.
    """

    mean: Array
    scale: Array

    def rows(self, x: Array) -> Array:
        """[n, d + 1] standardised rows, in float64."""
        rows = np.empty((len(x), x.shape[1] + 1))
        np.subtract(x, self.mean, out=rows[:, :-1])
        rows[:, :-1] /= self.scale
        rows[:, -1] = 1
        return rows

    def product(self, x: Array, coef: Array) -> Array:
        """[n, k] products of the standardised rows with coefficients [k, d + 1]."""
        result = np.empty((len(x), len(coef)))
        for part in blocks(len(x)):
            result[part] = self.rows(x[part]) @ coef.T
        return result


class Rows:
    """Training rows in blocks, with their slices; kept in memory unless they are too many.

    Args:
        x: [n, d] features, possibly memory-mapped.
        standardise: whether to scale them to mean 0 and standard deviation 1.
    """

    def __init__(self, x: Array, *, standardise: bool = True) -> None:
        if not len(x):
            raise InputError("a linear model needs training examples; there are none")
        self.scaler = Scaler(*(column_scaling(x) if standardise else (np.zeros(x.shape[1]), np.ones(x.shape[1]))))
        self.x, self.parts, self.shape = x, blocks(len(x)), (len(x), x.shape[1] + 1)
        small = 8 * self.shape[0] * self.shape[1] <= _KEPT_BYTES
        self.kept = [self.scaler.rows(x[part]) for part in self.parts] if small else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for i, part in enumerate(self.parts):
            yield part, self.scaler.rows(self.x[part]) if self.kept is None else self.kept[i]


def blocks(n: int, size: int | None = None) -> list[slice]:
    """Slices of at most `size` rows that cover n rows."""
    size = size or _BLOCK
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def column_scaling(x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, in float64; a constant column gets a deviation of 1.

    >>> column_scaling(np.array([[1.0, 7.0], [3.0, 7.0]]))
    (array([2., 7.]), array([1., 1.]))
    """
    zeros = np.zeros(x.shape[1])
    mean = sum((x[part].sum(axis=0, dtype=np.float64) for part in blocks(len(x))), zeros) / len(x)
    squares = sum((np.square(x[part] - mean).sum(axis=0) for part in blocks(len(x))), zeros)
    std = np.sqrt(squares / len(x))
    return mean, np.where(std > 1e-7 * np.abs(mean), std, 1.0)
