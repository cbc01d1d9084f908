"""Your own weighting: divide the loss of each task by its running mean.

A loss around 2 and a loss around 0.02 then count the same, so that no task dominates the others because of its scale.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

import same
from same.weighting import Weighting


class Relative(Weighting):
    """L = Σ L(t) / m(t), where m(t) is the running mean of L(t), treated as a constant.

    Args:
        tasks: names of the tasks.
        decay: decay of the running mean.
    """

    def __init__(self, tasks: tuple[str, ...], decay: float = 0.9) -> None:
        super().__init__()
        self.tasks, self.decay = tasks, decay
        self.register_buffer("mean", torch.ones(len(tasks)))  # Checkpoints include buffers.

    def weigh(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the one loss to minimise."""
        mean = dict(zip(self.tasks, self.mean.tolist(), strict=True))
        return torch.stack([loss / mean[task] for task, loss in losses.items()]).sum()

    def backward(self, losses: Mapping[str, Tensor], model: nn.Module) -> None:
        """Compute the gradients, then update the means; called once per step."""
        super().backward(losses, model)
        latest = torch.stack([losses[task].detach() for task in self.tasks])
        self.mean.lerp_(latest.clamp(min=1e-6), 1 - self.decay)


def main() -> dict[str, float]:
    """Train with this weighting and with equal weights, and print the scores of both."""
    graphs = same.graphs.planted(150)
    train, test = graphs[:100], graphs[100:]
    tasks, scores = ("gc", "nc", "lp"), {}
    for name, weighting in {"relative": Relative(tasks), "equal": "fixed"}.items():
        model = same.GraphEncoder(method="classical", tasks=tasks, width=32, max_epochs=40, weighting=weighting)
        model.fit(train)
        for task in tasks:
            scores[f"{name}, {task}"] = model.score(test, task=task)
        print(f"{name:10}" + "  ".join(f"{task} {scores[f'{name}, {task}']:.3f}" for task in tasks))
    return scores


if __name__ == "__main__":
    main()
