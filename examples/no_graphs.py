"""SAME without graphs: scikit-learn's digits, with an MLP as the encoder.

There are three tasks for an image: its digit, whether the digit is even, and the centre of its ink. The method needs an
encoder, a head for each task, and episodes; the training loop needs a schedule and rules.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from same.methods import ESAME
from same.nn import Model
from same.seeding import stream
from same.tasks import Examples, Task
from same.training import EarlyStopping, Schedule, Training, Validation, train


class Digits(Task):
    """A task on images, with labels for all of them."""

    def __init__(self, name: str, y: Tensor) -> None:
        self.name, self.y = name, y

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy; squared error for numbers."""
        y = examples.y
        return F.mse_loss(output, y) if y.is_floating_point() else F.cross_entropy(output, y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy; the negative loss for numbers."""
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
    """Algorithm 4 for images: each task gets its own images, half of them support and half target."""

    x: Tensor
    tasks: list[Digits]
    ids: np.ndarray
    steps: int = 10

    def draw(self, epoch: int, step: int) -> list[tuple[Digits, Examples, Examples]]:
        """Return the episode of a step, which depends on its number alone."""
        order = stream(0, "episodes", epoch, step).permutation(self.ids)[:96]
        sets = iter(np.array_split(order, 2 * len(self.tasks)))
        return [
            (task, *(Examples(self.x[ids], task.y[ids]) for ids in (next(sets), next(sets)))) for task in self.tasks
        ]


def main() -> dict[str, float]:
    """Train on all tasks, on the digit alone, or not at all; then fit linear models to the embeddings."""
    images, digit = load_digits(return_X_y=True)
    x = torch.from_numpy(images / 16).float()
    ink = x.view(-1, 8, 8)
    centre = (ink.sum(dim=1) * torch.arange(8.0)).sum(dim=1) / ink.sum(dim=(1, 2))
    y = {"digit": torch.from_numpy(digit), "even": torch.from_numpy(digit % 2), "centre": (centre - 3.5)[:, None]}
    learn, test = train_test_split(np.arange(len(x)), test_size=0.3, stratify=digit, random_state=0)
    learn, held = learn[200:], learn[:200]
    scores = {}
    for name, tasks, epochs in (("untrained", [*y], 0), ("digit alone", ["digit"], 30), ("SAME", [*y], 30)):
        torch.manual_seed(0)
        encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16), nn.Tanh())
        heads = {task: Head(16, {"digit": 10, "even": 2, "centre": 1}[task]) for task in tasks}
        model, kinds = Model(encoder, heads), [Digits(task, y[task]) for task in tasks]
        if epochs:
            method, episodes = ESAME(inner_lr=0.1), Episodes(x, kinds, learn)
            rules = [Validation(method, [Episodes(x, kinds, held).draw(0, 0)]), EarlyStopping(patience=10)]
            train(Training(model, lr=5e-3), method, episodes, Schedule(epochs, episodes.steps), rules)
        with torch.no_grad():
            h = model.encoder(x).numpy()
        for task, labels in y.items():
            probe = Ridge() if labels.is_floating_point() else LogisticRegression(max_iter=2000)
            target = labels.flatten().numpy()
            scores[f"{name}, {task}"] = probe.fit(h[learn], target[learn]).score(h[test], target[test])
        print(f"{name:12}" + "  ".join(f"{task} {scores[f'{name}, {task}']:.3f}" for task in y))
    return scores


if __name__ == "__main__":
    main()
