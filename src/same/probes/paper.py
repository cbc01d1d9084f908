"""The paper's probe: scikit-learn's `LinearSVC` with its default settings, on embeddings as they are."""

import numpy as np

from same.errors import InputError
from same.linear import LinearSVM
from same.metrics import Kind


def fit_paper(kind: Kind, x: np.ndarray, y: np.ndarray) -> LinearSVM:
    """Minimise the objective of `LinearSVC()` by Newton steps: ½ ‖w‖² + Σ max(0, 1 − yᵢ w·xᵢ)².

    The bias is the weight of a constant feature 1, regularised like the others, as in liblinear.
    """
    if kind == "numbers":
        raise InputError("probes: paper: the paper has no regression; leave out this probe, or name other tasks")
    return LinearSVM(C=1.0, standardise=False).fit(x, y)
