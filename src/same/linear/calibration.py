"""Probabilities from decision values: temperature scaling, or Platt scaling for two classes."""

from typing import Any, NamedTuple

import numpy as np

from same.linear.rows import Array
from same.metrics import Kind


class Calibration(NamedTuple):
    """Probabilities softmax(a z + b e) of logits z, where e is 1 for the last class and 0 for the others.

    The slope a > 0 is an inverse temperature; the offset b is 0 for more than two classes.
    """

    slope: float = 1.0
    offset: float = 0.0

    def proba(self, z: Array) -> Array:
        """[n, k] probabilities of logits [n, k]."""
        from scipy.special import softmax

        return softmax(self.slope * z + self.offset * np.eye(z.shape[1])[-1], axis=1)


def logits(kind: Kind, decision: Array, classes: int) -> Array:
    """[n, k] logits of decision values f: (0, f) for links, (−f, f) for two classes, f for more."""
    if decision.ndim > 1:
        return decision
    return np.stack([np.zeros_like(decision) if kind == "links" else -decision, decision], axis=1)[:, -classes:]


def calibrate(z: Array, y: Array) -> Calibration:
    """Slope and offset with the least log loss, and a penalty that keeps them finite:

        −Σ log softmax(a z + b e)[y] + ½ (log a)² + ½ b²

    The penalty is 0 without calibration (a = 1, b = 0), so calibration never raises the log loss of these examples.

    Args:
        z: [n, k] logits of validation examples.
        y: [n] column of the true class of each.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    truth, last = np.arange(z.shape[1]) == y[:, None], np.eye(z.shape[1])[-1]

    def objective(point: Array) -> Any:  # Value and gradient at (log a, b).
        scaled = np.exp(point[0]) * z
        log_p = log_softmax(scaled + point[1] * last, axis=1)
        error = np.exp(log_p) - truth
        gradient = np.array([(error * scaled).sum(), (error * last).sum()]) + point
        return -log_p[truth].sum() + point @ point / 2, gradient

    bounds = [(-20, 20), (-20, 20) if len(last) == 2 else (0, 0)]
    best = minimize(objective, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds)
    return Calibration(float(np.exp(best.x[0])), float(best.x[1]))
