"""A linear support vector machine, solved exactly: the objective of scikit-learn's default `LinearSVC`."""

import logging
import math
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from same.errors import InputError

log = logging.getLogger("same")

Array = np.ndarray

_BLOCK = 8192
_KEPT_BYTES = 2**29
_MANY, _MANY_BYTES = 2**20, 2**27


class LinearSVM:
    """One-vs-rest linear classifiers on standardised features, each the minimum of

        ½ ‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ)²,   x with a constant 1 for the bias, y = ±1

    Between two changes of the set of rows inside the margin the objective is quadratic, so a few Newton steps on its
    (d+1) unknowns reach the minimum to rounding, where coordinate descent on the dual takes minutes to come close.

    Args:
        C: how much rows inside the margin count.
        max_iter: the most Newton steps; a handful is usual.

    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> LinearSVM().fit(x, y).predict(np.array([[0.5], [2.5]])).tolist()
    ['low', 'high']
    """

    def __init__(self, C: float = 1.0, max_iter: int = 1000) -> None:  # noqa: N803
        if not (C > 0 and np.isfinite(C)):
            raise InputError(f"C: {C} is not a positive number")
        self.C, self.max_iter = C, max_iter

    def fit(self, x: Any, y: Any) -> "LinearSVM":
        """Fits scaling and classifiers to rows `x` [n, d], which may be memory-mapped, and their classes `y` [n]."""
        x, y = _as_rows(x), np.asarray(y)
        self.classes_ = np.unique(y)
        self.mean_, self.scale_ = column_scaling(x)
        # Two classes need one classifier, and one class none.
        positive = self.classes_[1:] if len(self.classes_) <= 2 else self.classes_
        self.coef_ = np.zeros((max(1, len(positive)), x.shape[1] + 1))
        # Matrices of this size lose time to threads, many times over on a busy machine.
        with threadpool_limits(1):
            if len(positive):
                signs = np.where(y[:, None] == positive, np.int8(1), np.int8(-1))
                self.coef_ = _solve(_Blocks(x, self._rows), signs, self.C, self.max_iter)
        return self

    def decision_function(self, x: Any) -> Array:
        """[n] for two classes, [n, k] for more: how far each row is on a class's side."""
        x = _as_rows(x)
        decision = np.empty((len(x), len(self.coef_)))
        with threadpool_limits(1):
            for part in _parts(len(x)):
                decision[part] = self._rows(x[part]) @ self.coef_.T
        return decision[:, 0] if len(self.classes_) <= 2 else decision

    def predict(self, x: Any) -> Array:
        """[n] the classes."""
        decision = self.decision_function(x)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(decision))
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def _rows(self, x: Array) -> Array:
        """The rows standardised, with a 1 behind."""
        rows = np.empty((len(x), x.shape[1] + 1))
        np.subtract(x, self.mean_, out=rows[:, :-1])
        rows[:, :-1] /= self.scale_
        rows[:, -1] = 1
        return rows


def objective(w: Array, rows: Array, y: Array, C: float) -> float:  # noqa: N803
    """½ ‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ)²."""
    return float(0.5 * w @ w + C * np.square(np.maximum(0, 1 - y * (rows @ w))).sum())


def _as_rows(x: Any) -> Array:
    return x if isinstance(x, np.ndarray) else np.asarray(x)


def _parts(n: int, block: int | None = None) -> list[slice]:
    """Blocks of rows: small enough for the cache of a processor, many enough for its matrix products."""
    block = block or _BLOCK
    return [slice(i, min(i + block, n)) for i in range(0, n, block)]


def _zeros(shape: tuple[int, ...], dtype: type = float) -> Array:
    """An array of zeros, in a temporary file where it is large."""
    if math.prod(shape) * np.dtype(dtype).itemsize <= _MANY_BYTES:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype, mode="w+", shape=shape))


class _Blocks:
    """The standardised rows, block by block; kept where they are not too many, otherwise made anew every time."""

    def __init__(self, x: Array, rows: Callable[[Array], Array]) -> None:
        self.x, self.rows, self.parts = x, rows, _parts(len(x))
        small = len(x) * (x.shape[1] + 1) * 8 <= _KEPT_BYTES
        self.kept = [rows(x[part]) for part in self.parts] if small else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for i, part in enumerate(self.parts):
            yield part, self.rows(self.x[part]) if self.kept is None else self.kept[i]


def column_scaling(x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns; a constant column is left at 0."""
    mean = sum((x[part].sum(axis=0, dtype=np.float64) for part in _parts(len(x))), np.zeros(x.shape[1])) / len(x)
    squares = (np.square(x[part] - mean).sum(axis=0) for part in _parts(len(x)))
    std = np.sqrt(sum(squares, np.zeros(x.shape[1])) / len(x))
    return mean, np.where(std > 1e-7 * np.abs(mean), std, 1.0)


def _solve(blocks: _Blocks, y: Array, C: float, max_iter: int) -> Array:  # noqa: N803
    """[k, d] the minimum of each classifier, by Newton steps with a line search; they share the passes over the rows.

    Args:
        blocks: the rows [n, d].
        y: [n, k] ±1.
        C: see `LinearSVM`.
        max_iter: the most steps.
    """
    n, k = y.shape
    d = blocks.x.shape[1] + 1
    gram, sums = np.zeros((d, d)), np.zeros((k, d))
    for part, rows in blocks:
        gram += rows.T @ rows
        sums += y[part].T.astype(float) @ rows
    # At w = 0, every row is inside the margin. For the rows inside classifier c's, `grams[c]` is Σ x xᵀ and `sums[c]`
    # is Σ y x, so that the gradient takes no pass over the rows.
    grams, inside = [gram.copy() for _ in range(k)], _zeros((n, k), bool)
    inside[:] = True
    w, f, space = np.zeros((k, d)), _zeros((n, k)), _zeros((n * k,))
    active = np.arange(k)

    def margins(part: slice) -> tuple[Array, Array]:
        now = y[part][:, active] * f[part][:, active] < 1
        return now, now != inside[part][:, active]

    for _ in range(max_iter):
        counts = np.zeros((2, len(active)), int)
        for part in blocks.parts:
            now, changed = margins(part)
            counts += now.sum(axis=0), changed.sum(axis=0)
        # Whichever is less: what changed, or all anew.
        anew = counts[1] >= counts[0]
        for c in active[anew]:
            grams[c][:], sums[c] = 0, 0
        for part, rows in blocks if counts[1].any() else ():
            now, changed = margins(part)
            for i, c in enumerate(active):
                _add(grams[c], sums[c], rows, y[part, c], now[:, i] if anew[i] else now[:, i] & changed[:, i])
                if not anew[i]:
                    _add(grams[c], sums[c], rows, y[part, c], changed[:, i] & ~now[:, i], sign=-1)
            inside[part][:, active] = now
        gradient = np.stack([w[c] + 2 * C * (grams[c] @ w[c] - sums[c]) for c in active])
        going = np.abs(gradient).max(axis=1) > 1e-8 * max(1.0, C * n)
        active, gradient = active[going], gradient[going]
        if not len(active):
            return w
        steps = np.stack([_newton(grams[c], g, C) for c, g in zip(active, gradient, strict=True)])
        along = space[: n * len(active)].reshape(n, len(active))
        for part, rows in blocks:
            along[part] = (steps @ rows.T).T  # Several times faster than rows @ steps.T, where steps are few.
        for i, c in enumerate(active):
            size = _line_search(w[c], steps[i], f[:, c], along[:, i], y[:, c], C)
            w[c] += size * steps[i]
            for part in _parts(n, _MANY):
                f[part, c] += size * along[part, i]
    log.warning("the SVM has not converged in %d Newton steps (C = %g)", max_iter, C)
    return w


def _add(gram: Array, total: Array, rows: Array, y: Array, which: Array, sign: int = 1) -> None:
    if which.any():
        picked = rows[which]
        gram += sign * (picked.T @ picked)
        total += sign * (y[which] @ picked)


def _newton(gram: Array, gradient: Array, C: float) -> Array:  # noqa: N803
    hessian = 2 * C * gram
    hessian.flat[:: len(hessian) + 1] += 1
    return -scipy.linalg.solve(hessian, gradient, assume_a="pos")


def _line_search(w: Array, step: Array, f: Array, along: Array, y: Array, C: float) -> float:  # noqa: N803
    """How far to go: the minimum along the step, which is where the slope of a piecewise parabola vanishes."""
    ww, ws, ss = w @ w, w @ step, step @ step

    def slope(t: float) -> float:
        total = 0.0
        for part in _parts(len(y), _MANY):
            residual = 1 - y[part] * (f[part] + t * along[part])
            total += 2 * C * ((residual > 0) * residual * y[part]) @ along[part]
        return float(ws + t * ss - total)

    if slope(1.0) <= 0 or abs(slope(1.0)) < 1e-9 * (1 + abs(ww)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2
