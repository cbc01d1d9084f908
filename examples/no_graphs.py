"""No graphs at all: SAME on scikit-learn's digits, with an MLP as the encoder.

Three tasks on one image: which digit it is, whether it is even, and where the centre of its ink lies. The method is
`same.methods`, unchanged: it needs an encoder, a head for each task, and episodes.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from same.config import Config
from same.methods import esame
from same.nn import Model
from same.streams import stream
from same.tasks import Examples, Task
from same.training import train


class Digits(Task):
    """Classes, told by their logits."""

    def __init__(self, name: str, y: Tensor) -> None:
        self.name, self.y = name, y

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy, or for numbers the squared error."""
        y = examples.y
        return F.mse_loss(output, y) if y.is_floating_point() else F.cross_entropy(output, y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy, or for numbers the negative loss."""
        if examples.y.is_floating_point():
            return -float(self.loss(output, examples))
        return float((output.argmax(1) == examples.y).float().mean())


class Head(nn.Linear):
    """A linear layer: heads are called with the embeddings and the examples."""

    def forward(self, h: Tensor, examples: Examples) -> Tensor:
        """[examples, outputs]"""
        return super().forward(h)


@dataclass
class Episodes:
    """Algorithm 4 for images: every task gets its own, half of them support and half target."""

    x: Tensor
    tasks: list[Digits]
    ids: np.ndarray
    steps: int = 10

    def draw(self, epoch: int, step: int) -> list[tuple[Digits, Examples, Examples]]:
        """The episode of a step, which depends on nothing but its number."""
        dealt = np.array_split(stream(0, "episodes", epoch, step).permutation(self.ids)[:96], 2 * len(self.tasks))
        sets = iter(dealt)
        return [
            (task, *(Examples(self.x[ids], task.y[ids]) for ids in (next(sets), next(sets)))) for task in self.tasks
        ]


def main() -> dict[str, float]:
    """Trains on all tasks, on the digit alone, or not at all; then probes the embeddings for every task."""
    images, digit = load_digits(return_X_y=True)
    x = torch.from_numpy(images / 16).float()
    ink = x.view(-1, 8, 8)
    centre = (ink.sum(dim=1) * torch.arange(8.0)).sum(dim=1) / ink.sum(dim=(1, 2))
    y = {"digit": torch.from_numpy(digit), "even": torch.from_numpy(digit % 2), "centre": (centre - 3.5)[:, None]}
    learn, test = train_test_split(np.arange(len(x)), test_size=0.3, stratify=digit, random_state=0)
    learn, held = learn[200:], learn[:200]
    found = {}
    for name, tasks, epochs in (("untrained", [*y], 0), ("digit alone", ["digit"], 30), ("SAME", [*y], 30)):
        torch.manual_seed(0)
        encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16), nn.Tanh())
        heads = {task: Head(16, {"digit": 10, "even": 2, "centre": 1}[task]) for task in tasks}
        model, kinds = Model(encoder, heads), [Digits(task, y[task]) for task in tasks]
        if epochs:
            config = Config(tasks=tuple(tasks), max_epochs=epochs, outer_lr=5e-3)
            validation = [Episodes(x, kinds, held).draw(0, 0)]
            train(model, esame(inner_lr=0.1), Episodes(x, kinds, learn), validation, config)
        with torch.no_grad():
            h = model.encoder(x).numpy()
        for task, labels in y.items():
            probe = Ridge() if labels.is_floating_point() else LogisticRegression(max_iter=2000)
            target = labels.flatten().numpy()
            found[f"{name}, {task}"] = probe.fit(h[learn], target[learn]).score(h[test], target[test])
        print(f"{name:12}" + "  ".join(f"{task} {found[f'{name}, {task}']:.3f}" for task in y))
    return found


if __name__ == "__main__":
    main()
