"""Ridge regression, solved exactly from the normal equations."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from same.errors import InputError
from same.linear.rows import Array, Rows, Scaler, column_scaling


class Ridge:
    """Linear regression on standardised features, the minimum of

        Σ (yᵢ − w·xᵢ − b)² + λ ‖w‖²

    Targets are standardised inside, so that their units do not matter.

    Args:
        penalty: λ.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Ridge(penalty=1e-9).fit(x, 1000 * x[:, 0] + 5000).predict(np.array([[4.0]])).round(3)
    array([9000.])
    """

    scaler_: Scaler
    y_scale_: Array
    coef_: Array

    def __init__(self, penalty: float = 1.0) -> None:
        if not (penalty > 0 and np.isfinite(penalty)):
            raise InputError(f"penalty: {penalty} is not a positive number")
        self.penalty = penalty

    def fit(self, x: Any, y: Any) -> "Ridge":
        """Fit to features `x` [n, d], possibly memory-mapped, and targets `y` [n] or [n, t]."""
        _fit([self], np.asarray(x), np.asarray(y, np.float64))
        return self

    def predict(self, x: Any) -> Array:
        """[n] or [n, t] predicted targets, in their units."""
        with threadpool_limits(1):
            return self.scaler_.product(np.asarray(x), self.coef_).reshape(-1, *self.y_scale_.shape)


def fit_path(x: Any, y: Any, grid: Iterable[float]) -> list[Ridge]:
    """One ridge regression for each penalty of a grid, from the largest to the smallest, from one decomposition."""
    models = [Ridge(penalty) for penalty in sorted(grid, reverse=True)]
    _fit(models, np.asarray(x), np.asarray(y, np.float64))
    return models


def _fit(models: Sequence[Ridge], x: Array, y: Array) -> None:
    targets = y.reshape(len(y), -1)
    with threadpool_limits(1):
        rows, d = Rows(x), x.shape[1]
        mean, scale = column_scaling(targets)
        gram, product = np.zeros((d, d)), np.zeros((d, targets.shape[1]))
        for part, block in rows:
            gram += block[:, :-1].T @ block[:, :-1]
            product += block[:, :-1].T @ ((targets[part] - mean) / scale)
        # XᵀX = V diag(e) Vᵀ, hence w(λ) = V diag(1 / (e + λ)) Vᵀ Xᵀ y.
        values, vectors = np.linalg.eigh(gram)
        inner = vectors.T @ product
        for model in models:
            coef = vectors @ (inner / (np.maximum(values, 0) + model.penalty)[:, None])
            model.scaler_, model.y_scale_ = rows.scaler, scale.reshape(y.shape[1:])
            model.coef_ = np.c_[(coef * scale).T, mean]
