"""The linear head of a task on embedded examples: one function for prediction, evaluation and studies."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from same.graphs.batch import Examples
from same.linear.head import LinearHead
from same.linear.rows import Array
from same.metrics import Kind
from same.tasks.task import GraphTask

HEAD_NODES = 2**18
"""About the most nodes of graphs that heads are fitted to, and of those that validate them."""


class Features(NamedTuple):
    """Features of examples by the pooling that made them, and labels. Tasks without a pooling have the one key ''."""

    x: Mapping[str, Any]
    y: Array


def features(task: GraphTask, examples: Examples, pools: tuple[str, ...] | None = None) -> Features:
    """Return the features of examples with embeddings, for each of the poolings; by default for all of the task."""
    assert examples.embeddings is not None
    h, names = examples.embeddings, task.pools if pools is None else pools if task.pools else ()
    x = {name: task.pooled(name).features(h, examples).cpu().numpy() for name in names}
    return Features(x or {"": task.features(h, examples).cpu().numpy()}, examples.y.cpu().numpy())


def fit_head(kind: Kind, train: Features, validation: Features | None = None) -> LinearHead:
    """Fit a linear head, whose C, calibration and pooling the loss on validation examples chooses.

    A pooling takes the place of an earlier one where it is better by more than a standard error. Without validation
    examples, C = 1, probabilities are not calibrated, and the pooling is the first.
    """
    best, least = None, np.empty(0)
    for pool, x in train.x.items():
        given = None if validation is None or not len(validation.y) else (validation.x[pool], validation.y)
        head = replace(LinearHead.fit(kind, x, train.y, given), pool=pool)
        if given is None:
            return head
        losses = head.losses(head.decision(given[0]), given[1])
        gain = least - losses if best is not None else losses
        if best is None or gain.mean() > gain.std() / np.sqrt(len(gain)):
            best, least = head, losses
    assert best is not None
    return best
