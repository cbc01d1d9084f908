"""Running a study: execute what is planned and not finished, and add its rows to the tables."""

import shutil
from collections import defaultdict
from collections.abc import Collection
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from same.config import Config
from same.errors import InputError
from same.files import clean, locked
from same.graphs import GraphStore
from same.methods.base import make_method
from same.probes.evaluate import evaluate_run
from same.probes.large import is_large
from same.study.engines import Engine, Event, Job, local
from same.study.engines.base import RUNS, record_failure
from same.study.engines.overview import Overview
from same.study.plan import PLAN, TASKS, Plan, first_of, remember
from same.study.results import Results, Study, make_run
from same.tasks import make_tasks


def run_study(
    plan: Plan,
    folder: Path,
    *,
    engine: Engine = local,
    workers: int = 1,
    data: Path | None = None,
    quiet: bool = False,
) -> Study:
    """Execute the runs of a plan that are not finished, whatever else was planned in the folder before.

    Only this process writes to the folder of the study, under its lock; workers write to the folders of their runs and
    return rows. The folder of a run is removed once its rows are written, unless the plan keeps models.

    Args:
        plan: runs to execute.
        folder: folder of the study, see `same.study.results`; a study may grow, but not change its settings.
        engine: engine that executes the runs.
        workers: number of runs at a time.
        data: folder of local datasets.
        quiet: whether to show nothing.
    """
    with locked(folder):
        remember(plan, folder)
        clean(folder)
        study = Study.open(folder)
        results, keep_models = study.results, study.plan.keep_models
        jobs = _jobs(plan, study, data)
        configs = {job.config.key: job.config for job in jobs}
        pending = dict.fromkeys(configs)
        total = len(plan.runs())

        def needed() -> set[str]:
            return {*pending, *(job.after for job in jobs if job.after and job.config.key in pending)}

        with Overview(str(folder), total, total - len(jobs), quiet) as overview:
            for event in map(Event._make, engine(jobs, workers)):
                record_failure(folder, event)
                if event.what == "done":
                    results.add(make_run(configs[event.key], event.value.training), event.value.value)
                    results.write(folder)
                if event.what in ("done", "failed"):
                    del pending[event.key]
                    if not keep_models:
                        _remove_folders(folder, results, needed())
                overview.show(event, describe(configs[event.key]))
        if not keep_models:
            _remove_folders(folder, results, ())
        return Study.open(folder)


def _jobs(plan: Plan, study: Study, data: Path | None) -> list[Job]:
    """Jobs of the runs that are not finished, or were evaluated for less than the plan asks for."""
    missing = study.missing(plan)
    first = {first_of(config) for config in missing}
    jobs = []
    for config in missing:
        # The rows of a run are replaced as a whole: probes it has already are part of the new evaluation.
        networks = study.networks(config.key) | set(plan.networks(config))
        evaluate = partial(
            evaluate_run,
            protocols=("paper", "released"),
            networks=tuple(task for task in TASKS if task in networks),
            floors=plan.floors(config),
            choose=plan.choose,
        )
        keep = study.plan.keep_models or config.key in first
        place = study.folder / RUNS / config.key
        jobs.append(Job(config, place, data, first_of(config), then=evaluate, keep=keep))
    return jobs


def _remove_folders(folder: Path, results: Results, needed: Collection[str]) -> None:
    """Remove the folders of finished runs that no other run needs."""
    for path in [*(folder / RUNS).iterdir()] if (folder / RUNS).is_dir() else []:
        if path.name in results.runs and path.name not in needed:
            shutil.rmtree(path)
    if (folder / RUNS).is_dir() and not any((folder / RUNS).iterdir()):
        (folder / RUNS).rmdir()


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
        first = make_method(config).first_phase(config)
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
        for key in ((run.dataset, run.method, len(run.tasks)), (run.method, len(run.tasks)), None):
            times[key].append(run.cpu_seconds)
    if not times:
        return None
    keys = [((c.dataset, c.method, len(c.tasks)), (c.method, len(c.tasks)), None) for c in configs]
    return sum(mean(next(times[key] for key in like if key in times)) for like in keys)
