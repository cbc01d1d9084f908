"""What engines have in common: jobs go in, events come out. A new engine is one function like `local`."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from same.config import Config
from same.errors import DamagedError
from same.files import read_json, write_json

log = logging.getLogger("same")

RUNS, ERRORS = "runs", "errors"
"""Where a study or a search keeps the folders of its runs, and the errors of failed ones."""


@dataclass(frozen=True)
class Job:
    """A run to execute. Jobs are pickled and sent to other processes.

    Attributes:
        data: folder of local datasets.
        after: key of the run that must end before this one starts.
        then: called as `then(folder, data=data)` for the finished run; its return value comes back to the driver.
        give_up: called with the history after every validation; returns whether to leave the run unfinished.
        keep: whether the driver needs the files of the run afterwards, where workers have disks of their own.
    """

    config: Config
    folder: Path
    data: Path | None = None
    after: str | None = None
    then: Callable[..., Any] | None = None
    give_up: Callable[[Sequence[dict[str, Any]]], bool] | None = None
    keep: bool = False


class Outcome(NamedTuple):
    """Summary of a run's training (None if it was given up), its history, and what `Job.then` returned."""

    training: dict[str, Any] | None
    history: list[dict[str, Any]]
    value: Any = None


class Event(NamedTuple):
    """News of the job whose configuration has this key: `start`, `step`, `done` or `failed`.

    The value of a step is (steps taken, most steps), of a job that is done its `Outcome`, of a failed one the error.
    """

    what: str
    key: str
    value: Any = None


Engine = Callable[[Sequence[Job], int], Iterator[Event]]
"""Executes jobs with a number of workers."""
Report = Callable[[int, int, dict[str, Any]], None]
"""Called with the progress of a training."""


def execute(job: Job, report: Report, stop: Callable[[], bool], saved: Callable[[], None] = lambda: None) -> Outcome:
    """Train one run, or continue it, and call `job.then`; a finished run is not trained again.

    `stop` is polled after every step; `saved` is called after training, from when on an interruption loses nothing.
    """
    from same.experiment import run
    from same.saved import read_history
    from same.training import GivenUpTraining

    give_up = job.give_up or (lambda history: False)
    try:
        training = run(job.config, job.folder, data=job.data, report=report, stop=stop, give_up=give_up)
    except GivenUpTraining:
        return Outcome(None, read_history(job.folder))
    saved()
    return Outcome(training, read_history(job.folder), job.then(job.folder, data=job.data) if job.then else None)


def take(waiting: list[Job], pending: set[str]) -> Job | None:
    """Remove and return the first job that does not wait for a pending one; None if all wait."""
    job = next((job for job in waiting if job.after not in pending), None)
    if job is not None:
        waiting.remove(job)
    return job


def record_failure(folder: Path, event: Event) -> None:
    """Keep the error of a failed run outside its folder; remove it once the run is done."""
    path = folder / ERRORS / f"{event.key}.json"
    if event.what == "failed":
        write_json(path, {"error": event.value})
    elif event.what == "done" and path.is_file():
        path.unlink()
        with suppress(OSError):  # Other errors are left.
            path.parent.rmdir()


def read_error(folder: Path, key: str) -> str | None:
    """Error of a failed run of a study or search; None if it has not failed."""
    try:
        return str(read_json(folder / ERRORS / f"{key}.json").get("error", "unknown"))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        log.warning("%s", error)
        return "unknown"
