"""A linear support vector machine, solved exactly: the objective of scikit-learn's default `LinearSVC`."""

import logging
import math
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from same.errors import InputError
from same.linear.rows import Array, Rows, Scaler, blocks, one_thread

log = logging.getLogger("same")

_MAX_STEPS = 1000
_TOLERANCE = 1e-9  # Of decision values.
_MANY, _MANY_BYTES = 2**20, 2**27


class LinearSVM:
    """One-vs-rest linear classifiers, each the minimum of

        ½ ‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ)²,   x with a constant 1 for the bias, y = ±1

    The objective is quadratic as long as the rows inside the margin stay the same: a few Newton steps on its d + 1
    unknowns reach the minimum to rounding.

    Args:
        C: weight of the rows inside the margin.
        standardise: whether to scale features to mean 0 and standard deviation 1.

    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> LinearSVM().fit(x, y).predict(np.array([[0.5], [2.5]])).tolist()
    ['low', 'high']
    """

    classes_: Array
    scaler_: Scaler
    coef_: Array

    def __init__(self, C: float = 1.0, *, standardise: bool = True) -> None:  # noqa: N803
        if not (C > 0 and np.isfinite(C)):
            raise InputError(f"C: {C} is not a positive number")
        self.C, self.standardise = C, standardise

    def fit(self, x: Any, y: Any) -> "LinearSVM":
        """Fit to features `x` [n, d], possibly memory-mapped, and their classes `y` [n]."""
        fit_path([self], x, y)
        return self

    def decision_function(self, x: Any) -> Array:
        """[n] for two classes, [n, k] for more: positive on the side of the class, 1 at its margin."""
        decision = self.scaler_.product(np.asarray(x), self.coef_)
        return decision[:, 0] if len(self.classes_) <= 2 else decision

    def predict(self, x: Any) -> Array:
        """[n] predicted classes."""
        decision = self.decision_function(x)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]


def fit_path(models: Sequence[LinearSVM], x: Any, y: Any) -> None:
    """Fit models that differ in C alone, each to its exact minimum; see `LinearSVM.fit`.

    Each starts at the solution of the one before and keeps its sums over rows: eight cost as much as two or three.
    """
    x, y = np.asarray(x), np.asarray(y)
    classes = np.unique(y)
    # Two classes need one classifier, and one class none.
    positive = classes[1:] if len(classes) <= 2 else classes
    with one_thread():
        rows = Rows(x, standardise=models[0].standardise)
        solver = _Newton(rows, np.where(positive[:, None] == y, np.int8(1), np.int8(-1)))
        for model in models:
            model.classes_, model.scaler_ = classes, rows.scaler
            model.coef_ = solver.minimise(model.C) if len(positive) else np.zeros((1, x.shape[1] + 1))


class _Newton:
    """Newton steps with a line search, for k classifiers [k, n] of ±1 that share the passes over the rows.

    For the rows inside the margin of classifier c, `grams[c]` is Σ x xᵀ and `sums[c]` is Σ y x. They give gradient and
    Hessian without a pass over the rows, and stay valid when C changes.
    """

    def __init__(self, rows: Rows, y: Array) -> None:
        (k, n), d = y.shape, rows.shape[1]
        gram, sums = np.zeros((d, d)), np.zeros((k, d))
        for part, block in rows:
            gram += block.T @ block
            sums += y[:, part].astype(float) @ block
        self.rows, self.y, self.grams, self.sums = rows, y, [gram.copy() for _ in range(k)], sums
        self.w, self.f, self.along = np.zeros((k, d)), _zeros((k, n)), _zeros((k, n))
        self.outside = _zeros((k, n), bool)  # At w = 0 every row is inside the margin.

    def minimise(self, C: float) -> Array:  # noqa: N803
        """[k, d] minimum of each classifier, starting where the last call ended."""
        active, full = np.arange(len(self.y)), np.zeros(len(self.y), bool)
        for _ in range(_MAX_STEPS):
            # A full step that takes no row across the margin ends at the minimum.
            active = active[~full[active] | self._update_sums(active)]
            if not len(active):
                return self.w.copy()
            steps = np.stack([self._newton_step(c, C) for c in active])
            for part, block in self.rows:
                self.along[: len(active), part] = steps @ block.T
            far = np.ones(len(active), bool)
            for i, c in enumerate(active):
                size = _line_search(self.w[c], steps[i], self.f[c], self.along[i], self.y[c], C)
                self.w[c] += size * steps[i]
                for part in blocks(self.f.shape[1], _MANY):
                    self.f[c, part] += size * self.along[i, part]
                # Rounding may take a row on the margin from one side to the other for ever.
                full[c], far[i] = size == 1, size * np.abs(self.along[i]).max() > _TOLERANCE
            active = active[far]
        log.warning("the SVM has not converged in %d Newton steps (C = %g)", _MAX_STEPS, C)
        return self.w.copy()

    def _newton_step(self, c: int, C: float) -> Array:  # noqa: N803
        gradient = self.w[c] + 2 * C * (self.grams[c] @ self.w[c] - self.sums[c])
        hessian = 2 * C * self.grams[c]
        hessian.flat[:: len(hessian) + 1] += 1
        return -scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)

    def _update_sums(self, active: Array) -> Array:
        """Bring the sums of some classifiers up to date; whether any row has crossed the margin of each."""

        def margins(part: slice) -> tuple[Array, Array]:
            now = self.y[active, part] * self.f[active, part] < 1
            return now, now == self.outside[active, part]

        counts = np.zeros((2, len(active)), int)
        for part in self.rows.parts:
            now, changed = margins(part)
            counts += now.sum(axis=1), changed.sum(axis=1)
        # Whichever is less work: add and subtract the rows that changed, or sum those inside again.
        again = counts[1] >= counts[0]
        for c in active[again]:
            self.grams[c][:], self.sums[c] = 0, 0
        for part, block in self.rows if counts[1].any() else ():
            now, changed = margins(part)
            for i, c in enumerate(active):
                terms = [(1, now[i])] if again[i] else [(1, now[i] & changed[i]), (-1, changed[i] & ~now[i])]
                for sign, which in [(sign, which) for sign, which in terms if which.any()]:
                    picked = block[which]
                    self.grams[c] += sign * (picked.T @ picked)
                    self.sums[c] += sign * (self.y[c, part][which] @ picked)
            self.outside[active, part] = ~now
        return counts[1] > 0


def _zeros(shape: tuple[int, ...], dtype: type = float) -> Array:
    """An array of zeros, in a temporary file if it is large."""
    if math.prod(shape) * np.dtype(dtype).itemsize <= _MANY_BYTES:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype, mode="w+", shape=shape))


def _line_search(w: Array, step: Array, f: Array, along: Array, y: Array, C: float) -> float:  # noqa: N803
    """Step size in (0, 1] at the minimum along the step: where the slope, which is piecewise linear, vanishes."""
    ww, ws, ss = w @ w, w @ step, step @ step
    low, high, t = 0.0, 1.0, 1.0
    for _ in range(50):
        slope, rise = ws + t * ss, ss
        for part in blocks(len(y), _MANY):
            residual = 1 - y[part] * (f[part] + t * along[part])
            inside = np.where(residual > 0, along[part], 0.0)
            slope -= 2 * C * (residual * y[part]) @ inside
            rise += 2 * C * inside @ inside
        if abs(slope) < 1e-9 * (1 + ww) or (t == 1 and slope <= 0):
            break
        low, high = (low, t) if slope > 0 else (t, high)
        t -= slope / rise
        t = t if low < t < high else (low + high) / 2
    return float(t)
