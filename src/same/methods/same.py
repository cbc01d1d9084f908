"""SAME: learn parameters that a step of gradient descent makes good at each task alone (Algorithm 1)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from same.episodes import embed
from same.methods.adapt import Params, adapt, inner_rates, outputs, test
from same.methods.closed import closed_losses
from same.tasks.task import Task, judged

Adapt = Callable[[nn.Module, Task, Any], Params]


def outer_losses(model: nn.Module, episode: Iterable[Any], adapt: Adapt) -> dict[str, Tensor]:
    """One episode of Algorithm 1: adapt to each task alone, and test the adapted parameters on that task's target set.

    The meta-objective is the weighted sum of these losses over the tasks.

    Args:
        model: f_θ, called as `model(task.name, examples)`.
        episode: (task, support, target) for each task.
        adapt: ADAPT, from (model, task, support) to θ′.

    Returns:
        L(f_θ′(t), T(t)) by the name of the task t, as a function of θ.
    """
    losses = {}
    for task, support, target in episode:
        adapted = adapt(model, task, support)  # θ′(t)
        losses[task.name] = test(model, adapted, task, target)
    return losses


@dataclass(frozen=True)
class SAME:
    """iSAME and eSAME.

    Args:
        adapt_encoder: iSAME adapts encoder and head to a task, as MAML does; eSAME only the head, as ANIL does, so that
            all graphs of an episode are encoded once, and the encoder learns from the outer loop alone.
        inner_lr: α.
        inner_steps: how many steps of gradient descent ADAPT takes.
        first_order: whether to leave out the second derivatives.
    """

    adapt_encoder: bool
    inner_lr: float = 0.1
    inner_steps: int = 1
    first_order: bool = False

    def losses(self, model: nn.Module, episode: Any) -> dict[str, Tensor]:
        """The outer losses of an episode, by task."""
        if self.adapt_encoder:
            lr = inner_rates(model) or self.inner_lr
            known = closed_losses(model, episode, lr=lr, steps=self.inner_steps, first_order=self.first_order)
            if known is not None:
                return known
        return outer_losses(model, self._prepared(model, episode), self._adapt(model, self.first_order))

    def evaluate(self, model: nn.Module, episode: Any) -> dict[str, tuple[float, float]]:
        """Loss and score on the target set after adapting to the support set, by task; θ is not touched."""
        results = {}
        with torch.no_grad():
            for task, support, target in self._prepared(model, episode):
                adapted = self._adapt(model, first_order=True)(model, task, support)
                output = outputs(model, adapted, task, target)
                results[task.name] = judged(task, output, target)
        return results

    def adapted(self, model: nn.Module, batch: Iterable[Any], task: Task) -> Params:
        """θ′ adapted to one task of a batch of (task, examples)."""
        support = next(examples for other, examples in batch if other.name == task.name)
        return self._adapt(model, first_order=True)(model, task, support)

    def _prepared(self, model: Any, episode: Any) -> Any:
        """eSAME's episodes come with all embeddings known."""
        if self.adapt_encoder:
            return episode
        known = iter(embed(model.encoder, [examples for _, *both in episode for examples in both]))
        return [(task, next(known), next(known)) for task, _, _ in episode]

    def _adapt(self, model: nn.Module, first_order: bool) -> Adapt:
        lr = inner_rates(model) or self.inner_lr

        def adapt_to(model: nn.Module, task: Task, support: Any) -> Params:
            kinds = ("encoder.", f"heads.{task.name}.") if self.adapt_encoder else (f"heads.{task.name}.",)
            return adapt(
                model,
                task,
                support,
                lr=lr,
                steps=self.inner_steps,
                adapts=lambda name: name.startswith(kinds),
                first_order=first_order,
            )

        return adapt_to


isame = partial(SAME, True)
esame = partial(SAME, False)
