"""Temperature scaling (Guo, Pleiss, Sun & Weinberger, ICML 2017): probabilities from decision values."""

import numpy as np

from same.linear.rows import Array
from same.metrics import Kind


def logits(kind: Kind, decision: Array, classes: int) -> Array:
    """[n, k] logits of decision values f: (0, f) for links, (−f, f) for two classes, f for more."""
    if decision.ndim > 1:
        return decision
    return np.stack([np.zeros_like(decision) if kind == "links" else -decision, decision], axis=1)[:, -classes:]


def calibrate(z: Array, y: Array) -> float:
    """Return the slope a > 0, an inverse temperature, with the least log loss of p = softmax(a z):

        −Σ log softmax(a z)[y] + ½ (log a)²

    The penalty keeps it finite, and is 0 without calibration (a = 1). A slope does not change which class is most
    probable, so predictions, decision values and probabilities agree.

    Args:
        z: [n, k] logits of validation examples.
        y: [n] column of the true class of each.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    def objective(log_slope: float) -> float:
        return float(-log_softmax(np.exp(log_slope) * z, axis=1)[np.arange(len(y)), y].sum() + log_slope**2 / 2)

    best = minimize_scalar(objective, bounds=(-20, 20), method="bounded")
    return float(np.exp(best.x)) if best.fun < objective(0.0) else 1.0
