"""Ridge classifiers on embeddings: what validation shows while a model trains. No validation label is used to fit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from same.graphs.batch import Examples
from same.linear.rows import Array, one_thread
from same.tasks.task import GraphTask

PENALTY = 300.0
"""λ, of standardised features: strong where examples are few, as graphs are, and weak among thousands of nodes."""

Labelled = Sequence[tuple[GraphTask, Examples]]


class RidgeValidation:
    """Loss and score of ridge classifiers on the embeddings of an encoder, by task.

    A linear map from standardised features to targets, ±1 for each class and for links, minimises

        Σ ‖tᵢ − W xᵢ − b‖² + λ ‖W‖²

    over the training examples. The loss is the mean squared error on the validation examples in units of the variance
    of the targets: 1 for a constant prediction, 0 for a perfect one.

    Args:
        train: tasks with training examples; a task may have several sets of them.
        validation: each task with its validation examples.
    """

    penalty = PENALTY

    def __init__(self, train: Labelled, validation: Labelled) -> None:
        self.train, self.validation = train, validation

    def __call__(self, encoder: Callable[[Any], Tensor]) -> dict[str, tuple[float, float]]:
        """Return loss and score by task."""
        embedded: dict[int, Tensor] = {}

        def embed(examples: Examples) -> Examples:
            if (key := id(examples.inputs)) not in embedded:
                embedded[key] = encoder(examples.inputs)
            return replace(examples, embeddings=embedded[key])

        with torch.no_grad(), one_thread():
            return {
                task.name: self._judge(task, [embed(e) for other, e in self.train if other is task], embed(examples))
                for task, examples in self.validation
            }

    def _judge(self, task: GraphTask, train: Sequence[Examples], validation: Examples) -> tuple[float, float]:
        codes = max((int(each.y.max()) + 1 for each in (*train, validation) if len(each.y)), default=1)
        x = np.concatenate([_features(task, each) for each in train])
        t = np.concatenate([_targets(task, each, codes) for each in train])
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread = np.where(spread > 1e-6 * np.abs(mean), spread, 1).astype(x.dtype)
        middle, unit = t.mean(axis=0), t.std(axis=0) if task.kind == "numbers" else np.ones(t.shape[1])
        unit = np.where(unit > 0, unit, 1)
        x, t = (x - mean) / spread, (t - middle) / unit
        gram = (x.T @ x).astype(np.float64)
        if not np.isfinite(gram).all():
            return math.nan, math.nan
        gram.flat[:: len(gram) + 1] += self.penalty
        product = (x.T @ t.astype(x.dtype)).astype(np.float64)
        w = scipy.linalg.solve(gram, product, assume_a="pos", check_finite=False)
        output = ((_features(task, validation) - mean) / spread) @ w
        error = np.square(output - (_targets(task, validation, codes) - middle) / unit).sum(axis=1).mean()
        loss = float(error / max(np.square(t).sum(axis=1).mean(), 1e-12))
        output = (output * unit + middle).reshape(len(output), *_shape(task, validation))
        return loss, task.score(torch.from_numpy(output).float(), replace(validation, y=validation.y.cpu()))


def _features(task: GraphTask, examples: Examples) -> Array:
    assert examples.embeddings is not None
    return task.features(examples.embeddings, examples).cpu().numpy()


def _targets(task: GraphTask, examples: Examples, codes: int) -> Array:
    """[n, t] targets: ±1 for each class and for links, or the numbers."""
    y = examples.y.cpu().numpy()
    if task.kind == "classes":
        return np.where(y[:, None] == np.arange(codes), 1.0, -1.0)
    y = y.reshape(len(y), -1).astype(np.float64)
    return 2 * y - 1 if task.kind == "links" else y


def _shape(task: GraphTask, examples: Examples) -> tuple[int, ...]:
    """Shape of the outputs of one example."""
    return (-1,) if task.kind == "classes" else tuple(examples.y.shape[1:])
