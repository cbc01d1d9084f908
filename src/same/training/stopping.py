"""Validation, and early stopping by it."""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from same.errors import InputError
from same.methods.base import Method, Scores
from same.training.averaging import averaged
from same.training.loop import DivergedError, GivenUpTraining, Record, Rule, Schedule, Training


class Validation(Rule):
    """Record loss and score of each task on validation examples, and keep the model with the least objective.

    With a probe, losses and scores are those of linear models of the embeddings, as `predict` would have them; without
    one, those of the method on the validation episodes. The objective is

    - with episodes, Σ λ(t) L(t), the method's own losses on the episodes (the paper's rule);
    - without episodes, Σ L(t) of the probe's losses;
    - without both, it falls with every step, so that the last model is kept.

    Args:
        method: method that evaluates an episode.
        episodes: validation episodes; empty if the probe's losses are the objective.
        probe: function from the encoder to loss and score by task.
        weights: λ by task; 1 for tasks not named.
    """

    def __init__(
        self,
        method: Method,
        episodes: Sequence[Any] = (),
        *,
        probe: Callable[[Any], Scores] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.method, self.episodes, self.probe, self.weights = method, episodes, probe, dict(weights or {})

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
        training.model.eval()
        with averaged(training):
            own, probed = self._own(training), self._probed(training)
            state = {name: value.detach().clone() for name, value in training.model.state_dict().items()}
        if training.ranks.size > 1:
            sums = training.ranks.gather([zlib.crc32(value.cpu().numpy().tobytes()) for value in state.values()])
            if any(each != sums[0] for each in sums):
                raise InputError(f"step {training.step}: the ranks have drifted apart; use machines of one kind")
        rows = {task: {"loss": loss, "score": score} for task, (loss, score) in (probed or own).items()}
        if probed:
            for task in own.keys() & rows.keys():
                rows[task]["own_loss"] = own[task][0]
        for task, what, value in ((task, what, value) for task, row in rows.items() for what, value in row.items()):
            if not math.isfinite(value):
                raise DivergedError(training.step, f"the validation {what.removeprefix('own_')} of {task}")
        objective = sum(self.weights.get(task, 1.0) * loss for task, (loss, _) in own.items())
        if not self.episodes:
            objective = sum(loss for loss, _ in probed.values()) if probed else -float(training.step)
        if not math.isfinite(objective):
            raise DivergedError(training.step, "the validation loss")
        record: Record = {"step": training.step, "epoch": epoch, "objective": objective, "tasks": rows}
        training.history.append(record)
        if training.best_record is None or objective < training.best_record["objective"]:
            training.best_record, training.best = record, state

    def _own(self, training: Training) -> Scores:
        """The method's own loss and score by task: means over the episodes, which the ranks share."""
        ranks = training.ranks
        mine = {
            i: self.method.evaluate(training.model, training.on_device(self.episodes[i]))
            for i in range(ranks.rank, len(self.episodes), ranks.size)
        }
        shared = {i: rows for part in ranks.gather(mine) for i, rows in part.items()}
        rows = [shared[i] for i in range(len(self.episodes))]
        tasks = rows[0] if rows else ()
        return {
            task: tuple(sum(v) / len(rows) for v in zip(*(row[task] for row in rows), strict=True)) for task in tasks
        }

    def _probed(self, training: Training) -> Scores:
        """The probe's loss and score by task, computed by the first rank."""
        if (probe := self.probe) is None:
            return {}
        return training.ranks.first(lambda: probe(training.model.encoder))


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
