"""Running a study: execute what is planned and not finished, and add its rows to the tables."""

import shutil
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from same.config import Config
from same.errors import InputError
from same.files import clean, locked
from same.graphs import GraphStore
from same.methods.registry import get
from same.probes.evaluate import evaluate_run
from same.probes.large import is_large
from same.study.engines import Engine, Event, Job, local
from same.study.engines.base import RUNS, record_failure
from same.study.engines.overview import Overview
from same.study.plan import PLAN, TASKS, Plan, first_of, remember
from same.study.results import Run, Study, make_run
from same.tasks import make_tasks


def run_study(
    plan: Plan, folder: Path, *, engine: Engine = local, workers: int = 1, data: Path | None = None, quiet: bool = False
) -> Study:
    """Execute the runs of a plan that are not finished, whatever else was planned in the folder before.

    Only this process writes to the folder of the study, under its lock; workers write to the folders of their runs.
    The folder of a run is removed once its rows are written, unless the plan keeps models. A study may grow, but not
    change its settings.
    """
    with locked(folder):
        remember(plan, folder)
        clean(folder)
        study = Study.open(folder)
        jobs, total = _jobs(plan, study, data), len(plan.runs())
        pending = {job.config.key: job for job in jobs}
        with Overview(str(folder), total, total - len(jobs), quiet) as overview:
            for event in map(Event._make, engine(jobs, workers)):
                config = pending[event.key].config
                record_failure(folder, event)
                if event.what == "done":
                    study.results.add(make_run(config, event.value.training), event.value.value)
                    study.results.write(folder)
                if event.what in ("done", "failed"):
                    del pending[event.key]
                    _remove_folders(study, {*pending, *(job.after for job in pending.values())})
                overview.show(event, describe(config))
        _remove_folders(study, set())
        return Study.open(folder)


def _jobs(plan: Plan, study: Study, data: Path | None) -> list[Job]:
    """Jobs of the runs that are not finished, or were evaluated for less than the plan asks for."""
    missing, jobs = study.missing(plan), []
    first = {first_of(config) for config in missing}
    for config in missing:
        # The rows of a run are replaced as a whole: probes it has already are part of the new evaluation.
        networks = study.networks(config.key) | set(plan.networks(config))
        evaluate = partial(
            evaluate_run,
            protocols=("paper", "released"),
            networks=tuple(task for task in TASKS if task in networks),
            floors=not get(config.method).trains,
            choose=plan.choose,
            pool=config.pool,
        )
        keep, place = study.plan.keep_models or config.key in first, study.folder / RUNS / config.key
        jobs.append(Job(config, place, data, first_of(config), then=evaluate, keep=keep))
    return jobs


def _remove_folders(study: Study, needed: Collection[str | None]) -> None:
    """Remove the folders of finished runs that no other run needs, unless the study keeps models."""
    place = study.folder / RUNS
    if study.plan.keep_models or not place.is_dir():
        return
    for path in [path for path in place.iterdir() if path.name in study.results.runs and path.name not in needed]:
        shutil.rmtree(path)
    with suppress(OSError):  # Others are left.
        place.rmdir()


def check_dataset(plan: Plan, dataset: str, store: GraphStore) -> None:
    """Reject what no run of a plan could do on a dataset, before any run begins."""
    for variant in plan.variants():
        make_tasks(variant.tasks, store)
        config, count = plan.config(variant, dataset, plan.splits[0]), len(variant.tasks)
        if is_large(store, config.width):
            why = "whose probes need all embeddings in memory; use `same train` and `same evaluate`, or --set width="
            raise InputError(f"--datasets: {dataset} is too large for a study, {why}")
        if config.batch_size < 2 * count:
            raise InputError(f"batch_size: {count} tasks need at least {2 * count} graphs per batch")
        first = get(config.method).first_phase(config)
        if unknown := set(config.weights) - {*config.tasks, *(first.tasks if first else ())}:
            raise InputError(f"weights: {', '.join(unknown)}: not a task of every run of the study; leave it out")


def todo(plan: Plan, folder: Path) -> list[Config]:
    """Runs of a plan that are not finished, in order."""
    return Study.open(folder).missing(plan) if (folder / PLAN).is_file() else plan.runs()


def describe(config: Config) -> str:
    """A run in a few words."""
    extras = [value for default, value in (("fixed", config.weighting), ("all", config.adapts)) if value != default]
    return " ".join([config.dataset, config.method, "+".join(config.tasks), *extras, f"split {config.split}"])


def expected_seconds(configs: list[Config], study: Study | None) -> float | None:
    """Expected CPU time of training, from finished runs of the same kind; None if there is no finished run."""
    times: dict[Any, list[float]] = defaultdict(list)
    for run in study.runs.values() if study else ():
        for kind in _kinds(run):
            times[kind].append(run.cpu_seconds)
    return sum(mean(next(times[k] for k in _kinds(config) if k in times)) for config in configs) if times else None


def _kinds(run: Run | Config) -> tuple[Any, ...]:
    """What runs may have in common, the most specific first."""
    kind = (run.method, len(run.tasks))
    return (run.dataset, *kind), kind, None
