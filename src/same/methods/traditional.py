"""Traditional meta-learning: adapt to all tasks at once, and test all of them on other graphs (Algorithm 3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from same.config import Config
from same.episodes import Batch, Part, concurrent_episode
from same.methods.adapt import Params, descend
from same.methods.base import Method, Scores
from same.methods.classical import evaluate, perform
from same.nn.embedding import encode_once
from same.tasks.task import Task


@dataclass(frozen=True)
class Traditional(Method):
    """MAML, or with `adapts="head"` ANIL, on episodes in which all tasks are learned concurrently.

    Args:
        adapts: parameters that ADAPT changes: all, or the heads alone.
        inner_lr: learning rate α of ADAPT.
        inner_steps: number of steps of ADAPT.
        first_order: whether to leave out the second derivatives.
    """

    adapts: Literal["all", "head"] = "all"
    inner_lr: float = 0.1
    inner_steps: int = 1
    first_order: bool = False

    name: ClassVar[str] = "traditional"
    draw = staticmethod(concurrent_episode)

    @classmethod
    def from_config(cls, config: Config) -> "Traditional":
        """Build the method from a configuration."""
        return cls(config.adapts, config.inner_lr, config.inner_steps, config.first_order)

    @classmethod
    def check(cls, config: Config) -> None:
        """Accept all settings."""

    def losses(self, model: Any, episode: tuple[Batch, Batch]) -> dict[str, Tensor]:
        """Return the losses of all tasks on the target graphs, after adapting to all tasks on the support graphs."""
        support, target = self._encoded(model, episode)
        adapted = self._adapt(model, support, self.first_order)
        return {task.name: task.loss(output, examples) for task, output, examples in perform(model, target, adapted)}

    def evaluate(self, model: Any, episode: tuple[Batch, Batch]) -> Scores:
        """Return loss and score on the target graphs after adapting to the support graphs; θ does not change."""
        support, target = episode
        return evaluate(model, target, self._adapt(model, support, first_order=True))

    def parts(self, episode: tuple[Batch, Batch]) -> Iterable[Part]:
        """Return support and target set of each task."""
        return [Part(task, first, second) for (task, first), (_, second) in zip(*episode, strict=True)]

    def adapted(self, model: Any, batch: Batch, task: Task) -> Params:
        """Return θ′ adapted to all tasks on the training graphs."""
        if self.adapts == "head":
            with torch.no_grad():  # Only heads are differentiated: the layers of the encoder need not be kept.
                encoded = encode_once(model.encoder, [examples for _, examples in batch])
            batch = [(each, examples) for (each, _), examples in zip(batch, encoded, strict=True)]
        return self._adapt(model, batch, first_order=True)

    def _adapt(self, model: Any, support: Batch, first_order: bool) -> Params:
        def inner_loss(adapted: Params) -> Tensor:
            return torch.stack([task.loss(output, e) for task, output, e in perform(model, support, adapted)]).sum()

        lr, steps = self.inner_lr, self.inner_steps
        parts = ("encoder.", "heads.") if self.adapts == "all" else ("heads.",)
        return descend(model, inner_loss, lr=lr, steps=steps, parts=parts, first_order=first_order)

    def _encoded(self, model: Any, episode: tuple[Batch, Batch]) -> tuple[Batch, Batch]:
        """Encode an episode once where only heads adapt."""
        if self.adapts == "all":
            return episode
        encoded = iter(encode_once(model.encoder, [examples for batch in episode for _, examples in batch]))
        support, target = ([(task, next(encoded)) for task, _ in batch] for batch in episode)
        return support, target
