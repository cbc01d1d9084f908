"""Classical training: perform all tasks concurrently on each batch, and descend along the sum (Algorithm 2)."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from same.episodes import Batch, embed
from same.methods.adapt import Params, outputs
from same.nn.model import Model
from same.tasks.task import Examples, Task, judged


def perform(model: Model, batch: Batch, adapted: Params | None = None) -> list[tuple[Task, Tensor, Examples]]:
    """The outputs of all tasks of a batch; whatever they share is encoded once.

    Args:
        model: f_θ.
        batch: (task, examples) for each task.
        adapted: θ′, where it is not θ. Examples whose embeddings are known are not encoded.
    """
    adapted = adapted or {}
    sets = [examples for _, examples in batch]
    if any(examples.embeddings is None for examples in sets):
        own = {name.removeprefix("encoder."): p for name, p in adapted.items() if name.startswith("encoder.")}
        encoder = partial(functional_call, model.encoder, own) if own else model.encoder
        sets = embed(encoder, sets)
    return [
        (task, outputs(model, adapted, task, examples), examples)
        for (task, _), examples in zip(batch, sets, strict=True)
    ]


def evaluate(model: Model, batch: Batch, adapted: Params | None = None) -> dict[str, tuple[float, float]]:
    """Loss and score of each task of a batch."""
    with torch.no_grad():
        return {task.name: judged(task, output, examples) for task, output, examples in perform(model, batch, adapted)}


class Classical:
    """End-to-end training of one task, or of several concurrently on a multi-head model."""

    def losses(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """The loss of each task on all graphs of the batch."""
        return {task.name: task.loss(output, examples) for task, output, examples in perform(model, batch)}

    def adapted(self, model: Any, batch: Batch, task: Task) -> Params:
        """Nothing is adapted."""
        return {}

    def evaluate(self, model: Any, batch: Batch) -> dict[str, tuple[float, float]]:
        """Loss and score of each task."""
        return evaluate(model, batch)
