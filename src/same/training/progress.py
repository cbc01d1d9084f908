"""Progress of one training run: a live table on a terminal, plain lines elsewhere."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from same.errors import InputError
from same.training.loop import Rule, Schedule, Training

log = logging.getLogger("same")

ReportFunction = Callable[[int, int, dict[str, Any]], None]
"""Function of the step, the maximum number of steps, and a record.

The record is {"losses": …, "seconds_left": …} after a step, or that of a validation.
"""


@dataclass(frozen=True)
class Report(Rule):
    """Calls `report` with the losses of every step and the record of every validation."""

    report: ReportFunction

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Report the validation before the first step."""
        if training.step == 0 and training.validated:
            self.report(0, schedule.steps, training.history[-1])

    def after(self, training: Training, schedule: Schedule) -> None:
        """Report a step, and the validation that followed it."""
        left = schedule.seconds_left(training.step, training.total_seconds())
        self.report(training.step, schedule.steps, {"losses": training.losses, "seconds_left": left})
        if training.validated:
            self.report(training.step, schedule.steps, training.history[-1])


class Estimate(Rule):
    """Log once how long training can take: 10 seconds after the start and after a validation, or after 60 seconds."""

    done = False

    def after(self, training: Training, schedule: Schedule) -> None:
        """Log the estimate if it is time: as a warning if it exceeds 10 minutes."""
        seconds = training.total_seconds()
        if self.done or seconds < (10 if len(training.history) > 1 else 60):
            return
        self.done, left = True, schedule.seconds_left(training.step, seconds)
        epoch = seconds / training.step * schedule.steps / schedule.epochs
        log.log(
            logging.WARNING if left > 600 else logging.INFO,
            "at most about %s left (%d epochs of %s); early stopping usually ends training before, and max_epochs or "
            "max_seconds limit it",
            duration(left),
            schedule.epochs,
            duration(epoch),
        )


def duration(seconds: float) -> str:
    """Return a time as a text.

    >>> duration(3.44), duration(95), duration(750), duration(20_000)
    ('3.4 s', '95 s', '12 min', '5.6 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class TensorBoard:
    """Writes losses of steps, and losses and scores of validations, to a folder that TensorBoard shows."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError("--tensorboard: tensorboard is not installed; `pip install same-gnn[track]`") from None
        self.writer: Any = SummaryWriter(str(folder))

    def __call__(self, step: int, steps: int, record: dict[str, Any]) -> None:
        """Log one training step or one validation."""
        for task, loss in record.get("losses", {}).items():
            self.writer.add_scalar(f"loss/{task}", loss, step)
        for task, row in record.get("tasks", {}).items():
            for name, value in row.items():
                self.writer.add_scalar(f"validation {name}/{task}", value, step)


class Progress:
    """Shows losses and scores per task while a model trains, and passes every record on to TensorBoard."""

    def __init__(self, quiet: bool = False, board: TensorBoard | None = None) -> None:
        self.quiet, self.board = quiet, board
        self.live = Live(console=Console(stderr=True)) if sys.stderr.isatty() and not quiet else None
        self.losses, self.validation, self.best = dict[str, float](), dict[str, Any](), dict[str, Any]()
        self.left = ""

    def __enter__(self) -> "Progress":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()
        if self.board:
            self.board.writer.close()

    def __call__(self, step: int, steps: int, record: dict[str, Any]) -> None:
        """Show one training step (`losses`) or one validation (a record of the history)."""
        if self.board:
            self.board(step, steps, record)
        if "seconds_left" in record:
            left = record["seconds_left"]
            self.left = f", at most {duration(left)} left" if left else ""
        for task, loss in record.get("losses", {}).items():
            self.losses[task] = 0.95 * self.losses.get(task, loss) + 0.05 * loss  # Single episodes are noisy.
        if "tasks" in record:
            self.validation = record
            self.best = min(self.best or record, record, key=lambda each: each["objective"])
            if not self.live and not self.quiet:
                rows = (f"{task} {row['loss']:.3f}/{row['score']:.3f}" for task, row in record["tasks"].items())
                text = f"epoch {record['epoch']} step {step} validation loss/score: {', '.join(rows)}{self.left}"
                sys.stderr.write(f"{text} *\n" if self.best is record else f"{text}\n")
        if self.live:
            self.live.update(self._table(step, steps))

    def _table(self, step: int, steps: int) -> Table:
        title = f"step {step:,} of at most {steps:,}, best validation at step {self.best.get('step', 0):,}{self.left}"
        table = Table("task", "loss", "validation loss", "score", "best loss", "score", title=title)
        for task, row in self.validation.get("tasks", {}).items():
            loss = f"{self.losses[task]:.4f}" if task in self.losses else ""
            values = (each[what] for each in (row, self.best["tasks"][task]) for what in ("loss", "score"))
            table.add_row(task, loss, *(f"{value:.4f}" for value in values))
        return table
