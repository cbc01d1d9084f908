"""Runs a study: what is planned and not yet done, by an engine, with an overview; resumable at any point."""

import logging
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from same.config import Config
from same.errors import DamagedError, InputError
from same.files import clean, is_free, locked, write_json
from same.graphs import GraphStore
from same.probes.large import is_large
from same.study.engine import Engine, Job, local
from same.study.plan import Plan, first_of
from same.study.results import ERRORS, PLAN, RUNS, Study, read_plan
from same.tasks import make_tasks

log = logging.getLogger("same")


def run_study(
    plan: Plan,
    folder: Path,
    *,
    engine: Engine = local,
    workers: int = 1,
    data: Path | None = None,
    quiet: bool = False,
) -> Study:
    """Does what a plan asks for and a folder does not yet hold, and no more, whatever else was planned there before.

    Args:
        plan: what to do.
        folder: holds `study.json` and, for each run, `runs/KEY`, or `errors/KEY.json` if it failed. The folder of a
            study with other settings is refused; a study may grow by more splits, questions or sets.
        engine: does the runs.
        workers: how many at once.
        data: where local sets lie.
        quiet: whether to show nothing.

    Returns:
        The study, with what is done and what failed.
    """
    with locked(folder):
        remember(plan, folder)
        plan = settled(plan, folder)
        clean(folder)
        pending = todo(plan, folder)
        configs = {config.key: config for config in pending}
        jobs = [
            Job(
                config,
                folder / RUNS / config.key,
                data,
                first_of(config),
                choose_c=plan.choose_c,
                networks=plan.networks(config),
            )
            for config in pending
        ]
        total = len(plan.runs())
        with Overview(str(folder), total, total - len(pending), quiet) as overview:
            for what, key, more in engine(jobs, workers):
                note_failure(folder, what, key, more)
                overview(what, key, describe(configs[key]), more)
        return Study.open(folder)


def note_failure(folder: Path, what: str, key: str, more: Any) -> None:
    """Keeps the error of a run that failed, outside its folder, and forgets that of one that is done."""
    place = folder / ERRORS / f"{key}.json"
    if what == "failed":
        write_json(place, {"error": more})
    elif what == "done":
        place.unlink(missing_ok=True)


def same_settings(plan: Plan, folder: Path) -> Plan | None:
    """The plan of the study in a folder, if there is one; it must have the same settings."""
    if not (folder / PLAN).is_file():
        return None
    try:
        there = read_plan(folder)
    except DamagedError as error:  # Runs are told by their configurations: nothing is lost, whatever the plan was.
        log.warning("%s", error)
        return None
    if (there.budget, there.choose_c, there.settings) != (plan.budget, plan.choose_c, plan.settings):
        found, asked = (f"budget {p.budget}, choose_c {p.choose_c}, {dict(p.settings)}" for p in (there, plan))
        raise InputError(f"{folder}: holds a study with other settings ({found}, not {asked}); choose another folder")
    if replace(there, tuned=plan.tuned).runs() != there.runs():
        raise InputError(f"{folder}: holds a study with other tuned configurations; choose another folder")
    return there


def settled(plan: Plan, folder: Path) -> Plan:
    """The plan with the defaults that the study in a folder began with, if there is one."""
    there = same_settings(plan, folder)
    return plan if there is None else replace(plan, defaults=there.defaults)


def remember(plan: Plan, folder: Path) -> Plan:
    """Writes the plan into the folder, together with what was planned there before; refuses another study's folder."""
    there = same_settings(plan, folder)
    if there is not None:
        plan = plan.grown(there)
    elif not is_free(folder) and not (folder / PLAN).is_file():
        raise InputError(f"{folder}: holds other files; choose another folder")
    write_json(folder / PLAN, plan.to_json())
    return plan


def check_kinds(plan: Plan, dataset: str, store: GraphStore) -> None:
    """Refuses what no run of a sort could do, before any run begins."""
    for kind in plan.kinds():
        make_tasks(kind.tasks, store)
        config = plan.config(kind, dataset, plan.splits[0])
        if is_large(store, config.width):
            why = "whose probes need all embeddings in memory; use `same train` and `same evaluate`, or --set width="
            raise InputError(f"--datasets: {dataset} is too large for a study, {why}")
        if config.batch_size < 2 * len(kind.tasks):
            raise InputError(f"batch_size: {len(kind.tasks)} tasks need at least {2 * len(kind.tasks)} graphs a batch")
        if unknown := set(config.weights) - set(config.weighable):
            raise InputError(f"weights: {', '.join(unknown)}: not a task of every run of the study; leave it out")


def todo(plan: Plan, folder: Path) -> list[Config]:
    """The runs that are left to do, in order."""
    return Study.open(folder).missing(plan) if (folder / PLAN).is_file() else plan.runs()


def describe(config: Config) -> str:
    """A run in a few words."""
    extras = [value for name, value in (("fixed", config.weighting), ("all", config.adapts)) if value != name]
    return " ".join([config.dataset, config.method, "+".join(config.tasks), *extras, f"split {config.split}"])


def expected_seconds(configs: list[Config], study: Study | None) -> float | None:
    """How long runs will take, from what like runs have taken; None if there is nothing to go by."""
    known: dict[Any, list[float]] = defaultdict(list)
    for run in study.runs.values() if study else ():
        c, seconds = run.config, run.training["seconds"] + float(run.rows.get("seconds", 0.0))
        for key in ((c.dataset, c.method, len(c.tasks)), (c.method, len(c.tasks)), c.method, None):
            known[key].append(seconds)
    if not known:
        return None
    total = 0.0
    for c in configs:
        keys: tuple[Any, ...] = ((c.dataset, c.method, len(c.tasks)), (c.method, len(c.tasks)), c.method, None)
        like = next(known[key] for key in keys if key in known)
        total += sum(like) / len(like)
    return total


class Overview:
    """Bars for the whole and for what runs, on a terminal; plain lines elsewhere.

    Args:
        title: of the whole.
        total: how many runs there are.
        done: how many are done already.
        quiet: whether to show nothing.
    """

    def __init__(self, title: str, total: int, done: int, quiet: bool) -> None:
        self.total, self.quiet, self.failures = total, quiet, 0
        self.done, self.started = done, dict[str, float]()
        self.bars: dict[str, Any] = {}
        self.progress = None
        if sys.stderr.isatty() and not quiet:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
            self.progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True))
            self.whole = self.progress.add_task(title, total=self.total, completed=self.done)

    def __enter__(self) -> "Overview":
        if self.progress:
            self.progress.start()
        elif not self.quiet:
            self.say(f"{self.done} of {self.total} runs are done")
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress:
            self.progress.stop()

    def __call__(self, what: str, key: str, name: str, more: Any) -> None:
        """Takes an engine's event about the run of this key and name."""
        if what == "start":
            self.started[key] = time.monotonic()
            if self.progress:
                self.bars[key] = self.progress.add_task(name, total=None)
        elif what == "step":
            if self.progress:
                self.progress.update(self.bars[key], completed=more[0], total=more[1])
        else:
            self.done += what == "done"
            self.failures += what == "failed"
            seconds = time.monotonic() - self.started[key]
            if self.progress:
                self.progress.remove_task(self.bars.pop(key))
                title = f"all runs, {self.failures} failed" if self.failures else "all runs"
                self.progress.update(self.whole, completed=self.done, description=title)
            if not self.quiet and (what == "failed" or not self.progress):
                reason = f": {more.splitlines()[0]}" if what == "failed" else ""
                self.say(f"[{self.done}/{self.total}] {name} {what} in {seconds:.0f} s{reason}")

    def say(self, text: str) -> None:
        """A line of its own."""
        if self.progress:
            self.progress.console.print(text, highlight=False, markup=False)
        else:
            sys.stderr.write(text + "\n")
