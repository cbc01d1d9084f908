"""Validation, and early stopping by it."""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from same.errors import InputError
from same.methods.base import Method
from same.training.averaging import averaged
from same.training.loop import DivergedError, GivenUpTraining, Record, Rule, Schedule, Training


class Validation(Rule):
    """Record mean losses and scores over fixed episodes, and keep the model with the best objective.

    The objective, which is minimised, is the weighted sum of the losses, or of the negative scores.

    Args:
        method: method that evaluates an episode.
        episodes: validation episodes.
        on: whether losses or scores are summed.
        weights: λ by task; 1 for tasks not named.
    """

    def __init__(
        self,
        method: Method,
        episodes: Sequence[Any],
        *,
        on: Literal["loss", "score"] = "loss",
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.method, self.episodes, self.on, self.weights = method, episodes, on, dict(weights or {})

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Validate the model before the first step."""
        if not training.history:
            self._validate(training, epoch=0)

    def after(self, training: Training, schedule: Schedule) -> None:
        """Validate if it is time."""
        if schedule.validates(training.step) or training.ended:
            self._validate(training, schedule.epoch(training.step))

    def end(self, training: Training) -> None:
        """Leave the model in its best state."""
        training.model.load_state_dict(training.best)

    def _validate(self, training: Training, epoch: int) -> None:
        ranks = training.ranks
        training.model.eval()
        with averaged(training):
            mine = {
                i: self.method.evaluate(training.model, training.on_device(self.episodes[i]))
                for i in range(ranks.rank, len(self.episodes), ranks.size)
            }
            state = {name: value.detach().clone() for name, value in training.model.state_dict().items()}
        if ranks.size > 1:
            sums = ranks.gather([zlib.crc32(value.cpu().numpy().tobytes()) for value in state.values()])
            if any(each != sums[0] for each in sums):
                raise InputError(f"step {training.step}: the ranks have drifted apart; use machines of one kind")
        shared = {i: rows for part in ranks.gather(mine) for i, rows in part.items()}
        rows = [shared[i] for i in range(len(self.episodes))]
        tasks = {}
        for task in rows[0]:
            loss, score = (sum(values) / len(rows) for values in zip(*(row[task] for row in rows), strict=True))
            for what, value in (("loss", loss), ("score", score)):
                if not math.isfinite(value):
                    raise DivergedError(training.step, f"the validation {what} of {task}")
            tasks[task] = {"loss": loss, "score": score}
        sign = 1 if self.on == "loss" else -1
        objective = sign * sum(self.weights.get(task, 1.0) * row[self.on] for task, row in tasks.items())
        record: Record = {"step": training.step, "epoch": epoch, "objective": objective, "tasks": tasks}
        training.history.append(record)
        if training.best_record is None or objective < training.best_record["objective"]:
            training.best_record, training.best = record, state


class TimeLimit(Rule):
    """End the training at the first step after the `max_seconds` of the schedule.

    It comes before `Validation`, which validates the last state then.
    """

    def after(self, training: Training, schedule: Schedule) -> bool:
        """Check the time on all ranks."""
        limit = schedule.max_seconds
        if limit is not None and training.ranks.any(training.total_seconds() > limit):
            training.ended = "seconds"
        return bool(training.ended)


class EarlyStopping(Rule):
    """Stop when validation has not improved for a number of epochs.

    Args:
        patience: number of epochs without improvement.
        give_up: function of the history, called after every validation but the last; if it returns True,
            `GivenUpTraining` is raised.
    """

    def __init__(self, patience: int, give_up: Callable[[Sequence[Record]], bool] = lambda history: False) -> None:
        self.patience, self.give_up = patience, give_up

    def begin(self, training: Training, schedule: Schedule) -> bool:
        """Check the history of a checkpoint: its training may be over."""
        return self.after(training, schedule)

    def after(self, training: Training, schedule: Schedule) -> bool:
        """Check after each validation."""
        if not training.validated:
            return False
        if not training.ended and is_over(training.history, schedule.epochs, self.patience):
            training.ended = "cap" if training.history[-1]["epoch"] >= schedule.epochs else "patience"
        if training.ended:
            return True
        if self.give_up(training.history):
            raise GivenUpTraining
        return False


def is_over(history: Sequence[Record], epochs: float, patience: int) -> bool:
    """Return whether a training with this history has ended, by patience or by its number of epochs."""
    best = min(history, key=lambda record: record["objective"])
    epoch = history[-1]["epoch"]
    return bool(epoch >= epochs or epoch - best["epoch"] >= patience)
