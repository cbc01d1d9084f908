"""Shared by the tests of studies: an engine without processes, studies made by hand, and the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

from same.study.engines import Event, execute
from same.study.plan import Plan
from same.study.results import Results, Run, Score, Study, make_run

COMMAND = (sys.executable, "-m", "same")
TINY = {"width": 8, "max_epochs": 2, "batch_size": 100, "validation_episodes": 1}
"""Settings of runs that take a fraction of a second."""
OPTIONS = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]


def inline(jobs, workers):
    """An engine that executes jobs in this process."""
    waiting = sorted(jobs, key=lambda job: job.after is not None)
    for job in waiting:
        yield Event("start", job.config.key)
        yield Event("done", job.config.key, execute(job, lambda *_: None, lambda: False))


def same(*arguments):
    """Exit code, output and errors of a command."""
    run = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def workers_of(parent: int) -> list[int]:
    """Process ids of the workers that a process has spawned."""
    workers = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
            if re.search(rf"^PPid:\s+{parent}$", status.read_text(), re.MULTILINE) and b"spawn_main" in command:
                workers.append(int(status.parent.name))
        except OSError:
            continue
    return workers


def own_workers() -> list[int]:
    return workers_of(os.getpid())


def training(config) -> dict:
    """Summary of a training that did not happen."""
    return {"epochs": 2, "cap": 2, "best": {"epoch": 1}, "steps": 4, "examples": {"gc": 12}, "cpu_seconds": 3.0}


def made_run(config, **changes) -> Run:
    return make_run(config, training(config))._replace(**changes)


def made_study(scores: dict, plan: Plan, folder: Path = Path("nowhere")) -> Study:
    """A study whose runs have these scores: {(method, tasks): {split: {(model, probe, task): score in %}}}."""
    results = Results()
    for config in plan.runs():
        rows = scores.get((config.method, config.tasks), {}).get(config.split)
        if rows is None or config.weighting != "fixed" or config.adapts != "all":
            continue
        made = []
        for (model, probe, task), score in rows.items():
            for protocol in ("paper", "released") if task == "lp" else ("paper",):
                place = (model, "test", task, probe, protocol, config.pair)
                made += [Score(*place, "main", score / 100), Score(*place, "other", 0.0)]
        results.add(made_run(config), made)
    return Study(folder, plan, results, {})


def count_files(folder, data):
    """Number of files of a run; a value that workers return."""
    return sum(path.is_file() for path in folder.iterdir())


def fail(folder, data):
    raise ValueError("no way")


def give_up(history):
    return True


def own_heads(method, tasks, *values):
    """Scores for `made_study`: one row of values per split, one value per task."""
    return {k: {(method, "own", t): v for t, v in zip(tasks, row, strict=True)} for k, row in enumerate(values)}


def linear_probes(method, tasks, *values):
    return {k: {(method, "linear", t): v for t, v in zip(tasks, row, strict=True)} for k, row in enumerate(values)}


Q4 = Plan(questions=("Q4",), datasets=("ENZYMES",), splits=(0, 1), tasks=(("gc",), ("nc",), ("gc", "nc")))
SCORES = {
    ("classical", ("gc",)): own_heads("classical", ["gc"], [50.0], [40.0]),
    ("classical", ("nc",)): own_heads("classical", ["nc"], [80.0], [90.0]),
    ("classical", ("gc", "nc")): own_heads("classical", ["gc", "nc"], [45.0, 88.0], [40.0, 90.0]),
    ("esame", ("gc", "nc")): linear_probes("esame", ["gc", "nc"], [55.0, 80.0], [44.0, 81.0]),
}
"""A study of two splits by hand."""
