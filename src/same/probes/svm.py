"""A linear support vector machine, solved exactly: the objective of scikit-learn's default `LinearSVC`."""

import logging
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from same.errors import InputError

log = logging.getLogger("same")

Array = np.ndarray

_BLOCK = 8192


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
        """Fits scaling and classifiers to rows `x` [n, d] and their classes `y` [n]."""
        x, y = np.asarray(x), np.asarray(y)
        self.classes_ = np.unique(y)
        self.mean_, self.scale_ = _scaling(x)
        # Two classes need one classifier, and one class none.
        positive = self.classes_[1:] if len(self.classes_) <= 2 else self.classes_
        # Matrices of this size lose time to threads, many times over on a busy machine.
        with threadpool_limits(1):
            rows = self._rows(x)
            gram = rows.T @ rows
            solved = [_solve(rows, gram, np.where(y == c, 1.0, -1.0), self.C, self.max_iter) for c in positive]
        self.coef_ = np.stack(solved) if solved else np.zeros((1, rows.shape[1]))
        return self

    def decision_function(self, x: Any) -> Array:
        """[n] for two classes, [n, k] for more: how far each row is on a class's side."""
        x = np.asarray(x)
        parts = [self._rows(x[i : i + _BLOCK]) @ self.coef_.T for i in range(0, len(x), _BLOCK)]
        decision = np.concatenate(parts) if parts else np.empty((0, len(self.coef_)))
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


def _scaling(x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns; a constant column is left at 0."""
    mean = x.mean(axis=0, dtype=np.float64)
    std = x.std(axis=0, dtype=np.float64)
    return mean, np.where(std > 1e-7 * np.abs(mean), std, 1.0)


def _solve(rows: Array, gram: Array, y: Array, C: float, max_iter: int) -> Array:  # noqa: N803
    """The minimum, by Newton steps with a line search; `gram` is Σ x xᵀ over all rows."""
    # At w = 0, every row is inside the margin.
    w, f = np.zeros(rows.shape[1]), np.zeros(len(rows))
    inside, gram = np.ones(len(rows), bool), gram.copy()
    for _ in range(max_iter):
        now = y * f < 1
        _update(gram, rows, now, inside)
        inside = now
        residual = np.where(inside, f - y, 0.0)
        gradient = w + 2 * C * (rows.T @ residual)
        if np.abs(gradient).max() <= 1e-8 * max(1.0, C * len(rows)):
            break
        hessian = 2 * C * gram
        hessian.flat[:: len(hessian) + 1] += 1
        step = -scipy.linalg.solve(hessian, gradient, assume_a="pos")
        along = rows @ step
        size = _line_search(w, step, f, along, y, C)
        w, f = w + size * step, f + size * along
    else:
        log.warning("the SVM has not converged in %d Newton steps (C = %g)", max_iter, C)
    return w


def _update(gram: Array, rows: Array, now: Array, before: Array) -> None:
    """Brings Σ x xᵀ over the rows inside the margin up to date, by whichever is less: what changed, or all anew."""
    changed = now != before
    if changed.sum() < now.sum():
        for sign, which in ((1, now & ~before), (-1, before & ~now)):
            picked = rows[which]
            gram += sign * (picked.T @ picked)
    else:
        picked = rows[now]
        gram[:] = picked.T @ picked


def _line_search(w: Array, step: Array, f: Array, along: Array, y: Array, C: float) -> float:  # noqa: N803
    """How far to go: the minimum along the step, which is where the slope of a piecewise parabola vanishes."""
    ww, ws, ss = w @ w, w @ step, step @ step

    def slope(t: float) -> float:
        residual = 1 - y * (f + t * along)
        return float(ws + t * ss - 2 * C * ((residual > 0) * residual * y) @ along)

    if slope(1.0) <= 0 or abs(slope(1.0)) < 1e-9 * (1 + abs(ww)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2
