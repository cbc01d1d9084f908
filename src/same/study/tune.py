"""Tuning: a search for the configuration of a method that validates best; resumable at any point.

Trials come in rounds. What a round tries, and when its trials are given up, depends on the rounds before it alone: not
on how many workers there are, nor on which trial ends first. A round is written down before it begins, and what came of
a trial is read from the folders of its runs, so that there is nothing to lose when a search is killed.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from same.config import Config, make_config
from same.errors import DamagedError, InputError
from same.files import locked, read_json, write_json
from same.study.engine import Engine, Job, local
from same.study.results import RUNS, read_error
from same.study.run import Overview, note_failure
from same.study.samplers import SAMPLERS, choose_sampler
from same.study.space import Space, Values, make_space
from same.study.stopping import History, MedianRule, scores_so_far

log = logging.getLogger("same")

QUESTION, PROPOSED = "tune.json", "trials.json"
ROUND = 4
"""How many trials are proposed at once."""

Curves = dict[int, History]
"""The histories of a trial that is done, by split."""


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
        question, proposed = _read_question(folder), _read_proposed(folder)
        trials = _look(question, proposed, folder)
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


def tune(
    question: Question,
    trials: int,
    folder: Path,
    *,
    engine: Engine = local,
    workers: int = 1,
    data: Path | None = None,
    quiet: bool = False,
) -> Tuning:
    """Searches, or goes on with a search, until so many trials have ended.

    Args:
        question: what is tuned.
        trials: how many, in all.
        folder: holds `tune.json` (the question), `trials.json` (what was proposed), and the runs of the trials as a
            study's folder does. The folder of another search is refused.
        engine: does the runs.
        workers: how many at once; more than there are runs in a round are of no use.
        data: where local sets lie.
        quiet: whether to show nothing.

    Returns:
        The search, with what came of its trials.
    """
    with locked(folder):
        return _tune(_remember(question, folder), trials, folder, engine, workers, data, quiet)


def _tune(
    question: Question, trials: int, folder: Path, engine: Engine, workers: int, data: Path | None, quiet: bool
) -> Tuning:
    try:
        proposed = _read_proposed(folder)
    except DamagedError as error:  # What is proposed depends on the trials before it alone.
        log.warning("%s; the same trials are proposed again", error)
        proposed = []
    known = sum(trial.state != "open" for trial in _look(question, proposed[:trials], folder))
    ended: list[Trial] = []
    curves: list[Curves] = []
    with Overview(str(folder), trials * len(question.splits), known * len(question.splits), quiet) as overview:
        for first in range(0, trials, ROUND):
            if len(proposed) <= first:
                proposed += _propose(question, ended)
                write_json(folder / PROPOSED, {"trials": proposed})
            numbers, rules = range(first, min(first + ROUND, trials)), _rules(question, curves)
            jobs = _jobs(question, [proposed[n] for n in numbers], folder, rules, data)
            names = {job.config.key: _name(question, job.config, proposed, numbers) for job in jobs}
            for what, key, more in engine(jobs, workers) if jobs else ():
                note_failure(folder, what, key, more)
                overview(what, key, names[key], more)
            found = [_judge(question, n, proposed[n], folder, rules, curves) for n in numbers]
            ended += [trial for trial, _ in found]
            curves += [curve for _, curve in found]
            if jobs and not quiet and (best := Tuning(folder, question, tuple(ended)).done[:1]):
                overview.say(
                    f"the best of {len(ended)} trials: {100 * (best[0].score or 0):.1f} % (trial {best[0].number})"
                )
            if all(trial.state == "failed" for trial in ended):
                raise InputError(f"{folder}: all of the first {len(ended)} trials failed; the first: {ended[0].error}")
    return Tuning(folder, question, tuple(ended))


def _propose(question: Question, ended: Sequence[Trial]) -> list[Values]:
    told = [(trial.values, trial.score) for trial in ended]
    first: list[Values] = []
    if not ended:  # The first trial is the default, for comparison.
        if (values := question.space.values_of(question.config({}))) is None:
            log.info("the default configuration lies outside the search space, and is not among the trials")
        else:
            told, first = [(values, None)], [values]
    return first + SAMPLERS[question.sampler](question.space, question.seed, told, ROUND - len(first))


def _rules(question: Question, curves: Sequence[Curves]) -> dict[int, MedianRule]:
    """The rule for each split, from the trials that were done before."""
    if not question.stop_early:
        return {split: MedianRule() for split in question.splits}
    return {split: MedianRule.from_done([c[split] for c in curves if split in c]) for split in question.splits}


def _jobs(
    question: Question, proposed: Sequence[Values], folder: Path, rules: dict[int, MedianRule], data: Path | None
) -> list[Job]:
    """The runs of a round that have not ended; two trials may ask for the same one."""
    jobs = {}
    for values in proposed:
        for split in question.splits:
            config = question.config(values, split)
            if _run_state(config, folder, rules[split])[0] == "open":
                place = folder / RUNS / config.key
                jobs[config.key] = Job(config, place, data, evaluate=False, give_up=rules[split])
    return list(jobs.values())


def _name(question: Question, config: Config, proposed: Sequence[Values], numbers: range) -> str:
    number = next(n for n in numbers if question.config(proposed[n], config.split) == config)
    return f"trial {number}" + (f" split {config.split}" if len(question.splits) > 1 else "")


def _run_state(config: Config, folder: Path, rule: MedianRule) -> tuple[str, History, str]:
    """How a run stands (`done`, `stopped`, `failed`, `open`), its history, and its error."""
    from same.training import read_history

    place = folder / RUNS / config.key
    history = read_history(place)
    if (error := read_error(folder, config.key)) is not None:
        return "failed", history, error.splitlines()[0]
    if (cut := rule.cut(history)) is not None:
        return "stopped", cut, ""
    return "done" if history and _has_result(place) else "open", history, ""


def _has_result(place: Path) -> bool:
    try:
        return bool(read_json(place / "result.json"))
    except FileNotFoundError:
        return False
    except DamagedError as error:
        log.warning("%s; the run is finished again", error)
        return False


def _judge(
    question: Question,
    number: int,
    values: Values,
    folder: Path,
    rules: dict[int, MedianRule],
    before: Sequence[Curves],
) -> tuple[Trial, Curves]:
    """What came of a trial, and the histories of those of its runs that are done."""
    found = {s: _run_state(question.config(values, s), folder, rules[s]) for s in question.splits}
    states = [state for state, _, _ in found.values()]
    state = next((state for state in ("failed", "open", "stopped") if state in states), "done")
    score = mean(scores_so_far(h)[-1] for _, h, _ in found.values()) if state in ("done", "stopped") else None
    epochs = saved = cpu = cpu_saved = 0.0
    for split, (own, history, _) in found.items():
        taken = history[-1]["epoch"] if history else 0
        seconds = _cpu_seconds(folder / RUNS / question.config(values, split).key)
        epochs, cpu = epochs + taken, cpu + seconds
        if own == "stopped":
            usual = median(curves[split][-1]["epoch"] for curves in before if split in curves)
            saved += max(usual - taken, 0)
            cpu_saved += max(usual - taken, 0) * seconds / max(taken, 1)
    error = next((error for _, _, error in found.values() if error), "")
    trial = Trial(number, values, state, score, int(epochs), saved, cpu, cpu_saved, error)
    return trial, {split: history for split, (own, history, _) in found.items() if own == "done" == state}


def _cpu_seconds(run: Path) -> float:
    """How much processor time a run took, finished or not."""
    from same.training import read_state

    return float(read_state(run).get("cpu_seconds", 0.0))


def _look(question: Question, proposed: Sequence[Values], folder: Path) -> list[Trial]:
    """What came of the trials that were proposed, round by round."""
    trials: list[Trial] = []
    curves: list[Curves] = []
    for first in range(0, len(proposed), ROUND):
        rules = _rules(question, curves)
        numbers = range(first, min(first + ROUND, len(proposed)))
        found = [_judge(question, n, proposed[n], folder, rules, curves) for n in numbers]
        trials += [trial for trial, _ in found]
        curves += [curve for _, curve in found]
    return trials


def _remember(question: Question, folder: Path) -> Question:
    """Writes the question into the folder; refuses the folder of another one."""
    there = None
    if (folder / QUESTION).is_file():
        try:
            there = _read_question(folder)
        except DamagedError as error:
            log.warning("%s; it is written again", error)
    if there is not None:
        sampler = there.sampler if question.sampler == "auto" else question.sampler
        question = Question(**{**vars(question), "sampler": sampler})
        if there != question:
            names = ", ".join(name for name in vars(question) if getattr(there, name) != getattr(question, name))
            raise InputError(f"{folder}: holds a search with another {names}; choose another folder")
        choose_sampler(question.sampler)
        return question
    if folder.is_dir() and any(folder.iterdir()) and not (folder / QUESTION).is_file():
        raise InputError(f"{folder}: holds other files; choose another folder")
    question = Question(**{**vars(question), "sampler": choose_sampler(question.sampler)})
    write_json(folder / QUESTION, question.to_json())
    return question


def _read_question(folder: Path) -> Question:
    try:
        return Question.from_json(read_json(folder / QUESTION), str(folder / QUESTION))
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no search (no {QUESTION})") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, DamagedError):
            raise
        raise InputError(f"{folder / QUESTION}: not the question of a search ({error})") from None


def _read_proposed(folder: Path) -> list[Values]:
    try:
        return list(read_json(folder / PROPOSED)["trials"])
    except FileNotFoundError:
        return []
    except KeyError:
        raise DamagedError(f"{folder / PROPOSED}: is damaged (no trials)") from None
