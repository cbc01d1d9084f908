"""A search for the best configuration of a method. It can be interrupted and resumed at any point."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from same.config import Config, make_config
from same.errors import DamagedError, InputError
from same.files import clean, is_free, locked, read_json, write_json
from same.methods.registry import get
from same.saved import finished, read_history
from same.study.engines.base import RUNS, Engine, Event, Job, read_error, record_failure
from same.study.engines.local import local
from same.study.engines.overview import Overview
from same.training.checkpoint import read_state
from same.training.stopping import is_over
from same.tuning.samplers import SAMPLERS, choose_sampler
from same.tuning.space import SCOPE, Space, Values, make_space
from same.tuning.stopping import History, MedianRule, scores_so_far

log = logging.getLogger("same")
FILE = "tune.json"  # The search and its proposed trials.


@dataclass(frozen=True)
class Search:
    """What is tuned."""

    dataset: str
    method: str
    tasks: tuple[str, ...]
    space: Space
    split: int = 0  # its validation graphs score the trials
    seed: int = 0  # of the runs and of the sampler
    settings: Mapping[str, Any] = field(default_factory=dict)  # fixed keys of the configuration
    sampler: str = "auto"  # `ax`, `random`, or `auto`
    stop_early: bool = True  # whether to stop unpromising trials
    round: int = 4  # number of trials proposed at once, which can run in parallel

    def __post_init__(self) -> None:
        if not get(self.method).has_heads:
            raise InputError(f"--method: {self.method} has no validation score to tune for")
        if taken := [name for name in SCOPE if name in self.settings]:
            raise InputError(f"--set: {taken[0]} has an option of its own in a search; use that")
        self.config({})
        if not self.space.parameters:
            raise InputError("--set: fixes everything that could be searched")

    def config(self, values: Values) -> Config:
        """Configuration of a trial."""
        return make_config({**self.settings, **values, **{name: getattr(self, name) for name in SCOPE}})

    @property
    def default(self) -> Values | None:
        """Values of the default configuration; None if it lies outside the space."""
        return self.space.values_of(self.config({}))

    def to_json(self) -> Values:
        """The search as plain values."""
        return {**vars(self), "space": self.space.to_json()}


@dataclass(frozen=True)
class Trial:
    """One configuration of a search, by its values of the searched keys, and its run."""

    number: int
    values: Values
    state: str  # done, stopped (early), failed or open
    history: History = ()  # of a stopped trial, up to the point where it was stopped
    cpu_seconds: float = 0.0
    error: str = ""  # first line

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return int(self.history[-1]["epoch"]) if self.history else 0

    @cached_property
    def score(self) -> float | None:
        """Validation score; of a stopped trial, the score when it was stopped."""
        return scores_so_far(self.history)[-1] if self.state in ("done", "stopped") else None

    def to_json(self) -> Values:
        """The trial as plain values."""
        names = ("number", "state", "score", "values", "epochs", "cpu_seconds", "error")
        return {name: getattr(self, name) for name in names}


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
        trials = _read_trials(search, folder, proposed)
        # The last round may have proposed more trials than were asked for.
        while trials and trials[-1].state == "open" and not trials[-1].epochs:
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


def tune(
    search: Search,
    count: int,
    folder: Path,
    *,
    engine: Engine = local,
    workers: int = 1,
    data: Path | None = None,
    quiet: bool = False,
) -> Tuning:
    """Run a search, or resume it, until it has the given number of trials.

    What a round proposes, and when its trials are stopped, depends only on earlier rounds. Every round is recorded
    before it starts, and its results are read from the folders of its runs.
    """
    with locked(folder):
        search, proposed = resume(search, folder)
        clean(folder)
        trials: list[Trial] = []
        ended = sum(trial.state != "open" for trial in _read_trials(search, folder, proposed[:count]))
        with Overview(str(folder), count, ended, quiet) as overview:
            while len(trials) < count:
                if len(proposed) <= len(trials):
                    proposed += _propose(search, trials)
                    write_search(folder, search, proposed)
                jobs, names, rule = dict[str, Job](), dict[str, str](), _rule(search, trials)
                for trial in _read_round(search, folder, trials, proposed[:count]):
                    if trial.state == "open":  # Two trials may share a run.
                        config = search.config(trial.values)
                        jobs[config.key] = Job(config, folder / RUNS / config.key, data, give_up=rule, keep=True)
                        names[config.key] = f"trial {trial.number}"
                for event in map(Event._make, engine(list(jobs.values()), workers) if jobs else ()):
                    record_failure(folder, event)
                    overview.show(event, names[event.key])
                trials += _read_round(search, folder, trials, proposed[:count])
                if jobs and (best := Tuning(folder, search, tuple(trials)).done[:1]):
                    text = f"best of {len(trials)} trials: {100 * (best[0].score or 0):.1f} % (trial {best[0].number})"
                    overview.progress.console.print(text)
                if all(trial.state == "failed" for trial in trials):
                    reason = trials[0].error
                    raise InputError(f"{folder}: all of the first {len(trials)} trials failed; trial 0: {reason}")
    return Tuning(folder, search, tuple(trials))


def _propose(search: Search, trials: Sequence[Trial]) -> list[Values]:
    records = [(trial.values, trial.score) for trial in trials]
    if not trials and search.default is not None:  # The first trial is the default configuration, for comparison.
        records.append((search.default, None))
    elif not trials:
        log.info("the default configuration lies outside the search space and is not tried")
    first = [values for values, _ in records[len(trials) :]]
    return first + SAMPLERS[search.sampler](search.space, search.seed, records, search.round - len(first))


def _rule(search: Search, trials: Sequence[Trial]) -> MedianRule:
    states = ("done", "stopped") if search.stop_early else ()
    return MedianRule.from_trials(*([trial.history for trial in trials if trial.state == state] for state in states))


def _read_round(search: Search, folder: Path, earlier: Sequence[Trial], proposed: Sequence[Values]) -> list[Trial]:
    rule, first = _rule(search, earlier), len(earlier)
    chosen = enumerate(proposed[first : first + search.round], first)
    return [_read_trial(search, folder, number, values, rule) for number, values in chosen]


def _read_trials(search: Search, folder: Path, proposed: Sequence[Values]) -> list[Trial]:
    trials: list[Trial] = []
    while len(trials) < len(proposed):
        trials += _read_round(search, folder, trials, proposed)
    return trials


def _read_trial(search: Search, folder: Path, number: int, values: Values, rule: MedianRule) -> Trial:
    config = search.config(values)
    place = folder / RUNS / config.key
    history, result = read_history(place), finished(place)
    state = result or read_state(place)
    seconds = float(state.get("cpu_seconds", 0.0))
    trial = Trial(number, values, "done" if history and result else "open", history, seconds)
    if (error := read_error(folder, config.key)) is not None:
        return replace(trial, state="failed", error=error)
    # The last validation of a complete training comes too late to stop it.
    ended = result is not None or (history and is_over(history, state.get("cap", math.inf), config.patience))
    if (cut := rule.cut(history[:-1] if ended else history)) is not None:
        return replace(trial, state="stopped", history=cut)
    return trial


def read_search(folder: Path) -> tuple[Search, list[Values]]:
    """Read the search in a folder, and the values of its proposed trials."""
    path = folder / FILE
    try:
        values = read_json(path)
        proposed = list(values.pop("proposed"))
        values |= {"tasks": tuple(values["tasks"]), "space": make_space(values["space"], str(path))}
        return Search(**values), proposed
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
    if (folder / FILE).is_file():
        try:
            saved, proposed = read_search(folder)
            if search.sampler == "auto":
                search = replace(search, sampler=saved.sampler)
            if names := [name for name in vars(search) if getattr(saved, name) != getattr(search, name)]:
                what = f"a search with different {', '.join(names)}"
                raise InputError(f"{folder}: contains {what}; choose another folder")
            return replace(search, sampler=choose_sampler(search.sampler)), proposed
        except DamagedError as error:  # Proposals depend only on earlier trials, so they can be made again.
            log.warning("%s; proposing the same trials again", error)
    elif not is_free(folder):
        raise InputError(f"{folder}: holds other files; choose another folder")
    search = replace(search, sampler=choose_sampler(search.sampler))
    write_search(folder, search, [])
    return search, []
