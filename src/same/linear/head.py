"""The linear head of a task: fitted to training features, chosen and calibrated on validation features."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import numpy as np

from same.errors import InputError
from same.linear.calibration import calibrate, logits
from same.linear.choice import fit_linear
from same.linear.rows import Array, Scaler
from same.linear.svm import LinearSVM
from same.metrics import Kind

FEW = 30
"""Fewer validation examples than this do not choose a pooling."""
NEVER = -1e6
"""Logit of a class that the training examples lack: finite, with a probability of 0."""


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Decision values W x + b of features x as they are: W and b include the standardisation.

    Attributes:
        kind: kind of task.
        classes: [k] sorted codes of the training classes, [0, 1] for links, none for numbers.
        weight: W, [r, d] for more than two classes or several numbers, otherwise [d].
        bias: b, [r] or a scalar.
        C: weight of the errors; the penalty λ of a ridge regression is 1 / C.
        slope: inverse temperature of the probabilities.
        validated: whether validation examples have chosen C and the slope; otherwise both are 1.
        pool: pooling of the features, for tasks on graphs.
    """

    kind: Kind
    classes: Array
    weight: Array
    bias: Array
    C: float
    slope: float
    validated: bool
    pool: str = ""

    def __post_init__(self) -> None:
        expected = self.classes.shape if len(self.classes) > 2 else self.bias.shape if self.kind == "numbers" else ()
        fits = self.weight.ndim > 0 and self.bias.shape == self.weight.shape[:-1] == expected
        if not fits or self.kind not in get_args(Kind):
            raise ValueError(f"{self.kind}: weight {self.weight.shape} and bias {self.bias.shape}, expected {expected}")

    @classmethod
    def fit(cls, kind: Kind, x: Any, y: Any, validation: tuple[Any, Any] | None = None) -> "LinearHead":
        """Fit a head; see `fit_linear`.

        Args:
            kind: kind of task.
            x: [n, d] training features, possibly memory-mapped.
            y: [n] codes of classes, 0 and 1 for links, or [n] or [n, t] numbers.
            validation: features and labels to choose C and to calibrate; classes without training examples are ignored.
        """
        y, labels = np.asarray(y), np.asarray([] if validation is None else validation[1])
        codes = np.unique(y) if kind == "classes" else np.arange(2 if kind == "links" else 0)
        known = np.ones(len(labels), bool) if kind == "numbers" else np.isin(labels, codes)
        usable = validation if known.any() else None
        model, slope = fit_linear(kind, x, y, usable), 1.0
        C = model.C if isinstance(model, LinearSVM) else 1 / model.penalty  # noqa: N806
        if isinstance(model, LinearSVM) and usable is not None:
            z = logits(kind, model.decision_function(usable[0]), len(codes))[known]
            slope = calibrate(z, np.searchsorted(codes, labels[known]))
        # In the order in memory that a loaded one has, which decides how products are rounded.
        weight = np.ascontiguousarray(model.coef_[:, :-1] / model.scaler_.scale)
        bias = model.coef_[:, -1] - weight @ model.scaler_.mean
        shape = codes.shape if len(codes) > 2 else y.shape[1:]
        return cls(kind, codes, weight.reshape(*shape, -1), bias.reshape(shape), C, slope, usable is not None)

    def decision(self, x: Any) -> Array:
        """[n] for links and up to two classes, [n, k] for more classes: positive for the class; or the numbers."""
        d = self.weight.shape[-1]
        coef = np.c_[self.weight.reshape(-1, d), self.bias.reshape(-1)]
        return Scaler(np.zeros(d), np.ones(d)).product(np.asarray(x), coef).reshape(-1, *self.bias.shape)

    def predict(self, decision: Array) -> Array:
        """[n] codes of the classes with the largest decision values, 0 or 1 for links; or the numbers."""
        if self.kind == "numbers":
            return decision
        return self.classes[logits(self.kind, decision, len(self.classes)).argmax(axis=1)]

    def output(self, x: Any) -> Array:
        """[n] what `same.metrics.scores` takes: classes, decision values of links, or numbers."""
        decision = self.decision(x)
        return decision if self.kind == "links" else self.predict(decision)

    def outputs(self, x: Any, classes: int) -> Array:
        """What a head of a network returns: [n, `classes`] logits by code, [n] logits of links, or numbers.

        Their softmax or sigmoid are the calibrated probabilities; a class without training examples has none.
        """
        decision = self.decision(x)
        if self.kind != "classes":
            return self.slope * decision if self.kind == "links" else decision
        columns = np.full((len(decision), max(classes, int(self.classes[-1]) + 1)), NEVER)
        columns[:, self.classes] = self.slope * logits(self.kind, decision, len(self.classes))
        return columns

    def proba(self, decision: Array) -> Array:
        """[n, k] probabilities of `classes`."""
        from scipy.special import softmax

        if self.kind == "numbers":
            raise InputError("numbers have no probabilities; use predict")
        return softmax(self.slope * logits(self.kind, decision, len(self.classes)), axis=1)

    def losses(self, decision: Array, y: Any) -> Array:
        """[n] log losses of classes and links, or squared errors of numbers in units of their deviation."""
        y = np.asarray(y)
        if self.kind == "numbers":
            return np.square((decision - y) / np.maximum(y.std(axis=0), 1e-12)).reshape(len(y), -1).sum(axis=1)
        p, known = self.proba(decision), np.isin(y, self.classes)
        column = np.searchsorted(self.classes, np.where(known, y, self.classes[0]))
        return -np.log(np.maximum(np.where(known, p[np.arange(len(y)), column], 0.0), 1e-12))

    def to_tensors(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and plain values, from which `from_tensors` makes the same head."""
        values = {name: getattr(self, name) for name in ("kind", "C", "slope", "validated", "pool")}
        return {"weight": self.weight, "bias": self.bias, "classes": self.classes}, values

    @classmethod
    def from_tensors(cls, arrays: Mapping[str, Any], values: Mapping[str, Any]) -> "LinearHead":
        """The head of `to_tensors`; what does not fit raises `KeyError`, `TypeError` or `ValueError`."""
        weight, bias, classes = (np.asarray(arrays[name]) for name in ("weight", "bias", "classes"))
        numbers = (float(values["C"]), float(values["slope"]))
        return cls(values["kind"], classes, weight, bias, *numbers, bool(values["validated"]), str(values["pool"]))


class Features(NamedTuple):
    """Features of examples by the pooling that made them, and labels. Tasks without a pooling have the one key ''."""

    x: Mapping[str, Any]
    y: Array


def fit_head(kind: Kind, train: Features, validation: Features | None = None) -> LinearHead:
    """Fit a linear head, whose C, calibration and pooling the loss on validation examples chooses.

    A pooling takes the place of an earlier one where it is better by more than a standard error. The pooling is the
    first if there are few validation examples; without any, C = 1, and probabilities are not calibrated.
    """
    best, least = None, np.empty(0)
    for pool, x in train.x.items():
        given = None if validation is None or not len(validation.y) else (validation.x[pool], validation.y)
        head = replace(LinearHead.fit(kind, x, train.y, given), pool=pool)
        if given is None or len(given[1]) < FEW:
            return head
        losses = head.losses(head.decision(given[0]), given[1])
        gain = least - losses if best is not None else losses
        if best is None or gain.mean() > gain.std() / np.sqrt(len(gain)):
            best, least = head, losses
    assert best is not None
    return best
