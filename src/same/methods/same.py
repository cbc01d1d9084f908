"""SAME: learn parameters that a step of gradient descent makes good at each task alone (Algorithm 1)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from same.config import Config
from same.episodes import Batch, Part, multi_task_episode, whole_episode
from same.methods.adapt import Params, adapt, outputs, test
from same.methods.base import Method, Scores
from same.nn.embedding import encode_once
from same.tasks.task import Task, judge

Adapt = Callable[[nn.Module, Task, Any], Params]


def outer_losses(model: nn.Module, episode: Iterable[Any], adapt: Adapt) -> dict[str, Tensor]:
    """One episode of Algorithm 1: adapt to each task alone, and test the adapted parameters on that task's target set.

    Args:
        model: f_θ, called as `model(task.name, examples)`.
        episode: (task, support, target) for each task.
        adapt: ADAPT, from (model, task, support) to θ′.

    Returns:
        L(f_θ′(t), T(t)) by task, as functions of θ; UPDATE minimises their weighted sum.
    """
    losses = {}
    for task, support, target in episode:
        adapted = adapt(model, task, support)  # θ′(t)
        losses[task.name] = test(model, adapted, task, target)  # L(f_θ′(t), T(t))
    return losses


@dataclass(frozen=True)
class SAME(Method):
    """Algorithm 1, in two variants: `ISAME` and `ESAME`.

    Args:
        inner_lr: learning rate α of ADAPT.
        inner_steps: number of steps of ADAPT.
        first_order: whether to leave out the second derivatives.
    """

    inner_lr: float = 0.1
    inner_steps: int = 1
    first_order: bool = False

    draw = staticmethod(multi_task_episode)
    draw_validation = staticmethod(whole_episode)

    @classmethod
    def from_config(cls, config: Config) -> "SAME":
        """Build the method from a configuration."""
        return cls(config.inner_lr, config.inner_steps, config.first_order)

    def adapt(self, model: nn.Module, task: Task, support: Any, *, first_order: bool | None = None) -> Params:
        """ADAPT to one task: encoder and head (iSAME) or the head alone (eSAME)."""
        head, lr, steps = f"heads.{task.name}.", self.inner_lr, self.inner_steps
        parts = ("encoder.", head) if self.adapts == "all" else (head,)
        first_order = self.first_order if first_order is None else first_order
        return adapt(model, task, support, lr=lr, steps=steps, parts=parts, first_order=first_order)

    def losses(self, model: Any, episode: Iterable[Any]) -> dict[str, Tensor]:
        """Return the outer losses of an episode by task."""
        return outer_losses(model, self._encoded(model, episode), self.adapt)

    def evaluate(self, model: Any, episode: Iterable[Any]) -> Scores:
        """Return loss and score on the target sets after adapting to the support sets; θ does not change."""
        results = {}
        with torch.no_grad():
            for task, support, target in self._encoded(model, episode):
                adapted = self.adapt(model, task, support, first_order=True)
                results[task.name] = judge(task, outputs(model, adapted, task, target), target)
        return results

    def adapted(self, model: Any, batch: Batch, task: Task) -> Params:
        """Return θ′ adapted to one task on the training graphs."""
        support = next(examples for other, examples in batch if other.name == task.name)
        if self.adapts == "head":
            with torch.no_grad():  # Only the head is differentiated: the layers of the encoder need not be kept.
                (support,) = encode_once(model.encoder, [support])
        return self.adapt(model, task, support, first_order=True)

    def _encoded(self, model: Any, episode: Iterable[Any]) -> Iterable[Any]:
        """Encode an episode of eSAME once: its encoder is the same for all tasks, before and after ADAPT."""
        if self.adapts == "all":
            return episode
        parts = list(episode)
        encoded = iter(encode_once(model.encoder, [examples for _, *both in parts for examples in both]))
        return [Part(task, next(encoded), next(encoded)) for task, _, _ in parts]


class ISAME(SAME):
    """iSAME: ADAPT changes encoder and head, as MAML does (Finn et al., 2017)."""

    name: ClassVar[str] = "isame"
    adapts = "all"


class ESAME(SAME):
    """eSAME: ADAPT changes the head alone, as ANIL does (Raghu et al., 2020); the encoder learns in UPDATE."""

    name: ClassVar[str] = "esame"
    adapts = "head"
