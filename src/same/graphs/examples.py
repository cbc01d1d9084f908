"""Labelled examples of one task."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled examples of one task: a support set or a target set.

    Attributes:
        inputs: input of the encoder; for graphs, a `GraphBatch` of the edges that carry messages.
        y: labels.
        index: rows of the encoder's output, or [2, p] pairs of rows, that the labels belong to; all rows by default.
        embeddings: the encoder's output, if it has been computed already.
    """

    inputs: Any
    y: Tensor
    index: Tensor | None = None
    embeddings: Tensor | None = None
