"""What engines have in common: jobs go in, events come out. A new engine is one function like `local`."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from same.config import Config
from same.errors import DamagedError
from same.experiment import run
from same.files import read_json, write_json
from same.training.loop import GivenUpTraining, Record
from same.training.progress import ReportFunction

log = logging.getLogger("same")

RUNS, ERRORS = "runs", "errors"
"""Where a study or a search keeps the folders of its runs, and the errors of failed ones."""


@dataclass(frozen=True)
class Job:
    """A run to execute. Jobs are pickled and sent to other processes."""

    config: Config
    folder: Path
    data: Path | None = None  # folder of local datasets
    after: str | None = None  # key of the run that must end before this one starts
    then: Callable[..., Any] | None = None  # called as then(folder, data=data) for the finished run
    give_up: Callable[[Sequence[Record]], bool] | None = None  # given the history: leave the run unfinished?
    keep: bool = False  # whether the driver needs the files of the run, where workers have disks of their own


class Outcome(NamedTuple):
    """Summary of a run's training (None if it was given up), and what `Job.then` returned."""

    training: dict[str, Any] | None
    value: Any = None


class Event(NamedTuple):
    """News of the job whose configuration has this key: `start`, `step`, `done` or `failed`.

    The value of a step is (steps taken, most steps), of a job that is done its `Outcome`, of a failed one the error.
    """

    what: str
    key: str
    value: Any = None


Engine = Callable[[Sequence[Job], int], Iterator[Event]]  # Executes jobs with a number of workers.


def execute(
    job: Job, report: ReportFunction, stop: Callable[[], bool], saved: Callable[[], None] = lambda: None
) -> Outcome:
    """Train one run, or continue it, and call `job.then`; a finished run is not trained again.

    `stop` is polled after every step; `saved` is called after training, from when on an interruption loses nothing.
    """
    give_up = job.give_up or (lambda history: False)
    try:
        training = run(job.config, job.folder, data=job.data, report=report, stop=stop, give_up=give_up)
    except GivenUpTraining:
        return Outcome(None)
    saved()
    return Outcome(training, job.then(job.folder, data=job.data) if job.then else None)


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
    """First line of the error of a failed run of a study or search; None if it has not failed."""
    try:
        return str(read_json(folder / ERRORS / f"{key}.json").get("error", "unknown")).partition("\n")[0]
    except FileNotFoundError:
        return None
    except DamagedError as error:
        log.warning("%s", error)
        return "unknown"
