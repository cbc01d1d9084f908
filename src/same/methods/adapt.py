"""ADAPT and TEST: the two verbs of Algorithm 1. They work for any module and any task, graphs or not."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from same.tasks.task import Task

Params = dict[str, Tensor]


def adapt(
    model: nn.Module,
    task: Task,
    support: Any,
    *,
    lr: float | Mapping[str, Tensor],
    steps: int = 1,
    adapts: Callable[[str], bool] = lambda name: True,
    first_order: bool = False,
) -> Params:
    """θ′ after some steps of gradient descent on a task's support set:

        θ′(0) = θ,   θ′(i) = θ′(i-1) − α ∇ L(f_θ′(i-1), S)

    Args:
        model: called as `model(task.name, examples)`.
        task: has the loss L.
        support: the examples S.
        lr: α, one for all parameters or, by their names, one for each of their numbers.
        steps: how many.
        adapts: which parameters, by name, are adapted; the others stay θ.
        first_order: whether to take the gradient as a constant when θ′ is differentiated.

    Returns:
        The adapted parameters, as functions of θ, by name.

    >>> class Fit(Task):
    ...     name = "fit"
    ...     def loss(self, output, y): return (output - y).square().sum() / 2
    ...     def score(self, output, y): return -float(self.loss(output, y))
    >>> class Constant(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.c = nn.Parameter(torch.zeros(1))
    ...     def forward(self, task, examples): return self.c
    >>> adapt(Constant(), Fit(), torch.ones(1), lr=0.5, steps=2)["c"].item()
    0.75
    """
    adapted: Params = {name: value for name, value in model.named_parameters() if adapts(name)}
    for _ in range(steps):
        with torch.enable_grad():
            loss = task.loss(functional_call(model, adapted, (task.name, support)), support)
            gradients = torch.autograd.grad(
                loss, list(adapted.values()), create_graph=not first_order, allow_unused=True
            )
        adapted = {
            # A parameter that this task does not use stays where it is.
            name: value if gradient is None else value - _rate(lr, name) * gradient
            for (name, value), gradient in zip(adapted.items(), gradients, strict=True)
        }
    return adapted


def test(model: nn.Module, adapted: Params, task: Task, target: Any) -> Tensor:
    """L(f_θ′, T): the loss of the adapted parameters on a task's target set."""
    return task.loss(functional_call(model, adapted, (task.name, target)), target)


def _rate(lr: float | Mapping[str, Tensor], name: str) -> float | Tensor:
    return lr[name] if isinstance(lr, Mapping) else lr
