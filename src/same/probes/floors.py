"""Floors: scores that need no training, for every table."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from same.metrics import Kind
from same.nn import Model

Encode = Callable[[Any], Tensor]
"""From a batch of graphs to node embeddings."""


def majority(kind: Kind, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Constant baseline: the most frequent training class, or the mean.

    >>> majority("classes", np.array([0, 1, 1]), np.array([0, 1])).tolist()
    [1, 1]
    """
    if kind == "classes":
        return np.full(len(test), np.bincount(train).argmax())
    return np.broadcast_to(train.mean(axis=0), test.shape)


def floor_encoders(model: Model) -> dict[str, Encode]:
    """Encoders that need no training, by name: the inputs as they are, and the encoder of an untrained model."""
    return {"raw": lambda batch: batch.x, "untrained": model.encoder.eval()}
