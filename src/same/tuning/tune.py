"""Run a search; it can be interrupted and resumed at any point.

Every round of trials is recorded before it starts, and its results are read from the folders of its runs. So nothing
is lost when a search is killed.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from same.errors import InputError
from same.files import clean, locked
from same.study.engines.base import RUNS, Engine, Event, Job, record_failure
from same.study.engines.local import local
from same.study.engines.overview import Overview
from same.tuning.samplers import SAMPLERS
from same.tuning.search import Search, Trial, Tuning, make_rules, read_round, read_trials, resume, write_search
from same.tuning.space import Values

log = logging.getLogger("same")


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

    Args:
        search: what to tune.
        count: total number of trials.
        folder: folder of the search; a folder with another search is rejected.
        engine: engine that executes the runs.
        workers: number of parallel runs; at most one round of trials runs at a time.
        data: folder of local datasets.
        quiet: print nothing.
    """
    with locked(folder):
        search, proposed = resume(search, folder)
        clean(folder)
        trials: list[Trial] = []
        ended = sum(trial.state != "open" for trial in read_trials(search, folder, proposed[:count]))
        runs = len(search.splits)
        with Overview(str(folder), count * runs, ended * runs, quiet) as overview:
            while len(trials) < count:
                if len(proposed) <= len(trials):
                    proposed += _propose(search, trials)
                    write_search(folder, search, proposed)
                jobs, names = _jobs(search, folder, trials, proposed[:count], data)
                for event in map(Event._make, engine(jobs, workers) if jobs else ()):
                    record_failure(folder, event)
                    overview.show(event, names[event.key])
                trials += read_round(search, folder, trials, proposed[:count])
                if jobs and not quiet and (best := Tuning(folder, search, tuple(trials)).done[:1]):
                    score = 100 * (best[0].score or 0)
                    overview.say(f"best of {len(trials)} trials: {score:.1f} % (trial {best[0].number})")
                if all(trial.state == "failed" for trial in trials):
                    reason = trials[0].to_json()["error"]
                    raise InputError(f"{folder}: all of the first {len(trials)} trials failed; trial 0: {reason}")
    return Tuning(folder, search, tuple(trials))


def _propose(search: Search, trials: Sequence[Trial]) -> list[Values]:
    records = [(trial.values, trial.score) for trial in trials]
    first: list[Values] = []
    if not trials:  # The first trial is the default configuration, for comparison.
        if search.default is None:
            log.info("the default configuration lies outside the search space and is not tried")
        else:
            records, first = [(search.default, None)], [search.default]
    return first + SAMPLERS[search.sampler](search.space, search.seed, records, search.round - len(first))


def _jobs(
    search: Search, folder: Path, earlier: Sequence[Trial], proposed: Sequence[Values], data: Path | None
) -> tuple[list[Job], dict[str, str]]:
    """The open runs of a round, and their names by key; two trials may share a run."""
    jobs, names, rules = {}, {}, make_rules(search, earlier)
    for trial in read_round(search, folder, earlier, proposed):
        for split in [split for split, run in trial.runs.items() if run.state == "open"]:
            config = search.config(trial.values, split)
            jobs[config.key] = Job(config, folder / RUNS / config.key, data, give_up=rules[split], keep=True)
            names[config.key] = f"trial {trial.number}" + (f" split {split}" if len(search.splits) > 1 else "")
    return list(jobs.values()), names
