"""A shared linear layer and two tasks whose gradients differ in norm and direction."""

import torch
from torch import nn

from same.nn import Model


class Scale(nn.Module):
    """A head that multiplies its input by a number."""

    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(factor)))

    def forward(self, h, examples):
        return self.factor * h


def two_tasks(seed=0):
    """The model, and a function that computes its losses."""
    torch.manual_seed(seed)
    model = Model(nn.Linear(3, 4), {"a": Scale(10.0), "b": Scale(1.0)}).double()
    x = torch.randn(8, 3, dtype=torch.float64)
    goals = {"a": torch.randn(8, 4, dtype=torch.float64), "b": torch.randn(8, 4, dtype=torch.float64)}

    def losses():
        h = model.encoder(x)
        return {task: (model.heads[task](h, None) - goal).square().mean() for task, goal in goals.items()}

    return model, losses
