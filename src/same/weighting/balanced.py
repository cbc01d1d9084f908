"""Weights under which all tasks pull equally hard at the shared parameters."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from same.weighting.weighting import Weighting, last_shared_weight


class Balanced(Weighting):
    """L = Σ λ(t) L(t), with λ(t) inversely proportional to the norm of the task's gradient.

    For each task, n(t)² is a running mean of the squared norms at the last shared layer W, corrected as in Adam for
    its start at 0:

        s(t) ← d s(t) + (1 − d) ‖∇_W L(t)‖²,   c(t) ← d c(t) + (1 − d),   n(t)² = s(t) / c(t)
        λ(t) = T n(t)⁻¹ / Σ n(t′)⁻¹

    The weights sum to the number T of tasks. A batch without a gradient of a task does not change n(t).

    Args:
        tasks: names of the tasks.
        decay: decay d of the running means.
    """

    def __init__(self, tasks: Sequence[str], decay: float = 0.9) -> None:
        super().__init__()
        self.tasks, self.decay = list(tasks), decay
        self.s: Tensor = nn.Buffer(torch.zeros(len(self.tasks)))
        self.c: Tensor = nn.Buffer(torch.zeros(len(self.tasks)))

    @property
    def w(self) -> Tensor:
        """λ of the tasks, in their order; 1 for tasks that have had no gradient."""
        known = self.s > 0
        inverse = torch.where(known, (self.c / self.s).sqrt(), 0.0)
        return torch.where(known, inverse * known.sum() / inverse.sum(), 1.0)

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the one loss of some or all of the tasks."""
        w = dict(zip(self.tasks, self.w, strict=True))
        return torch.stack([w[task] * loss for task, loss in losses.items()]).sum()

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Update the weights, and write the gradients of the weighted sum into the parameters."""
        shared = last_shared_weight(model)
        gradients = [torch.autograd.grad(losses[task], shared, retain_graph=True)[0] for task in self.tasks]
        squares = torch.stack([gradient.square().sum() for gradient in gradients]).to(self.s)
        rate = (1 - self.decay) * (squares > 0)
        self.s += rate * (squares - self.s)
        self.c += rate * (1 - self.c)
        self.weigh(losses).backward()
