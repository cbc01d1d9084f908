"""Ridge regression, solved exactly from the normal equations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from same.errors import InputError
from same.linear.rows import Array, Rows, Scaler, column_scaling, one_thread


class Ridge:
    """Linear regression on standardised features with a penalty λ, the minimum of

        Σ (yᵢ − w·xᵢ − b)² + λ ‖w‖²

    Targets are standardised inside, so that their units do not matter.
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
        fit_path([self], x, y)
        return self

    def predict(self, x: Any) -> Array:
        """[n] or [n, t] predicted targets, in their units."""
        return self.scaler_.product(np.asarray(x), self.coef_).reshape(-1, *self.y_scale_.shape)


def fit_path(models: Sequence[Ridge], x: Any, y: Any) -> None:
    """Fit models that differ in the penalty alone, from one decomposition; see `Ridge.fit`."""
    x, y = np.asarray(x), np.asarray(y, np.float64)
    targets = y.reshape(len(y), -1)
    with one_thread():
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
