"""Classical training: learn all tasks concurrently on each batch (Algorithm 2)."""

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.func import functional_call

from same.episodes import Batch, Part, concurrent_batch
from same.graphs.batch import Examples
from same.methods.adapt import Params, outputs
from same.methods.base import Method, Scores
from same.nn.embedding import encode_once
from same.tasks.task import Task, judge


def perform(model: Any, batch: Batch, adapted: Params) -> list[tuple[Task, Tensor, Examples]]:
    """Return the outputs of all tasks of a batch, encoding shared inputs once."""
    sets = [examples for _, examples in batch]
    if any(examples.embeddings is None for examples in sets):
        params = {name.removeprefix("encoder."): p for name, p in adapted.items() if name.startswith("encoder.")}
        sets = encode_once(partial(functional_call, model.encoder, params) if params else model.encoder, sets)
    return [
        (task, outputs(model, adapted, task, examples), examples)
        for (task, _), examples in zip(batch, sets, strict=True)
    ]


def evaluate(model: Any, batch: Batch, adapted: Params) -> Scores:
    """Return loss and score of each task of a batch."""
    with torch.no_grad():
        return {task.name: judge(task, output, examples) for task, output, examples in perform(model, batch, adapted)}


class Classical(Method):
    """End-to-end training of one task, or of several tasks concurrently."""

    name: ClassVar[str] = "classical"
    draw = staticmethod(concurrent_batch)

    def losses(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of each task on all graphs of the batch."""
        return {task.name: task.loss(output, examples) for task, output, examples in perform(model, batch, {})}

    def evaluate(self, model: Any, batch: Batch) -> Scores:
        """Return loss and score of each task."""
        return evaluate(model, batch, {})

    def parts(self, batch: Batch) -> Iterable[Part]:
        """Return the examples of each task as its target set."""
        return [Part(task, Examples(None, examples.y[:0]), examples) for task, examples in batch]
