"""The training loop: UPDATE, step after step. Everything else is a rule that acts between the steps."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from same.episodes import to_device
from same.errors import InputError
from same.methods.base import Method
from same.nn.encoders import seed_dropout
from same.seeding import forked_torch
from same.training.distributed import ALONE, Accumulator, Ranks
from same.weighting import Weighting

Record = dict[str, Any]  # The result of one validation: step, epoch, objective, and loss and score by task.


class Sampler(Protocol):
    """Source of episodes; a draw depends on its arguments alone."""

    steps: int

    def draw(self, epoch: int, step: int) -> Any:
        """Return the episode of a step of an epoch."""


class DivergedError(InputError):
    """A loss or a gradient is not finite."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(
            f"step {step}: {what} is not finite; the last checkpoint is kept. "
            "Lower outer_lr or inner_lr, or set clip, and start a new run"
        )


class InterruptedTraining(Exception):  # noqa: N818
    """Training was asked to stop, and has saved its state."""


class GivenUpTraining(Exception):  # noqa: N818
    """Training was judged not worth more time; its state is saved, and it can be continued."""


@dataclass(frozen=True)
class Schedule:
    """How long to train and how often to validate.

    Args:
        epochs: maximum number of epochs.
        steps_per_epoch: number of episodes that pass over the training data once.
        validate_every: epochs between validations.
        episodes_per_step: episodes whose gradients a step averages.
        max_seconds: seconds after which `TimeLimit` ends the training.
    """

    epochs: int
    steps_per_epoch: int
    validate_every: float = 5
    episodes_per_step: int = 1
    max_seconds: float | None = None

    @property
    def steps(self) -> int:
        """Maximum number of steps."""
        return math.ceil(self.epochs * self.steps_per_epoch / self.episodes_per_step)

    def epoch(self, step: int) -> int:
        """Return the number of epochs that so many steps complete."""
        return min(step * self.episodes_per_step // self.steps_per_epoch, self.epochs)

    def validates(self, step: int) -> bool:
        """Return whether there is a validation after so many steps."""
        every = math.ceil(self.validate_every * self.steps_per_epoch / self.episodes_per_step)
        return step % every == 0 or step == self.steps

    def seconds_left(self, step: int, seconds: float) -> float:
        """Return the most seconds that remain after so many steps in so many seconds."""
        left = (self.steps - step) * seconds / step
        return left if self.max_seconds is None else max(0.0, min(left, self.max_seconds - seconds))


@dataclass
class Training:
    """The state of a training.

    Args:
        model: model to train.
        lr: learning rate β of the outer Adam.
        weight_decay: L2 penalty of the outer Adam.
        weighting: weighting of the losses; their sum by default.
        clip: maximum norm of the gradient; 0 for no maximum.
        seeds: function from the number of an episode to the seed of its dropout.
        ranks: processes that train the model together.
        isolate: whether the model draws from torch's global generator. Then every step runs with that generator
            seeded, one step of all threads at a time.

    Attributes:
        step: number of steps taken.
        losses: losses of the last step, by task.
        history: record of each validation.
        average: running mean of the parameters, if one is kept.
        best: state of the model at the best validation.
        best_record: record of the best validation.
        examples: labelled examples seen so far, by task.
        seconds: wall-clock time so far.
        cpu_seconds: processor time so far.
        ended: why training ended: `patience`, `cap` or `seconds`; empty before that.
    """

    model: nn.Module
    lr: float = 2e-3
    weight_decay: float = 0.0
    weighting: Weighting = field(default_factory=Weighting)
    clip: float = 10.0
    seeds: Callable[[int], int] = lambda number: number
    ranks: Ranks = ALONE
    isolate: bool = False
    step: int = 0
    losses: dict[str, float] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)
    average: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_record: Record | None = None
    examples: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    ended: str = ""

    def __post_init__(self) -> None:
        self.optimiser = torch.optim.Adam(self.parameters(), lr=self.lr, weight_decay=self.weight_decay, fused=True)
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the model and of the weighting."""
        return [*self.model.parameters(), *self.weighting.parameters()]

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    @property
    def validated(self) -> bool:
        """Whether the last step was followed by a validation."""
        return bool(self.history) and self.history[-1]["step"] == self.step

    def on_device(self, batch: Any) -> Any:
        """Return an episode on the device of the model."""
        return batch if self.device.type == "cpu" else to_device(batch, self.device)

    def untimed(self) -> float:
        """Return the seconds since the last call of `add_time`."""
        return time.perf_counter() - self._wall

    def total_seconds(self) -> float:
        """Return the seconds of training so far, interruptions left out."""
        return self.seconds + self.untimed()

    def add_time(self) -> None:
        """Add the time since the last call to `seconds` and `cpu_seconds`."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.seconds += wall - self._wall
        self.cpu_seconds += cpu - self._cpu
        self._wall, self._cpu = wall, cpu


class Rule:
    """Something that happens between the steps: averaging, validation, stopping, checkpoints, progress."""

    def begin(self, training: Training, schedule: Schedule) -> bool | None:
        """Act before the first step; return True if training is over."""

    def after(self, training: Training, schedule: Schedule) -> bool | None:
        """Act after a step; return True if training is over."""

    def end(self, training: Training) -> None:
        """Act after the last step."""


def train(
    training: Training, method: Method, sampler: Sampler, schedule: Schedule, rules: Sequence[Rule] = ()
) -> Training:
    """Train a model in place.

    Args:
        training: state to start from.
        method: method that gives the losses of a step.
        sampler: source of episodes.
        schedule: length of the training.
        rules: rules that act between the steps, in this order.
    """
    if schedule.episodes_per_step % training.ranks.size:
        raise InputError(
            f"episodes_per_step: {schedule.episodes_per_step} cannot be shared evenly by {training.ranks.size} ranks"
        )
    over = any([rule.begin(training, schedule) for rule in rules])  # noqa: C419 (all rules act)
    while not over and training.step < schedule.steps:
        training.losses = update(training, method, sampler, schedule.episodes_per_step)
        training.step += 1
        over = any([rule.after(training, schedule) for rule in rules])  # noqa: C419
    for rule in rules:
        rule.end(training)
    training.add_time()
    return training


def update(training: Training, method: Method, sampler: Sampler, episodes: int = 1) -> dict[str, float]:
    """UPDATE: one step of Adam along the gradient of Σ λ(t) L(t).

    Returns:
        The losses by task, averaged over the episodes of this rank.
    """
    training.model.train()
    ranks, first, seen = training.ranks, training.step * episodes, Counter[str]()
    if episodes == 1:
        losses = _gradients(training, method, sampler, first, seen)
    else:
        accumulator, each = Accumulator([training.model, training.weighting]), []
        for number in range(first + ranks.rank, first + episodes, ranks.size):
            accumulator.restore()
            each.append(_gradients(training, method, sampler, number, seen))
            accumulator.add()
        accumulator.share(ranks, episodes)
        losses = {task: sum(values[task] for values in each) / len(each) for task in each[0]}
    norm = nn.utils.get_total_norm([p.grad for p in training.parameters() if p.grad is not None])
    if not math.isfinite(norm.item()):
        raise DivergedError(training.step, "the gradient")
    if norm > (training.clip or math.inf):
        nn.utils.clip_grads_with_norm_(training.parameters(), training.clip, norm)
    training.optimiser.step()
    for counts in ranks.gather(seen):
        for name, count in counts.items():
            training.examples[name] = training.examples.get(name, 0) + count
    return losses


def _gradients(
    training: Training, method: Method, sampler: Sampler, number: int, seen: Counter[str]
) -> dict[str, float]:
    """Compute the gradients of one episode, count its examples, and return its losses."""
    # A resumed step draws the same numbers.
    seed = training.seeds(number)
    seed_dropout(training.model, seed)
    batch = training.on_device(sampler.draw(*divmod(number, sampler.steps)))
    for part in method.parts(batch):
        seen[part.task.name] += len(part.support.y) + len(part.target.y)
    with forked_torch(seed) if training.isolate or training.weighting.draws else nullcontext():
        losses = method.losses(training.model, batch)
        values = {task: loss.item() for task, loss in losses.items()}
        for task, value in values.items():
            if not math.isfinite(value):
                raise DivergedError(training.step, f"the loss of {task}")
        training.optimiser.zero_grad()
        training.weighting.backward(losses, training.model)
    return values
