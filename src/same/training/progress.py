"""How a training goes: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from same.errors import InputError
from same.training.loop import Rule, Schedule, Training

ReportFunction = Callable[[int, int, dict[str, Any]], None]
"""Function of the step, the maximum number of steps, and a record: {"losses": …} or that of a validation."""


class Report(Rule):
    """Report the losses of every step and the record of every validation.

    Args:
        report: function to call.
    """

    def __init__(self, report: ReportFunction) -> None:
        self.report = report

    def begin(self, training: Training, schedule: Schedule) -> bool:
        """Report the validation before the first step."""
        if training.step == 0 and training.validated:
            self.report(0, schedule.steps, training.history[-1])
        return False

    def after(self, training: Training, schedule: Schedule) -> bool:
        """Report a step, and the validation that followed it."""
        self.report(training.step, schedule.steps, {"losses": training.losses})
        if training.validated:
            self.report(training.step, schedule.steps, training.history[-1])
        return False


class Progress:
    """Shows the losses and scores of each task while a training runs; call it as the loop's `report`.

    Args:
        quiet: whether to show nothing.
        board: is told everything, too.
    """

    def __init__(self, quiet: bool = False, board: "TensorBoard | None" = None) -> None:
        console = Console(stderr=True)
        self.quiet, self.board = quiet, board
        self.live = Live(console=console, refresh_per_second=4) if sys.stderr.isatty() and not quiet else None
        self.losses: dict[str, float] = {}
        self.record: dict[str, Any] = {}
        self.best: dict[str, Any] = {}
        self.drawn = 0.0

    def __enter__(self) -> "Progress":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()
        if self.board:
            self.board.writer.close()

    def __call__(self, step: int, steps: int, news: dict[str, Any]) -> None:
        """Takes the news of a step or of a validation."""
        if self.board:
            self.board(step, steps, news)
        if "losses" in news:
            # Single episodes are noisy: show a running mean.
            for task, loss in news["losses"].items():
                self.losses[task] = 0.95 * self.losses.get(task, loss) + 0.05 * loss
        else:
            self.record = news
            if not self.best or news["objective"] < self.best["objective"]:
                self.best = news
            if not self.live and not self.quiet:
                mark = " *" if self.best is news else ""
                rows = (f"{task} {row['loss']:.3f}/{row['score']:.3f}" for task, row in news["tasks"].items())
                sys.stderr.write(f"epoch {news['epoch']} step {step} validation loss/score: {', '.join(rows)}{mark}\n")
        if self.live and ((now := time.monotonic()) - self.drawn > 0.25 or "losses" not in news):
            self.drawn = now
            self.live.update(self._table(step, steps))

    def _table(self, step: int, steps: int) -> Table:
        title = f"step {step:,} of at most {steps:,}, best validation at step {self.best.get('step', 0):,}"
        table = Table(
            "task", "loss", "validation loss", "score", "best loss", "score", title=title, title_justify="left"
        )
        for task, row in self.record.get("tasks", {}).items():
            best = self.best["tasks"][task]
            loss = f"{self.losses[task]:.4f}" if task in self.losses else ""
            table.add_row(task, loss, *(f"{value:.4f}" for value in (*row.values(), *best.values())))
        return table


class TensorBoard:
    """Logs the losses of every step, and losses and scores of every validation, for TensorBoard.

    Args:
        folder: where its files go.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError("--tensorboard: tensorboard is not installed; `pip install same-gnn[track]`") from None
        self.writer: Any = SummaryWriter(str(folder))

    def __call__(self, step: int, steps: int, news: dict[str, Any]) -> None:
        """Takes the news of a step or of a validation."""
        for task, loss in news.get("losses", {}).items():
            self.writer.add_scalar(f"loss/{task}", loss, step)
        for task, row in news.get("tasks", {}).items():
            for what, value in row.items():
                self.writer.add_scalar(f"validation {what}/{task}", value, step)
