"""iSAME with derivatives written out: the same losses and gradients as by autograd, in four fifths of the time.

It is for models whose encoder, heads and losses know their operations (`same.nn.chain`); all others go by autograd. So
does eSAME, for which it does not pay.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from same.nn.chain import Chain, Gradients, Op
from same.nn.model import Model
from same.weighting import Weighting

Rates = float | Mapping[str, Tensor]


def closed_losses(
    model: nn.Module, episode: Sequence[Any], *, lr: Rates, steps: int, first_order: bool
) -> dict[str, Tensor] | None:
    """The outer losses of an episode by task, with gradients; None where an operation is not known.

    Args:
        model: f_θ, whose encoder and heads are adapted.
        episode: (task, support, target) for each task.
        lr: α, one for all parameters or one for each of their numbers.
        steps: of the inner loop.
        first_order: whether to leave out second derivatives.
    """
    # Other weightings may learn what they do to the inner loss.
    if type(model) is not Model or type(model.weighting) is not Weighting:
        return None
    if not all(p.requires_grad for p in model.parameters()) or any(map(_is_watched, model.modules())):
        return None
    chains = [_chain(model, task, examples) for task, *both in episode for examples in both]
    known = [chain for chain in chains if chain is not None]
    if len(known) < len(chains):
        return None
    losses = {}
    for (task, support, target), learn, test in zip(episode, known[::2], known[1::2], strict=True):
        kinds = ("encoder.", f"heads.{task.name}.")
        params = {name: p for name, p in model.named_parameters() if name.startswith(kinds)}
        scale = model.weighting.weights.get(task.name, 1.0)
        sets = (learn, support.inputs.x), (test, target.inputs.x)
        losses[task.name] = _outer_loss(params, *sets, lr=lr, scale=scale, steps=steps, first_order=first_order)
    return losses


def _outer_loss(
    params: Mapping[str, Tensor],
    support: tuple[Chain, Tensor],
    target: tuple[Chain, Tensor],
    *,
    lr: Rates,
    scale: float,
    steps: int,
    first_order: bool,
) -> Tensor:
    """L(f_θ′, T), and its gradient: g = ∇L(θ′) first, then g ← g − α H g for each inner step, the last one first."""
    (learn, x), (test, z) = support, target
    rates = {name: lr[name].detach() if isinstance(lr, Mapping) else lr for name in params}
    by_rate: Gradients = {}
    with torch.no_grad():
        path, adapted = [], {name: p.detach() for name, p in params.items()}
        for _ in range(steps):
            _, kept = learn.forward(adapted, x)
            inner = learn.gradient(adapted, kept)
            path.append((adapted, inner, kept))
            adapted = {name: _moved(p, inner[name], rates[name], -scale) for name, p in adapted.items()}
        value, kept = test.forward(adapted, z)
        g = test.gradient(adapted, kept)
        for before, inner, kept in reversed(path):
            if isinstance(lr, Mapping):
                for name in params:
                    change = g[name] * inner[name] * -scale
                    by_rate[name] = by_rate[name] + change if name in by_rate else change
            if not first_order:
                v = {name: g[name] * rates[name] * -scale for name in params}
                curved = learn.curved(before, v, kept)
                g = {name: curved[name].add_(g[name]) for name in params}
    needs = [(params[name], g[name]) for name in params]
    if isinstance(lr, Mapping):
        needs += [(lr[name], by_rate[name]) for name in params]
    return _Known.apply(value, [gradient for _, gradient in needs], *(tensor for tensor, _ in needs))


def _moved(p: Tensor, g: Tensor, rate: float | Tensor, scale: float) -> Tensor:
    return p + g * rate * scale if isinstance(rate, Tensor) else torch.add(p, g, alpha=rate * scale)


class _Known(torch.autograd.Function):
    """A number whose gradients are known."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: list[Tensor], *tensors: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(known * g for known in ctx.gradients)


def _chain(model: Model, task: Any, examples: Any) -> Chain | None:
    """The loss of a task as a chain of operations."""
    parts = (
        _ops(model.encoder, "forward", "encoder", examples.inputs),
        _ops(model.heads[task.name], "forward", f"heads.{task.name}", examples),
        _ops(task, "loss", examples),
    )
    known = [op for ops in parts if ops is not None for op in ops]
    return None if any(ops is None for ops in parts) else Chain(known)


def _ops(thing: Any, what: str, *arguments: Any) -> list[Op] | None:
    """The operations that something says it consists of, if the class that says so is the one that computes."""
    for kind in type(thing).__mro__:
        if what in vars(kind):
            return thing.ops(*arguments) if "ops" in vars(kind) else None
    return None


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to see what goes through a module."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
