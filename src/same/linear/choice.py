"""The linear model of a task, with C chosen by the loss on validation examples."""

from typing import Any, Literal

import numpy as np

from same.errors import InputError
from same.linear import ridge, svm
from same.linear.rows import Array
from same.metrics import Kind, cross_entropy, logistic_loss

LinearModel = svm.LinearSVM | ridge.Ridge
Choose = Literal["loss"]
"""What C is chosen by."""

GRID = tuple(10.0**k for k in range(-5, 3))
"""Values of C to choose from; the penalty of a ridge regression is 1 / C."""


def fit_linear(kind: Kind, x: Any, y: Any, validation: tuple[Any, Any] | None = None) -> LinearModel:
    """Fit an SVM for classes and links, or a ridge regression for numbers.

    Args:
        kind: kind of task.
        x: [n, d] training features, possibly memory-mapped.
        y: [n] their labels.
        validation: features and labels to choose C by (of equal losses, the smaller C); without them C = 1.
    """
    if validation is not None and not len(validation[1]):
        raise InputError("choose: there are no validation examples to choose C by")
    grid = (1.0,) if validation is None else GRID
    models: list[Any] = [ridge.Ridge(1 / c) if kind == "numbers" else svm.LinearSVM(c) for c in grid]
    (ridge.fit_path if kind == "numbers" else svm.fit_path)(models, x, y)
    return models[0] if validation is None else min(models, key=lambda model: _loss(kind, model, *validation))


def _loss(kind: Kind, model: LinearModel, x: Any, y: Array) -> float:
    """Cross entropy of classes, logistic loss of links, or squared error of numbers in units of their deviation."""
    if isinstance(model, ridge.Ridge):
        return float(np.square((model.predict(x) - y) / model.y_scale_).sum())
    decision = model.decision_function(x)
    return logistic_loss(y, decision) if kind == "links" else cross_entropy(y, decision, model.classes_)


def predict_linear(kind: Kind, model: LinearModel, x: Any) -> Array:
    """[n] what `same.metrics.scores` takes: classes, decision values of links, or numbers."""
    return model.decision_function(x) if isinstance(model, svm.LinearSVM) and kind == "links" else model.predict(x)
