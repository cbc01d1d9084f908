"""A weighting of your own is one class: here, each task's loss relative to what it has been of late.

A loss of 2 that stays 2 and a loss of 0.02 that stays 0.02 then pull equally hard, and no task drowns another.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

import same
from same.weighting import Weighting


class Relative(Weighting):
    """L = Σ L(t) / m(t), m(t) the running mean of L(t), which is not differentiated.

    Args:
        tasks: the names of the tasks.
        keep: how much of the mean stays at every step.
    """

    def __init__(self, tasks: tuple[str, ...], keep: float = 0.9) -> None:
        super().__init__()
        self.tasks, self.keep = tasks, keep
        # A buffer is kept in checkpoints and saved models.
        self.register_buffer("mean", torch.ones(len(tasks)))

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """The one loss; the inner loop calls it with one task, the outer loop with all."""
        mean = dict(zip(self.tasks, self.mean.tolist(), strict=True))
        return torch.stack([loss / mean[task] for task, loss in losses.items()]).sum()

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Called once a step: leaves the gradients in the model, and then moves the means."""
        super().backward(losses, model)
        now = torch.stack([losses[task].detach() for task in self.tasks])
        self.mean.lerp_(now.clamp(min=1e-6), 1 - self.keep)


def main() -> dict[str, float]:
    """Trains with it and with equal weights, and prints the scores of both."""
    graphs = same.graphs.planted(150)
    train, test = graphs[:100], graphs[100:]
    tasks, found = ("gc", "nc", "lp"), {}
    for name, weighting in {"relative": Relative(tasks), "equal": "fixed"}.items():
        model = same.SAME(method="classical", tasks=tasks, width=32, max_epochs=40, weighting=weighting).fit(train)
        for task in tasks:
            found[f"{name}, {task}"] = model.score(test, task=task)
        print(f"{name:10}" + "  ".join(f"{task} {found[f'{name}, {task}']:.3f}" for task in tasks))
        if isinstance(weighting, Relative):
            means = model.model_.weighting.mean
            print("           losses of late: " + ", ".join(f"{t} {m:.3f}" for t, m in zip(tasks, means, strict=True)))
    return found


if __name__ == "__main__":
    main()
