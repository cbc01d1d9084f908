"""Algorithm 1 with derivatives written out: the same losses and gradients as by autograd, in half the time.

It is for models whose encoder, heads and losses know their operations (`same.nn.chain`); all others go by autograd.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.nn.chain import Chain, Gradients, Op
from same.nn.model import Model
from same.weighting import Weighting

Rates = float | Mapping[str, Tensor]


def closed_losses(
    model: nn.Module, episode: Sequence[Any], *, adapt_encoder: bool, lr: Rates, steps: int, first_order: bool
) -> dict[str, Tensor] | None:
    """The outer losses of an episode by task, with gradients; None where an operation is not known.

    Args:
        model: f_θ.
        episode: (task, support, target) for each task.
        adapt_encoder: iSAME, or eSAME.
        lr: α, one for all parameters or one for each of their numbers.
        steps: of the inner loop; without any, these are the losses of θ on the target sets.
        first_order: whether to leave out second derivatives.
    """
    if type(model) is not Model or not torch.is_grad_enabled():
        return None
    if steps and type(model.weighting) is not Weighting:  # Others may learn what they do to the inner loss.
        return None
    if not all(p.requires_grad for p in model.parameters()) or any(map(_is_watched, model.modules())):
        return None
    batches = list({id(examples.inputs): examples.inputs for _, *both in episode for examples in both}.values())
    if not all(isinstance(batch, GraphBatch) for batch in batches):
        return None
    encoders = {id(batch): _ops(model.encoder, "forward", "encoder", batch) for batch in batches}
    chains = {id(examples): _chain(model, task, examples) for task, *both in episode for examples in both}
    if any(ops is None for ops in [*encoders.values(), *chains.values()]):
        return None

    inputs: dict[int, Tensor] = {}
    if not adapt_encoder:
        names = [name for name, _ in model.named_parameters() if name.startswith("encoder.")]
        own = [model.get_parameter(name) for name in names]
        # One after the other: what is computed of a few graphs stays in the processor's cache.
        inputs = {id(b): _Encoded.apply(b.x, encoders[id(b)], names, *own) for b in batches}

    losses = {}
    for task, support, target in episode:
        kinds = ("encoder.", f"heads.{task.name}.") if adapt_encoder else (f"heads.{task.name}.",)
        params = {name: p for name, p in model.named_parameters() if name.startswith(kinds)}
        both = []
        for examples in (support, target):
            ops = chains[id(examples)] or []
            if adapt_encoder:
                ops = [*(encoders[id(examples.inputs)] or []), *ops]
            both.append((Chain(ops), inputs.get(id(examples.inputs), examples.inputs.x)))
        scale = model.weighting.weights.get(task.name, 1.0)
        losses[task.name] = _outer_loss(params, both[0], both[1], lr, scale, steps, first_order)
    return losses


def _outer_loss(
    params: Mapping[str, Tensor],
    support: tuple[Chain, Tensor],
    target: tuple[Chain, Tensor],
    lr: Rates,
    scale: float,
    steps: int,
    first_order: bool,
) -> Tensor:
    """L(f_θ′, T), and its gradient: g = ∇L(θ′) first, then g ← g − α H g for each inner step, the last one first."""
    (chain, x), (test, z) = support, target
    need_x = x.requires_grad
    rates = {name: lr[name].detach() if isinstance(lr, Mapping) else lr for name in params}
    by_rate: Gradients = {}
    with torch.no_grad():
        path, adapted = [], {name: p.detach() for name, p in params.items()}
        for _ in range(steps):
            _, kept = chain.forward(adapted, x)
            inner, _ = chain.gradient(adapted, kept, need_x=False)
            path.append((adapted, inner, kept))
            adapted = {name: _moved(p, inner[name], rates[name], -scale) for name, p in adapted.items()}
        value, kept = test.forward(adapted, z)
        g, by_z = test.gradient(adapted, kept, need_x=need_x)
        by_x: Tensor | None = None
        for before, inner, kept in reversed(path):
            if isinstance(lr, Mapping):
                for name in params:
                    change = g[name] * inner[name] * -scale
                    by_rate[name] = by_rate[name] + change if name in by_rate else change
            if first_order:
                continue
            v = {name: g[name] * rates[name] * -scale for name in params}
            turned, dx = chain.curved(before, v, kept, need_x=need_x)
            g = {name: turned[name].add_(g[name]) for name in params}
            by_x = dx if by_x is None or dx is None else by_x.add_(dx)
    needs: list[tuple[Tensor, Tensor | None]] = [(params[name], g[name]) for name in params]
    if isinstance(lr, Mapping):
        needs += [(lr[name], by_rate[name]) for name in params]
    if need_x:
        needs += [(x, by_x), (z, by_z)]
    return _Known.apply(value, [gradient for _, gradient in needs], *(tensor for tensor, _ in needs))


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to see what goes through a module."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _moved(p: Tensor, g: Tensor, rate: float | Tensor, scale: float) -> Tensor:
    return p + g * rate * scale if isinstance(rate, Tensor) else torch.add(p, g, alpha=rate * scale)


class _Known(torch.autograd.Function):
    """A number whose gradients are known."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: list[Tensor | None], *tensors: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(None if known is None else known * g for known in ctx.gradients)


class _Encoded(torch.autograd.Function):
    """Embeddings, by operations that know their derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ops: list[Op], names: list[str], *params: Tensor) -> Tensor:
        ctx.chain, ctx.names = Chain(ops), names
        ctx.params = dict(zip(names, (p.detach() for p in params), strict=True))
        h, ctx.kept = ctx.chain.forward(ctx.params, x)
        return h

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        found, _ = ctx.chain.gradient(ctx.params, ctx.kept, need_x=False, g=g)
        return None, None, None, *(found[name] for name in ctx.names)


def _chain(model: Model, task: Any, examples: Any) -> list[Op] | None:
    """The operations from embeddings to the loss of a task."""
    head = _ops(model.heads[task.name], "forward", f"heads.{task.name}", examples)
    loss = _ops(task, "loss", examples)
    return None if head is None or loss is None else [*head, *loss]


def _ops(thing: Any, what: str, *arguments: Any) -> list[Op] | None:
    """The operations that something says it consists of, if the class that says so is the one that computes."""
    for kind in type(thing).__mro__:
        if what in vars(kind):
            return thing.ops(*arguments) if "ops" in vars(kind) else None
    return None
