"""ADAPT and TEST: the two verbs of Algorithm 1. They work for any module and any task, graphs or not."""

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call

from same.tasks.task import Task

Params = dict[str, Tensor]


def test(model: nn.Module, adapted: Params, task: Task, target: Any) -> Tensor:
    """L(f_θ′, T): the loss of adapted parameters on some examples of a task.

    Args:
        model: f, called as `model(task.name, examples)`.
        adapted: θ′; parameters that are not named are the model's own.
        task: has the loss L.
        target: the examples T.
    """
    return task.loss(outputs(model, adapted, task, target), target)


def outputs(model: nn.Module, adapted: Params, task: Task, examples: Any) -> Tensor:
    """f_θ′ of some examples of a task."""
    if not adapted:
        return model(task.name, examples)
    return functional_call(model, adapted, (task.name, examples), tie_weights=_has_tied_weights(model))


def _has_tied_weights(model: nn.Module) -> bool:
    """Whether a parameter has two names: only then does torch have to look for them at every call, which is slow."""
    if model not in _TIED:
        _TIED[model] = len(list(model.parameters())) < len(list(model.named_parameters(remove_duplicate=False)))
    return _TIED[model]


_TIED: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def adapt(model: nn.Module, task: Task, support: Any, **how: Any) -> Params:
    """θ′ adapted to one task: some steps of gradient descent on the loss of its support set.

    Args:
        model: called as `model(task.name, examples)`. If it has a weighting, that weighs the loss in here as it does
            outside: with λ other than 1, a task's inner step is as many times as long.
        task: has the loss.
        support: the examples.
        how: `lr`, `steps` and so on, see `descend`.
    """
    weighting = getattr(model, "weighting", None)

    def i_loss(adapted: Params) -> Tensor:
        loss = test(model, adapted, task, support)
        return loss if weighting is None else weighting.weigh({task.name: loss})

    return descend(model, i_loss, **how)


def descend(
    model: nn.Module,
    i_loss: Callable[[Params], Tensor],
    *,
    lr: float | Mapping[str, Tensor],
    steps: int = 1,
    adapts: Callable[[str], bool] = lambda name: True,
    first_order: bool = False,
) -> Params:
    """θ′ after some steps of gradient descent:

        θ′(0) = θ,   θ′(i) = θ′(i-1) − α ∇ L(f_θ′(i-1), S)

    Args:
        model: has the parameters θ.
        i_loss: L(f_·, S), a function of the adapted parameters.
        lr: α, one for all parameters or, by their names, one for each of their numbers.
        steps: how many.
        adapts: which parameters, by name, are adapted; the others stay θ.
        first_order: whether to take the gradient as a constant when θ′ is differentiated.

    Returns:
        The adapted parameters, as functions of θ, by name.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> descend(model, lambda p: (p["weight"] - 1).square().sum() / 2, lr=0.5, steps=2)["weight"].item()
    0.75
    """
    adapted: Params = {name: value for name, value in model.named_parameters() if adapts(name)}
    for _ in range(steps):
        with torch.enable_grad():
            gradients = torch.autograd.grad(
                i_loss(adapted), list(adapted.values()), create_graph=not first_order, allow_unused=True
            )
            adapted = {
                # A parameter that the loss does not depend on stays where it is.
                name: value
                if gradient is None
                else _moved(value, gradient, lr[name] if isinstance(lr, Mapping) else lr)
                for (name, value), gradient in zip(adapted.items(), gradients, strict=True)
            }
    return adapted


def _moved(value: Tensor, gradient: Tensor | None, lr: float | Tensor) -> Tensor:
    if gradient is None:  # A parameter that the loss does not depend on stays where it is.
        return value
    return value - lr * gradient if isinstance(lr, Tensor) else torch.add(value, gradient, alpha=-lr)


def learn_inner_rates(model: nn.Module, inner_lr: float) -> None:
    """Gives each number of encoder and heads an inner rate of its own, learned in the outer loop (Li et al., 2017)."""
    rates = {
        name.replace(".", "/"): nn.Parameter(torch.full_like(value, inner_lr))
        for name, value in model.named_parameters()
        if name.startswith(("encoder.", "heads."))
    }
    model.inner_rates = nn.ParameterDict(rates)


def inner_rates(model: nn.Module) -> dict[str, Tensor]:
    """The learned inner rates of a model by the names of its parameters; empty where there are none."""
    return {name.replace("/", "."): rate for name, rate in getattr(model, "inner_rates", {}).items()}
