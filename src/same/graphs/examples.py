"""Labelled examples of a task."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled examples of one task: a support set or a target set.

    Attributes:
        inputs: input of the encoder; for graphs, a `GraphBatch` of the message-passing edges.
        y: labels.
        index: rows of the encoder's output, or [2, p] pairs of rows, that the labels belong to; None for all rows.
        embeddings: output of the encoder, where it has been computed already.
    """

    inputs: Any
    y: Tensor
    index: Tensor | None = None
    embeddings: Tensor | None = None
