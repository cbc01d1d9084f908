"""A search and its trials, whose state is read from the folders of their runs.

Trials are proposed in rounds. What a round proposes, and when its trials are stopped, depends only on earlier rounds:
not on the number of workers, and not on which trial finishes first.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from same.config import Config, make_config
from same.errors import DamagedError, InputError
from same.files import is_free, read_json, write_json
from same.methods.registry import get
from same.saved import finished, read_history
from same.study.engines.base import RUNS, read_error
from same.training.checkpoint import read_state
from same.training.stopping import is_over
from same.tuning.samplers import choose_sampler
from same.tuning.space import Space, Values, make_space
from same.tuning.stopping import History, MedianRule, scores_so_far

log = logging.getLogger("same")

FILE = "tune.json"
"""The search and its proposed trials."""


@dataclass(frozen=True)
class Search:
    """What is tuned.

    Attributes:
        dataset: name, folder or zip of the dataset.
        method: name of the method.
        tasks: names of the tasks.
        space: search space.
        splits: splits whose validation scores are averaged.
        seed: seed of the runs and of the sampler.
        settings: fixed keys of the configuration.
        sampler: `ax`, `random`, or `auto`.
        stop_early: whether to stop unpromising trials.
        round: number of trials proposed at once, which can run in parallel.
    """

    dataset: str
    method: str
    tasks: tuple[str, ...]
    space: Space
    splits: tuple[int, ...] = (0,)
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    sampler: str = "auto"
    stop_early: bool = True
    round: int = 4

    def __post_init__(self) -> None:
        if not get(self.method).has_heads:
            raise InputError(f"--method: {self.method} has no validation score to tune for")
        if taken := [name for name in ("dataset", "method", "tasks", "split", "seed") if name in self.settings]:
            raise InputError(f"--set: {taken[0]} has an option of its own in a search; use that")
        self.config({})
        if not self.space.parameters:
            raise InputError("--set: fixes everything that could be searched")

    def config(self, values: Values, split: int | None = None) -> Config:
        """Configuration of the run of a trial on a split; the first split by default."""
        fixed = {"dataset": self.dataset, "method": self.method, "tasks": self.tasks, "seed": self.seed}
        split = self.splits[0] if split is None else split
        return make_config({**self.settings, **values, **fixed, "split": split})

    @property
    def default(self) -> Values | None:
        """Values of the default configuration; None if it lies outside the space."""
        return self.space.values_of(self.config({}))

    def to_json(self) -> Values:
        """The search as plain values."""
        return {**vars(self), "space": self.space.to_json()}


@dataclass(frozen=True)
class Run:
    """The run of a trial on one split."""

    state: str  # done, stopped (early), failed or open
    history: History = ()  # of a stopped run, up to where it was stopped
    cpu_seconds: float = 0.0
    error: str = ""  # first line

    @classmethod
    def read(cls, config: Config, folder: Path, rule: MedianRule) -> "Run":
        """Read the state of a run from the folder of its search."""
        place = folder / RUNS / config.key
        history, result = read_history(place), finished(place)
        seconds = float((result or read_state(place)).get("cpu_seconds", 0.0))
        if (error := read_error(folder, config.key)) is not None:
            return cls("failed", history, seconds, error.splitlines()[0])
        # The last validation of a complete training comes too late to stop it.
        ended = history and is_over(history, get(config.method).epochs(config), config.patience)
        if (cut := rule.cut(history[:-1] if ended else history)) is not None:
            return cls("stopped", cut, seconds)
        return cls("done" if history and result else "open", history, seconds)

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return int(self.history[-1]["epoch"]) if self.history else 0


@dataclass(frozen=True)
class Trial:
    """One configuration of a search, by its values of the parameters, and its runs by split."""

    number: int
    values: Values
    runs: dict[int, Run]

    @property
    def state(self) -> str:
        """`failed`, `open` or `stopped` if any of its runs is, otherwise `done`."""
        states = {run.state for run in self.runs.values()}
        return next((state for state in ("failed", "open", "stopped") if state in states), "done")

    @cached_property
    def score(self) -> float | None:
        """Mean validation score over splits; of a stopped trial, the score when it was stopped."""
        if self.state not in ("done", "stopped"):
            return None
        return mean(scores_so_far(run.history)[-1] for run in self.runs.values())

    def to_json(self) -> Values:
        """The trial as plain values."""
        runs = self.runs.values()
        return {
            **{"number": self.number, "state": self.state, "score": self.score, "values": self.values},
            "epochs": sum(run.epochs for run in runs),
            "cpu_seconds": sum(run.cpu_seconds for run in runs),
            "error": next((run.error for run in runs if run.error), ""),
        }


@dataclass(frozen=True)
class Tuning:
    """A search and its trials."""

    folder: Path
    search: Search
    trials: tuple[Trial, ...]

    @classmethod
    def open(cls, folder: Path) -> "Tuning":
        """Open the search in a folder, finished or not."""
        search, proposed = read_search(folder)
        trials = read_trials(search, folder, proposed)
        # The last round may have proposed more trials than were asked for.
        while trials and trials[-1].state == "open" and not any(run.epochs for run in trials[-1].runs.values()):
            trials.pop()
        return cls(folder, search, tuple(trials))

    @property
    def done(self) -> list[Trial]:
        """Completed trials, the best first."""
        done = [trial for trial in self.trials if trial.state == "done"]
        return sorted(done, key=lambda trial: (-(trial.score or 0.0), trial.number))

    @property
    def default(self) -> Trial | None:
        """The trial of the default configuration, if there is one."""
        return next((trial for trial in self.trials if trial.values == self.search.default), None)


def make_rules(search: Search, trials: Iterable[Trial]) -> dict[int, MedianRule]:
    """The stopping rule of each split, given the trials of earlier rounds."""
    rules = {}
    for split in search.splits:
        runs = [trial.runs[split] for trial in trials] if search.stop_early else []
        done, stopped = ([run.history for run in runs if run.state == state] for state in ("done", "stopped"))
        rules[split] = MedianRule.from_trials(done, stopped)
    return rules


def read_round(search: Search, folder: Path, earlier: Sequence[Trial], proposed: Sequence[Values]) -> list[Trial]:
    """Read the trials of one round, given the trials of earlier rounds."""
    rules, first = make_rules(search, earlier), len(earlier)
    return [
        Trial(number, values, {s: Run.read(search.config(values, s), folder, rules[s]) for s in search.splits})
        for number, values in enumerate(proposed[first : first + search.round], first)
    ]


def read_trials(search: Search, folder: Path, proposed: Sequence[Values]) -> list[Trial]:
    """Read all proposed trials, round by round."""
    trials: list[Trial] = []
    while len(trials) < len(proposed):
        trials += read_round(search, folder, trials, proposed)
    return trials


def read_search(folder: Path) -> tuple[Search, list[Values]]:
    """Read the search in a folder, and the values of its proposed trials."""
    path = folder / FILE
    try:
        values = read_json(path)
        proposed = list(values.pop("proposed"))
        values |= {name: tuple(values[name]) for name in ("tasks", "splits")}
        return Search(**{**values, "space": make_space(values["space"], str(path))}), proposed
    except FileNotFoundError:
        raise InputError(f"{folder}: contains no search (no {FILE})") from None
    except DamagedError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: not a search ({error})") from None


def write_search(folder: Path, search: Search, proposed: Sequence[Values]) -> None:
    """Write the search and its proposed trials to a folder."""
    write_json(folder / FILE, {**search.to_json(), "proposed": proposed})


def resume(search: Search, folder: Path) -> tuple[Search, list[Values]]:
    """The search with its sampler resolved, and the trials proposed so far; rejects a folder with other contents."""
    saved, proposed = None, list[Values]()
    if (folder / FILE).is_file():
        try:
            saved, proposed = read_search(folder)
        except DamagedError as error:  # Proposals depend only on earlier trials, so they can be made again.
            log.warning("%s; proposing the same trials again", error)
    elif not is_free(folder):
        raise InputError(f"{folder}: holds other files; choose another folder")
    if saved is not None and search.sampler == "auto":
        search = replace(search, sampler=saved.sampler)
    if saved is not None and saved != search:
        names = ", ".join(name for name in vars(search) if getattr(saved, name) != getattr(search, name))
        raise InputError(f"{folder}: contains a search with different {names}; choose another folder")
    search = replace(search, sampler=choose_sampler(search.sampler))
    if saved is None:
        write_search(folder, search, proposed)
    return search, proposed
