"""A search for a configuration: its question, and what came of its trials, read from the folders of their runs.

Trials come in rounds. What a round tries, and when its trials are given up, depends on the rounds before it alone: not
on how many workers there are, nor on which trial ends first.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from same.config import Config, make_config
from same.errors import DamagedError, InputError
from same.files import read_json
from same.study.results import RUNS, read_error
from same.study.space import Space, Values, make_space
from same.study.stopping import History, MedianRule, scores_so_far
from same.training import RESULT, is_over, read_history, read_state

log = logging.getLogger("same")

QUESTION, PROPOSED = "tune.json", "trials.json"
ROUND = 4
"""How many trials are proposed at once, unless more are asked for."""

Curves = dict[int, tuple[str, History]]
"""How the runs of a trial stand, and their histories, by split."""


@dataclass(frozen=True)
class Question:
    """What is tuned.

    Attributes:
        dataset: on which set.
        method: which method.
        tasks: on which tasks.
        splits: on whose validation graphs, a mean over them.
        seed: of the runs and of the search.
        settings: what is fixed beside these.
        space: what is searched.
        sampler: `ax`, `random`, or `auto`.
        stop_early: whether unpromising trials are given up.
        round: how many trials are proposed at once, from what came of the rounds before; they run side by side.
    """

    dataset: str
    method: str
    tasks: tuple[str, ...]
    space: Space
    splits: tuple[int, ...] = (0,)
    seed: int = 0
    settings: tuple[tuple[str, Any], ...] = ()
    sampler: str = "auto"
    stop_early: bool = True
    round: int = ROUND

    def __post_init__(self) -> None:
        if self.method in ("untrained", "infomax"):
            raise InputError(f"--method: {self.method} has no validation score of the tasks to be tuned for")
        for name, _ in self.settings:
            if name in ("dataset", "method", "tasks", "split", "seed"):
                raise InputError(f"--set: {name} is no setting of a search; use the option of that name")
        self.config({})
        if not self.space.parameters:
            raise InputError("--set: everything that could be searched is fixed")

    def config(self, values: Values, split: int | None = None) -> Config:
        """The configuration of the run of a trial on a split."""
        own = {"dataset": self.dataset, "method": self.method, "tasks": self.tasks, "seed": self.seed}
        split = self.splits[0] if split is None else split
        return make_config({**dict(self.settings), **values, **own, "split": split})

    def to_json(self) -> Values:
        """The question as plain values."""
        return {**vars(self), "settings": dict(self.settings), "space": self.space.to_json()}

    @classmethod
    def from_json(cls, values: Values, origin: str) -> "Question":
        """The question from plain values."""
        space = make_space(values["space"], origin)
        lists = {name: tuple(values[name]) for name in ("tasks", "splits")}
        return cls(**{**values, **lists, "space": space, "settings": tuple(values["settings"].items())})


@dataclass(frozen=True)
class Trial:
    """What came of a trial, over the runs of all splits.

    Attributes:
        number: its place in the search.
        values: what it tried.
        state: `done`, `stopped` (given up), `failed`, or `open`.
        score: its mean validation score; of a trial that was given up, the one it had by then.
        epochs: how many its runs took.
        saved: how many epochs giving up saved, about.
        cpu_seconds: how much processor time its runs took.
        cpu_saved: how much giving up saved, about.
        error: why it failed.
    """

    number: int
    values: Values
    state: str = "open"
    score: float | None = None
    epochs: int = 0
    saved: float = 0.0
    cpu_seconds: float = 0.0
    cpu_saved: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Tuning:
    """A search: the question, and what came of its trials."""

    folder: Path
    question: Question
    trials: tuple[Trial, ...]

    @classmethod
    def open(cls, folder: Path) -> "Tuning":
        """The search in a folder, finished or not."""
        question, proposed = read_question(folder), read_proposed(folder)
        trials = look(question, proposed, folder)
        # The rest of the last round was proposed, and not asked for.
        while trials and trials[-1].state == "open" and not trials[-1].epochs:
            trials.pop()
        return cls(folder, question, tuple(trials))

    @property
    def done(self) -> list[Trial]:
        """The trials that are done, the best first."""
        done = [trial for trial in self.trials if trial.state == "done" and trial.score is not None]
        return sorted(done, key=lambda trial: (-(trial.score or 0.0), trial.number))

    @property
    def default(self) -> Trial | None:
        """The trial of the default configuration, if it was tried."""
        values = self.question.space.values_of(self.question.config({}))
        return next((trial for trial in self.trials if trial.values == values), None)


def make_rules(question: Question, curves: Sequence[Curves]) -> dict[int, MedianRule]:
    """The rule for each split, from the trials before."""
    if not question.stop_early:
        return {split: MedianRule() for split in question.splits}
    of = {
        (split, state): [c[split][1] for c in curves if c[split][0] == state]
        for split in question.splits
        for state in ("done", "stopped")
    }
    return {split: MedianRule.from_trials(of[split, "done"], of[split, "stopped"]) for split in question.splits}


def run_state(config: Config, folder: Path, rule: MedianRule) -> tuple[str, History, str]:
    """How a run stands (`done`, `stopped`, `failed`, `open`), its history, and its error."""
    place = folder / RUNS / config.key
    history = read_history(place)
    if (error := read_error(folder, config.key)) is not None:
        return "failed", history, error.splitlines()[0]
    # The last validation of a run that has come to its end is too late to give it up.
    if (cut := rule.cut(history[:-1] if history and is_over(history, config) else history)) is not None:
        return "stopped", cut, ""
    return "done" if history and _has_result(place) else "open", history, ""


def _has_result(place: Path) -> bool:
    try:
        return bool(read_json(place / RESULT))
    except FileNotFoundError:
        return False
    except DamagedError as error:
        log.warning("%s; the run is finished again", error)
        return False


def judge(
    question: Question,
    number: int,
    values: Values,
    folder: Path,
    rules: dict[int, MedianRule],
    before: Sequence[Curves],
) -> tuple[Trial, Curves]:
    """What came of a trial, and its runs."""
    found = {s: run_state(question.config(values, s), folder, rules[s]) for s in question.splits}
    states = [state for state, _, _ in found.values()]
    state = next((state for state in ("failed", "open", "stopped") if state in states), "done")
    score = mean(scores_so_far(h)[-1] for _, h, _ in found.values()) if state in ("done", "stopped") else None
    epochs = saved = cpu = cpu_saved = 0.0
    for split, (own, history, _) in found.items():
        taken = history[-1]["epoch"] if history else 0
        seconds = _cpu_seconds(folder / RUNS / question.config(values, split).key)
        epochs, cpu = epochs + taken, cpu + seconds
        if own == "stopped":
            usual = median(c[split][1][-1]["epoch"] for c in before if c[split][0] == "done")
            saved += max(usual - taken, 0)
            cpu_saved += max(usual - taken, 0) * seconds / max(taken, 1)
    error = next((error for _, _, error in found.values() if error), "")
    trial = Trial(number, values, state, score, int(epochs), saved, cpu, cpu_saved, error)
    return trial, {split: (own, history) for split, (own, history, _) in found.items()}


def _cpu_seconds(run: Path) -> float:
    """How much processor time a run took, finished or not."""
    try:
        return float(read_json(run / RESULT)["cpu_seconds"])
    except (FileNotFoundError, DamagedError):
        return float(read_state(run).get("cpu_seconds", 0.0))


def look(question: Question, proposed: Sequence[Values], folder: Path) -> list[Trial]:
    """What came of the trials that were proposed, round by round."""
    trials: list[Trial] = []
    curves: list[Curves] = []
    for first in range(0, len(proposed), question.round):
        rules = make_rules(question, curves)
        numbers = range(first, min(first + question.round, len(proposed)))
        found = [judge(question, n, proposed[n], folder, rules, curves) for n in numbers]
        trials += [trial for trial, _ in found]
        curves += [curve for _, curve in found]
    return trials


def read_question(folder: Path) -> Question:
    """The question of the search in a folder."""
    try:
        return Question.from_json(read_json(folder / QUESTION), str(folder / QUESTION))
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no search (no {QUESTION})") from None
    except DamagedError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder / QUESTION}: not the question of a search ({error})") from None


def read_proposed(folder: Path) -> list[Values]:
    """The values of the trials that were proposed, in order."""
    try:
        return list(read_json(folder / PROPOSED)["trials"])
    except FileNotFoundError:
        return []
    except KeyError:
        raise DamagedError(f"{folder / PROPOSED}: is damaged (no trials)") from None
