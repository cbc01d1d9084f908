"""From the losses of several tasks to one update: the base of all weightings, and fixed weights."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Weighting(nn.Module):
    """Fixed weights: L = Σ λ(t) L(t). The base of all other weightings.

    A weighting of your own overrides `weigh`, or `backward` where it needs more than the sum.

    Args:
        weights: λ by task; 1 for tasks not named.

    >>> Weighting({"gc": 2.0}).weigh({"gc": torch.tensor(1.0), "nc": torch.tensor(3.0)})
    tensor(5.)
    """

    draws = False  # Whether `backward` draws from torch's global generator.

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.weights = dict(weights or {})

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the one loss of some or all of the tasks."""
        return torch.stack([self.weights.get(task, 1.0) * loss for task, loss in losses.items()]).sum()

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Write the gradients to descend along into the parameters."""
        self.weigh(losses).backward()


def shared_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that all tasks share: those of the encoder."""
    return [p for p in model.get_submodule("encoder").parameters() if p.requires_grad]


def last_shared_weight(model: nn.Module) -> nn.Parameter:
    """Return the weight matrix of the last shared layer."""
    return next(p for p in reversed(shared_parameters(model)) if p.ndim > 1)
