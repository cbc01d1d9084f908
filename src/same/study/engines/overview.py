"""Progress of many runs."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from same.study.engines.base import Event


class Overview:
    """Progress bars on a terminal: one for all runs, one for each running one. Plain lines elsewhere."""

    def __init__(self, title: str, total: int, done: int, quiet: bool) -> None:
        self.total, self.done, self.failures = total, done, 0
        self.started, self.bars = dict[str, float](), dict[str, Any]()
        description = TextColumn("{task.description}", markup=False)
        columns = (description, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        console = Console(stderr=True, quiet=quiet, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.progress = Progress(*columns, console=console, disable=quiet or not sys.stderr.isatty())
        self.whole = self.progress.add_task(title, total=total, completed=done)

    def __enter__(self) -> "Overview":
        self.progress.start()
        if self.progress.disable:
            self.progress.console.print(f"{self.done} of {self.total} runs are done")
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, event: Event, name: str) -> None:
        """Show an event of the run of this name."""
        if event.what == "start":
            self.started[event.key] = time.monotonic()
            self.bars[event.key] = self.progress.add_task(name, total=None)
        elif event.what == "step":
            self.progress.update(self.bars[event.key], completed=event.value[0], total=event.value[1])
        else:
            failed = event.what == "failed"
            self.done, self.failures = self.done + (not failed), self.failures + failed
            self.progress.remove_task(self.bars.pop(event.key))
            title = f"all runs, {self.failures} failed" if self.failures else "all runs"
            self.progress.update(self.whole, completed=self.done, description=title)
            if failed or self.progress.disable:
                seconds = time.monotonic() - self.started[event.key]
                reason = f": {event.value.splitlines()[0]}" if failed else ""
                line = f"[{self.done}/{self.total}] {name} {event.what} in {seconds:.0f} s{reason}"
                self.progress.console.print(line)
