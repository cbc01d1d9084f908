"""GradNorm (Chen, Badrinarayanan, Lee & Rabinovich, ICML 2018)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from same.weighting.weighting import Weighting, last_shared_weight


class GradNorm(Weighting):
    """L = Σ w(t) L(t), with weights that balance the learning speed of the tasks.

    With G(t) = w(t) ‖∇_W L(t)‖ at the last shared layer W, Ḡ their mean, and r(t) the loss ratio L(t)/L₀(t) over its
    mean, the weights descend along

        Σ |G(t) − Ḡ r(t)^α|   (Ḡ r(t)^α taken as constant)

    with Adam, and are scaled to sum to the number of tasks after every step.

    Args:
        tasks: names of at least two tasks.
        alpha: strength with which slow tasks are favoured.
        lr: learning rate of the weights.
    """

    def __init__(self, tasks: Sequence[str], alpha: float = 1.5, lr: float = 0.025) -> None:
        super().__init__()
        self.tasks, self.alpha, self.lr = list(tasks), alpha, lr
        self.w: Tensor = nn.Buffer(torch.ones(len(self.tasks)))
        self.first = nn.Buffer(torch.zeros(len(self.tasks)))
        # The state of Adam, as buffers, so that checkpoints hold it.
        self.moments = nn.Buffer(torch.zeros(2, len(self.tasks)))
        self.steps: Tensor = nn.Buffer(torch.zeros(()))

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the one loss of some or all of the tasks."""
        # A copy, because the weights change before the sum is differentiated.
        w = dict(zip(self.tasks, self.w.clone(), strict=True))
        return torch.stack([w[task] * loss for task, loss in losses.items()]).sum()

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Write the gradients of the weighted sum into the parameters, and update the weights."""
        loss = self.weigh(losses)
        shared = last_shared_weight(model)
        gradients = [torch.autograd.grad(losses[task], shared, retain_graph=True)[0] for task in self.tasks]
        norms = torch.stack([gradient.norm() for gradient in gradients]).to(self.w)
        values = torch.stack([losses[task].detach() for task in self.tasks]).to(self.w)
        loss.backward()
        # The first loss of a task is its first positive one: a batch may have no examples of it.
        self.first.copy_(torch.where(self.first > 0, self.first, values))
        if self.first.all():
            self._descend(self.weight_gradient(norms, values))

    def _descend(self, gradient: Tensor) -> None:
        """Take a step of Adam; the weights stay positive and sum to their number."""
        self.steps += 1
        self.moments[0].lerp_(gradient, 1 - 0.9)
        self.moments[1].lerp_(gradient.square(), 1 - 0.999)
        mean, square = self.moments[0] / (1 - 0.9**self.steps), self.moments[1] / (1 - 0.999**self.steps)
        self.w -= self.lr * mean / (square.sqrt() + 1e-8)
        self.w.clamp_(min=1e-3)
        self.w *= len(self.tasks) / self.w.sum()

    def weight_gradient(self, norms: Tensor, losses: Tensor) -> Tensor:
        """Return the gradient of Σ |G(t) − Ḡ r(t)^α| by the weights, from ‖∇_W L(t)‖ and L(t)."""
        ratio = losses / self.first.clamp(min=1e-12)
        g = self.w * norms
        goal = g.mean() * (ratio / ratio.mean().clamp(min=1e-12)) ** self.alpha
        return torch.sign(g - goal) * norms
