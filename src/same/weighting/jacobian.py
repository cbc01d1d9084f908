"""Aggregators of TorchJD (Quinton & Rey, 2024): UPGrad, PCGrad, MGDA and others."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from same.errors import InputError
from same.weighting.weighting import Weighting, shared_parameters


class Jacobian(Weighting):
    """Shared parameters descend along an aggregate of the tasks' gradients, heads along the sum of their gradients.

    Args:
        name: name of an aggregator of `torchjd.aggregation`, in any case: `upgrad`, `pcgrad`, `mgda`, …
    """

    draws = True  # Some aggregators visit the tasks in random order.

    def __init__(self, name: str) -> None:
        super().__init__()
        self.aggregator = _aggregator(name)

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Write the aggregate into the shared parameters and the sums of gradients into all others."""
        shared = shared_parameters(model)
        others = [p for name, p in model.named_parameters() if not name.startswith("encoder.")]
        rows = []
        for loss in losses.values():
            gradients = torch.autograd.grad(loss, [*shared, *others], retain_graph=True, allow_unused=True)
            filled = [torch.zeros_like(p) if g is None else g for p, g in zip(shared, gradients, strict=False)]
            rows.append(torch.cat([g.reshape(-1) for g in filled]))
            for p, g in zip(others, gradients[len(shared) :], strict=True):
                if g is not None:
                    p.grad = g if p.grad is None else p.grad + g
        aggregate = self.aggregator(torch.stack(rows))
        for p, part in zip(shared, aggregate.split([p.numel() for p in shared]), strict=True):
            p.grad = part.reshape(p.shape).clone()


def _aggregator(name: str) -> nn.Module:
    try:
        from torchjd import aggregation
    except ImportError:
        raise InputError(f"weighting: {name!r} needs TorchJD: pip install 'same-gnn[mtl]'") from None
    kinds = {
        known.lower(): kind
        for known, kind in vars(aggregation).items()
        if isinstance(kind, type) and issubclass(kind, aggregation.Aggregator)
    }
    if name.lower() not in kinds:
        others = "fixed, uncertainty, gradnorm, balanced"
        raise InputError(f"weighting: {name!r} is neither {others} nor one of {', '.join(kinds)}")
    try:
        aggregator = kinds[name.lower()]()
        if hasattr(aggregator, "reset"):
            raise InputError(f"weighting: {name!r} keeps state between steps, which checkpoints do not save")
        return aggregator
    except TypeError:
        raise InputError(f"weighting: {name!r} needs arguments of its own and cannot be chosen by name") from None
    except ImportError as error:
        raise InputError(f"weighting: {name!r}: {error}") from None
