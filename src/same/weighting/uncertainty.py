"""Uncertainty weighting (Kendall, Gal & Cipolla, CVPR 2018)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from same.weighting.weighting import Weighting


class Uncertainty(Weighting):
    """L = Σ exp(−s(t)) L(t) + s(t)/2, where s = log σ² of each task is learned with the model.

    For a constant loss L, the best s is log(2 L): hard tasks weigh less.

    Args:
        tasks: names of the tasks; each has an s that starts at 0.

    >>> Uncertainty(["gc"]).weigh({"gc": torch.tensor(1.0)}).item()
    1.0
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        super().__init__()
        self.s = nn.ParameterDict({task: nn.Parameter(torch.zeros(())) for task in tasks})

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the one loss of some or all of the tasks."""
        return torch.stack([torch.exp(-self.s[t]) * loss + self.s[t] / 2 for t, loss in losses.items()]).sum()
