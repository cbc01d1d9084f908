"""Rows of features for linear models: standardised in float64, in blocks, so that the features may lie in a file."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from same.errors import InputError

Array = np.ndarray

_BLOCK = 8192  # Few rows enough for the processor's cache, and enough for fast matrix products.
_KEPT_BYTES = 2**29


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # Takes milliseconds, as long as a small model.


def one_thread() -> Any:
    """Limit products to one thread: more slow down those of this size, many times over on a busy machine."""
    return _controller().limit(limits=1)


class Scaler(NamedTuple):
    """Subtracts means from columns, divides by scales, and appends a constant 1, the feature of the bias."""

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
        with one_thread():
            for part in blocks(len(x), _BLOCK):
                result[part] = self.rows(x[part]) @ coef.T
        return result


class Rows:
    """Training rows [n, d], possibly memory-mapped, in blocks with their slices; kept unless they are too many."""

    def __init__(self, x: Array, *, standardise: bool = True) -> None:
        if not len(x):
            raise InputError("a linear model needs training examples; there are none")
        self.scaler = Scaler(*(column_scaling(x) if standardise else (np.zeros(x.shape[1]), np.ones(x.shape[1]))))
        self.x, self.parts, self.shape = x, blocks(len(x), _BLOCK), (len(x), x.shape[1] + 1)
        small = 8 * self.shape[0] * self.shape[1] <= _KEPT_BYTES
        self.kept = [self.scaler.rows(x[part]) for part in self.parts] if small else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for i, part in enumerate(self.parts):
            yield part, self.scaler.rows(self.x[part]) if self.kept is None else self.kept[i]


def blocks(n: int, size: int) -> list[slice]:
    """Slices of at most `size` rows that cover n rows."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def column_scaling(x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, in float64; a constant column gets a deviation of 1."""
    zeros, parts = np.zeros(x.shape[1]), blocks(len(x), _BLOCK)
    mean = sum((x[part].sum(axis=0, dtype=np.float64) for part in parts), zeros) / len(x)
    std = np.sqrt(sum((np.square(x[part] - mean).sum(axis=0) for part in parts), zeros) / len(x))
    return mean, np.where(std > 1e-7 * np.abs(mean), std, 1.0)
