"""Does validation show what `predict` scores, and what should stop training? The tables of `docs/validation.md`.

    python benchmarks/validation.py shown DATA     scores shown in training, and scores of predictions on test graphs
    python benchmarks/validation.py stop DATA      two stopping rules and two weightings, inside split 0
    python benchmarks/validation.py tables         writes the tables into the page

Results go to `reproduction/validation-*.csv`; rows that are there are not run again.
"""

import argparse
import csv
import itertools
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from same.config import Config
from same.experiment import Experiment, assemble, fit_heads, run
from same.graphs import Split, load, split
from same.metrics import scores
from same.nn.embedding import encode_once
from same.saved import load_trained
from same.seeding import stream_seed
from same.tasks.task import features
from same.threads import limit_threads
from same.training import Averaging, Schedule, Training, Validation, train
from same.training.ridge import RidgeValidation
from same.training.stopping import is_over

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/validation.md"
SETS = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
METHODS = ("classical", "isame", "esame")
TASKS = ("gc", "nc", "lp")
RULES = {"loss": "the method's own losses", "linear": "losses of linear heads"}
PATIENCE = 50
SHOWN = ("dataset", "split", "task", "shown", "linear", "own", "train_seconds", "validation_seconds")
STOP = ("dataset", "method", "weighting", "stop_part", "rule", "epoch", *TASKS, "cpu_seconds")


def shown(place: dict[str, str], data: str) -> Iterable[dict[str, Any]]:
    """Train one model as `same train` does, and score its predictions on the test graphs; one row per task."""
    config, seconds = Config(dataset=place["dataset"], split=int(place["split"]), max_epochs=60), [0.0]

    def timed(probe: RidgeValidation, encoder: Any) -> Any:
        began = time.process_time()
        result = call(probe, encoder)
        seconds[0] += time.process_time() - began
        return result

    call, RidgeValidation.__call__ = RidgeValidation.__call__, timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        summary = run(config, Path(folder, "run"), data=data)
        trained = load_trained(Path(folder, "run"))
    RidgeValidation.__call__ = call  # type: ignore[method-assign]
    store = load(config.dataset, data).with_inputs(trained.inputs)
    test = store[split(store, config.split).test]
    times = {"train_seconds": summary["cpu_seconds"], "validation_seconds": round(seconds[0], 3)}
    for task in trained.tasks:
        predicted = {head: round(100 * trained.score(task, test, head=head), 2) for head in ("linear", "own")}
        seen = round(100 * summary["best"]["tasks"][task.name]["score"], 2)
        yield {**place, "task": task.name, "shown": seen, **predicted, **times}


class Both(Validation):
    """Validation that keeps the best model by either rule, and ends when both rules have ended."""

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Validate the untrained model."""
        self.histories: dict[str, list[dict[str, Any]]] = {rule: [] for rule in RULES}
        self.kept: dict[str, dict[str, torch.Tensor]] = {}
        super().begin(training, schedule)
        self._keep(training)

    def after(self, training: Training, schedule: Schedule) -> bool:
        """Validate, and check both rules."""
        super().after(training, schedule)
        if training.validated:
            self._keep(training)
        return all(is_over(history, schedule.epochs, PATIENCE) for history in self.histories.values())

    def _keep(self, training: Training) -> None:
        record = training.history[-1]
        for rule, what in (("loss", "own_loss"), ("linear", "loss")):
            history, objective = self.histories[rule], sum(row[what] for row in record["tasks"].values())
            if history and is_over(history, 10**9, PATIENCE):
                continue  # This rule has ended; the training goes on for the other one.
            if not history or objective < min(each["objective"] for each in history):
                values = training.model.state_dict() | training.average
                self.kept[rule] = {name: value.detach().clone() for name, value in values.items()}
            history.append({"epoch": record["epoch"], "objective": objective})


def stop(place: dict[str, str], data: str) -> Iterable[dict[str, Any]]:
    """Train on six parts, stop on part 3 or 4, score linear heads on part 2; one row per rule.

    Parts 0 and 1, the test graphs of split 0, are not used. One training serves both rules.
    """
    store = load(place["dataset"], data)
    parts = [split(store, (part - 2) % 10).validation for part in range(10)]
    chosen = int(place["stop_part"])
    learned = np.sort(np.concatenate([parts[part] for part in range(3, 10) if part != chosen]))
    names = {name: place[name] for name in ("dataset", "method", "weighting")}
    config = Config(**names, width=128, max_epochs=200, stop_on="loss")  # type: ignore[arg-type]
    experiment = assemble(config, store, Split(learned, parts[chosen], parts[2]))
    sampler, rule, began = experiment.sampler(), experiment.validation(), time.process_time()
    both = Both(rule.method, rule.episodes, probe=rule.probe)
    training = Training(
        experiment.model,
        config.outer_lr,
        config.weight_decay,
        experiment.weighting,
        config.clip,
        seeds=lambda number: stream_seed(config.seed, "dropout", config.split, number),
    )
    schedule = Schedule(200, sampler.steps, config.validate_every)
    train(training, experiment.method, sampler, schedule, [Averaging(config.average), both])
    seconds = round(time.process_time() - began, 1)
    for name in RULES:
        experiment.model.load_state_dict(both.kept[name])
        best = min(both.histories[name], key=lambda each: each["objective"])
        yield {**place, "rule": name, "epoch": best["epoch"], **score(experiment, parts[2]), "cpu_seconds": seconds}


def score(experiment: Experiment, ids: np.ndarray) -> dict[str, float]:
    """Main scores of linear heads, fitted to the training graphs, on other graphs, in percent."""
    _, heads = fit_heads(experiment)
    tasks, result = experiment.examples("test", ids), {}
    with torch.no_grad():
        embedded = encode_once(experiment.model.encoder, [examples for _, examples in tasks])
    for (task, _), examples in zip(tasks, embedded, strict=True):
        head, y = heads[task.name], examples.y.numpy()
        (x,) = features(task, examples, (head.pool,)).x.values()
        result[task.name] = round(100 * next(iter(scores(task.kind, y, head.output(x)).values())), 2)
    return result


STUDIES: dict[str, Any] = {
    "shown": (shown, SHOWN, {"dataset": ("planted", *SETS), "split": ("3", "5", "7")}),
    "stop": (
        stop,
        STOP,
        {"stop_part": ("3", "4"), "weighting": ("fixed", "balanced"), "dataset": SETS, "method": METHODS},
    ),
}


def results(name: str) -> Path:
    """File of the results of a study."""
    return ROOT / f"reproduction/validation-{name}.csv"


def rows(name: str) -> list[dict[str, str]]:
    """The results of a study; none if there is no file."""
    path = results(name)
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def execute(name: str, data: str, worker: str) -> None:
    """Run what the file lacks, run after run; worker k/n takes every n-th, from the k-th."""
    study, columns, axes = STUDIES[name]
    k, n = map(int, worker.split("/"))
    plan = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for place in plan[k::n]:
        if any(all(row[key] == value for key, value in place.items()) for row in rows(name)):
            continue
        made, is_new = list(study(place, data)), not results(name).exists()
        with results(name).open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(made)
        print(*made, sep="\n", flush=True)


def table(head: list[str], lines: Iterable[Iterable[Any]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [head, ["---"] * len(head), *lines])


def shown_table() -> str:
    """Scores shown for the kept epoch, next to those of predictions on test graphs."""
    cells: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows("shown"):
        cells[row["dataset"], row["task"]].append(row)
    lines, gaps = [], []
    for (dataset, task), some in sorted(cells.items(), key=lambda item: (TASKS.index(item[0][1]), item[0][0])):
        values = [mean(float(row[what]) for row in some) for what in ("shown", "linear", "own")]
        lines.append([task.upper(), dataset, *(f"{value:.1f}" for value in values), f"{values[0] - values[1]:+.1f}"])
        gaps += [values[0] - values[1]] if task == "gc" else []
    lines.append(["GC", "mean", "", "", "", f"{mean(gaps):+.1f}"])
    head = ["task", "dataset", "shown", "`predict`, linear head", "own head", "shown less `predict`"]
    return table(head, lines)


def cost_table() -> str:
    """CPU seconds of validation next to those of training."""
    lines = []
    for dataset in ("planted", *SETS):
        some = [row for row in rows("shown") if (row["dataset"], row["task"]) == (dataset, "gc")]
        whole, part = (sum(float(row[f"{what}_seconds"]) for row in some) for what in ("train", "validation"))
        lines.append([dataset, f"{whole / len(some):.1f}", f"{part / len(some):.2f}", f"{100 * part / whole:.1f} %"])
    return table(["dataset", "training, CPU s", "ridge classifiers, CPU s", "share"], lines)


def stop_table(key: str, weighting: str | None = None) -> str:
    """Scores by rule or by weighting: means over pairs of runs that differ in nothing else, and their differences."""
    some = [row for row in rows("stop") if weighting in (None, row["weighting"])]
    others = [name for name in ("dataset", "method", "weighting", "stop_part", "rule") if name != key]
    pairs: dict[tuple[str, ...], dict[str, dict[str, str]]] = defaultdict(dict)
    for row in some:
        pairs[tuple(row[name] for name in others)][row[key]] = row
    first, second = ("loss", "linear") if key == "rule" else ("fixed", "balanced")
    both, lines = [pair for pair in pairs.values() if len(pair) == 2], []
    for group in (*SETS, *METHODS, "all"):
        here = [pair for pair in both if group in (pair[first]["dataset"], pair[first]["method"], "all")]
        if not here:
            continue
        cells = [f"{mean(float(pair[name]['epoch']) for pair in here):.0f}" for name in (first, second)]
        for tasks in (("gc",), ("nc",), ("lp",), TASKS):
            a, b = (
                np.mean([[float(pair[name][t]) for t in tasks] for pair in here], axis=1) for name in (first, second)
            )
            error = f" ± {(b - a).std(ddof=1) / len(here) ** 0.5:.1f}" if len(here) > 1 else ""
            cells.append(f"{a.mean():.1f} → {b.mean():.1f} ({(b - a).mean():+.1f}{error})")
        lines.append([group, len(here), " → ".join(cells[:2]), *cells[2:]])
    return table(["", "pairs", f"epoch kept, {first} → {second}", "GC", "NC", "LP", "mean of the three"], lines)


BLOCKS = {
    "shown": shown_table,
    "cost": cost_table,
    "stop": lambda: stop_table("rule", "fixed"),
    "weights": lambda: stop_table("weighting"),
}


def page(text: str) -> str:
    """The page with its tables."""
    for name, make in BLOCKS.items():
        text = re.sub(
            rf"(<!-- begin {name} -->\n).*?(<!-- end -->)",
            lambda m, make=make: m[1] + make() + "\n" + m[2],
            text,
            flags=re.S,
        )
    return text


def main() -> None:
    """Run a study, or write its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*STUDIES, "tables"])
    parser.add_argument("data", nargs="?", help="folder of the four datasets")
    parser.add_argument("--worker", default="0/1", metavar="k/n", help="of n processes, this is the k-th from 0")
    options = parser.parse_args()
    if options.what == "tables":
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    limit_threads()
    execute(options.what, options.data, options.worker)


if __name__ == "__main__":
    main()
