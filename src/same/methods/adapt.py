"""ADAPT and TEST: the two verbs of Algorithm 1. They work for any module and any task, with or without graphs."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call

from same.tasks.task import Task

Params = dict[str, Tensor]
_TIED: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def adapt(
    model: nn.Module,
    task: Task,
    support: Any,
    *,
    lr: float,
    steps: int = 1,
    parts: tuple[str, ...] = ("",),
    first_order: bool = False,
) -> Params:
    """ADAPT: return θ′ after gradient descent on the loss of a task's support set.

        θ′(0) = θ,   θ′(i) = θ′(i-1) − α ∇ L(f_θ′(i-1), S)

    Args:
        model: f_θ, called as `model(task.name, examples)`.
        task: task with the loss L.
        support: examples S.
        lr: learning rate α.
        steps: number of steps.
        parts: prefixes of the names of the parameters that are adapted; all by default.
        first_order: whether to treat the gradient as a constant when θ′ is differentiated.
    """

    def inner_loss(adapted: Params) -> Tensor:
        return test(model, adapted, task, support)

    return descend(model, inner_loss, lr=lr, steps=steps, parts=parts, first_order=first_order)


def test(model: nn.Module, adapted: Params, task: Task, target: Any) -> Tensor:
    """TEST: return L(f_θ′, T), the loss of adapted parameters on a task's target set.

    Args:
        model: f_θ, called as `model(task.name, examples)`.
        adapted: θ′; parameters that are not named keep their values θ.
        task: task with the loss L.
        target: examples T.
    """
    return task.loss(outputs(model, adapted, task, target), target)


def outputs(model: nn.Module, adapted: Params, task: Task, examples: Any) -> Tensor:
    """Return f_θ′ of some examples of a task."""
    if not adapted:
        return model(task.name, examples)
    return functional_call(model, adapted, (task.name, examples), tie_weights=_has_tied_weights(model))


def descend(
    model: nn.Module,
    inner_loss: Callable[[Params], Tensor],
    *,
    lr: float,
    steps: int = 1,
    parts: tuple[str, ...] = ("",),
    first_order: bool = False,
) -> Params:
    """Return the parameters after some steps of gradient descent, as functions of θ.

    Args:
        model: module with the parameters θ.
        inner_loss: function from adapted parameters to the loss.
        lr: learning rate α.
        steps: number of steps.
        parts: prefixes of the names of the parameters that are adapted; the others stay θ.
        first_order: whether to treat the gradient as a constant when θ′ is differentiated.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> descend(model, lambda p: (p["weight"] - 1).square().sum() / 2, lr=0.5, steps=2)["weight"].item()
    0.75
    """
    adapted: Params = {name: value for name, value in model.named_parameters() if name.startswith(parts)}
    for _ in range(steps):
        with torch.enable_grad():
            gradients = torch.autograd.grad(
                inner_loss(adapted), list(adapted.values()), create_graph=not first_order, allow_unused=True
            )
            adapted = {
                # A parameter that the loss does not depend on stays as it is.
                name: value if gradient is None else torch.add(value, gradient, alpha=-lr)
                for (name, value), gradient in zip(adapted.items(), gradients, strict=True)
            }
    return adapted


def _has_tied_weights(model: nn.Module) -> bool:
    """Return whether a parameter has two names; only then must torch search for them at every call, which is slow."""
    if model not in _TIED:
        _TIED[model] = len(list(model.parameters())) < len(list(model.named_parameters(remove_duplicate=False)))
    return _TIED[model]
