"""A running mean of the parameters, which is steadier than the parameters of the last step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from same.training.loop import Rule, Schedule, Training


class Averaging(Rule):
    """Keep a running mean of the parameters (Polyak & Juditsky, 1992): θ̄ ← d θ̄ + (1 − d) θ.

    The mean is what is validated and kept. At the start it forgets faster.

    Args:
        decay: decay d of the running mean.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Start at the parameters of the model, or at the mean of a checkpoint."""
        if not training.average:
            training.average = {name: p.detach().clone() for name, p in training.model.named_parameters()}

    def after(self, training: Training, schedule: Schedule) -> None:
        """Update the mean."""
        decay = min(self.decay, training.step / (training.step + 9))
        parameters = [p.detach() for p in training.model.parameters()]
        torch._foreach_lerp_(list(training.average.values()), parameters, 1 - decay)


@contextmanager
def averaged(training: Training) -> Iterator[None]:
    """Run a block with the running mean, if there is one, as the parameters of the model."""

    def swap() -> None:
        for name, p in training.model.named_parameters():
            if name in training.average:
                p.data, training.average[name] = training.average[name], p.data

    swap()
    try:
        yield
    finally:
        swap()
