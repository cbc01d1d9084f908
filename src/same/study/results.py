"""Results of a study: `runs.csv` has one row per finished run, `scores.csv.gz` one row per score."""

import csv
import gzip
import io
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from same import __version__
from same.commit import commit
from same.config import Config
from same.errors import DamagedError
from same.files import atomic
from same.methods.registry import get
from same.probes.evaluate import Score
from same.study.engines.base import read_error
from same.study.plan import IDENTITY, TASKS, Plan, Variant, read_plan

RUNS_TABLE, SCORES_TABLE = "runs.csv", "scores.csv.gz"
END_TO_END = ("classical", "finetuned")
"""Methods that the paper measures by their heads, others by a linear classifier on their embeddings."""


class Run(NamedTuple):
    """A finished run: one row of `runs.csv`."""

    run: str  # key of the configuration, which is (dataset, method, tasks, split) and all other keys in `settings`
    dataset: str
    method: str
    tasks: tuple[str, ...]
    split: int
    settings: dict[str, Any]
    epochs: int
    best_epoch: int  # epoch of the best validation, whose weights were kept
    cap: int  # the most epochs it could take
    updates: int  # number of optimiser steps
    examples: dict[str, int]  # number of training examples seen, by task
    cpu_seconds: float  # of the training
    version: str
    commit: str


def make_run(config: Config, training: dict[str, Any]) -> Run:
    """The row of a run that was trained by this copy of the package."""
    settings = {name: value for name, value in config.model_dump(mode="json").items() if name not in IDENTITY}
    epochs = (training["epochs"], training["best"]["epoch"], training["cap"])
    cost = (training["steps"], training["examples"], training["cpu_seconds"])
    identity = (getattr(config, name) for name in IDENTITY)
    return Run._make([config.key, *identity, settings, *epochs, *cost, __version__, commit()])


@dataclass
class Results:
    """Finished runs and their scores, by key of the run; the scores of a run stay in the order of its evaluation."""

    runs: dict[str, Run] = field(default_factory=dict)
    scores: dict[str, list[Score]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """The results in a folder; none if there is no table."""
        # Runs before scores, the reverse of writing: another process may be writing at this moment.
        runs = {row[0]: Run._make(row) for row in _read(folder / RUNS_TABLE, Run._fields)}
        scores: dict[str, list[Score]] = {key: [] for key in runs}
        for key, *score in _read(folder / SCORES_TABLE, ("run", *Score._fields)):
            if key in scores:
                scores[key].append(Score._make(score))
        if missing := [key for key in runs if not scores[key]]:
            raise DamagedError(
                f"{folder / SCORES_TABLE}: has no scores of {len(missing)} runs of {RUNS_TABLE}, such as {missing[0]}; "
                f"restore it from a copy, or delete the rows of these runs to run them again"
            )
        return cls(runs, scores)

    def add(self, run: Run, scores: Iterable[Score]) -> None:
        """Add a run, in the place of its earlier rows."""
        self.runs[run.run] = run
        self.scores[run.run] = list(scores)

    def write(self, folder: Path) -> None:
        """Write both tables as a whole, in an order that gives equal bytes for equal contents."""
        runs = sorted(self.runs.values(), key=lambda run: (run.dataset, run.method, run.tasks, run.split, run.run))
        scores = [(run.run, *score) for run in runs for score in self.scores[run.run]]
        content = gzip.compress(csv_text([("run", *Score._fields), *scores]).encode(), mtime=0)
        # Scores first: a run counts as finished once `runs.csv` has it.
        for name, table in ((SCORES_TABLE, content), (RUNS_TABLE, csv_text([Run._fields, *runs]).encode())):
            with atomic(folder / name) as temporary:
                temporary.write_bytes(table)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV: tuples are joined by +, dictionaries are JSON."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_format, row) for row in rows)
    return text.getvalue()


def _format(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "+".join(value) if isinstance(value, tuple) else value


_PARSE: dict[str, Callable[[str], Any]] = {
    "tasks": lambda text: tuple(text.split("+")),
    **dict.fromkeys(("cpu_seconds", "score"), float),
    **dict.fromkeys(("settings", "examples"), lambda text: dict(json.loads(text))),
    **dict.fromkeys(("split", "epochs", "best_epoch", "cap", "updates"), int),
}


def _read(path: Path, columns: tuple[str, ...]) -> list[list[Any]]:
    """Rows of a table; a damaged one raises an error that says where, and is left as it is."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except FileNotFoundError:
        return []
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DamagedError(f"{path}: is damaged ({error}); restore it from a copy") from None
    reader, rows = csv.reader(io.StringIO(text, newline=""), strict=True), []
    parsers = [_PARSE.get(name, str) for name in columns]
    try:
        if tuple(next(reader, ())) != columns:
            raise ValueError(f"expected the columns {', '.join(columns)}")
        for row in reader:
            if len(row) != len(columns):
                raise ValueError(f"{len(row)} values, expected {len(columns)}")
            rows.append([parse(text) for parse, text in zip(parsers, row, strict=True)])
    except (ValueError, TypeError, csv.Error, RecursionError) as error:
        raise DamagedError(f"{path}, line {reader.line_num}: {error}; restore the file from a copy") from None
    return rows


class Source(NamedTuple):
    """Where scores come from: a kind of run, and how it is measured."""

    method: str
    tasks: tuple[str, ...] = TASKS
    probe: str = ""  # by default the one that the paper uses
    protocol: str = "paper"  # of link prediction
    model: str | None = None  # floor that is measured instead of the run's model
    weighting: str = "fixed"
    adapts: str = "all"

    @property
    def variant(self) -> Variant:
        """The runs that have the scores."""
        # An untrained encoder takes the place of one that was trained on any tasks.
        tasks = self.tasks if get(self.method).trains else TASKS
        return Variant(self.method, tasks, self.weighting, self.adapts)


@dataclass(frozen=True)
class Study:
    """A study: its folder, its plan, all results in the folder, and the errors of failed runs by key."""

    folder: Path
    plan: Plan
    results: Results
    failed: dict[str, str]

    @classmethod
    def open(cls, folder: Path) -> "Study":
        """The study in a folder, finished or not."""
        study = cls(folder, read_plan(folder), Results.read(folder), {})
        errors = ((config.key, read_error(folder, config.key)) for config in study.configs)
        study.failed.update((key, error) for key, error in errors if error is not None)
        return study

    @cached_property
    def configs(self) -> list[Config]:
        """Configurations of all planned runs."""
        return self.plan.runs()

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Finished runs of the plan, in its order, by key."""
        runs = self.results.runs
        return {config.key: runs[config.key] for config in self.configs if config.key in runs}

    def missing(self, plan: Plan | None = None) -> list[Config]:
        """Runs of a plan, by default the study's, that are not finished or lack a network probe it asks for."""
        configs, plan = (plan.runs(), plan) if plan else (self.configs, self.plan)
        runs = self.results.runs
        return [c for c in configs if c.key not in runs or not self.networks(c.key).issuperset(plan.networks(c))]

    def networks(self, key: str) -> set[str]:
        """Tasks for which a run has network probes."""
        return {score.task for score in self.results.scores.get(key, ()) if score.probe == "network"}

    @cached_property
    def _pivot(self) -> dict[tuple[Any, ...], dict[int, float]]:
        """Main scores on test graphs by split, for each kind of run and way to measure it."""
        pivot: dict[tuple[Any, ...], dict[int, float]] = defaultdict(dict)
        for key, run in self.runs.items():
            kind = Variant(run.method, run.tasks, run.settings["weighting"], run.settings["adapts"])
            for score in self.results.scores[key]:
                if (score.part, score.pair) == ("test", run.settings["pair"]):
                    # The first of several metrics is the main one.
                    place = (run.dataset, kind, score.model, score.task, score.probe, score.protocol)
                    pivot[place].setdefault(run.split, 100 * score.score)
        return dict(pivot)

    def scores(self, dataset: str, source: Source, task: str) -> dict[int, float]:
        """Main scores of a task by split, in percent."""
        protocol = source.protocol if task == "lp" else "paper"
        # Heads were not trained on pairs of nodes like those of `released`.
        probe = source.probe or ("own" if source.method in END_TO_END and protocol == "paper" else "linear")
        place = (dataset, source.variant, source.model or source.method, task, probe, protocol)
        return dict(self._pivot.get(place, {}))
