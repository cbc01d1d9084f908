"""What should stop training, and how should tasks be weighed? A comparison inside split 0, on four datasets.

The model is stopped on part 3 (then on part 4), trained on the other six training parts, and scored by linear heads on
part 2. Parts 0 and 1, the test graphs of split 0, are not used. One training serves both rules: it goes on until both
have ended, and each keeps the model of its own best validation.

    python benchmarks/stopping.py DATA --out FILE.csv    runs what the file lacks
"""

import argparse
import csv
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from same.config import Config
from same.experiment import Experiment, assemble, fit_heads
from same.graphs import Split, load, split
from same.graphs.store import GraphStore
from same.metrics import scores
from same.nn.embedding import encode_once
from same.seeding import stream_seed
from same.tasks.task import features
from same.threads import limit_threads
from same.training import Averaging, Schedule, Training, Validation, train
from same.training.stopping import is_over

DATASETS = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
METHODS = ("classical", "isame", "esame")
WEIGHTINGS = ("fixed", "balanced")
STOP_PARTS = (3, 4)
RULES = ("loss", "linear")
COLUMNS = ("dataset", "method", "weighting", "stop_part", "rule", "epoch", "gc", "nc", "lp", "cpu_seconds")


class Both(Validation):
    """Validation that keeps the best model by either rule, and ends when both would have stopped."""

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Validate the untrained model."""
        self.histories: dict[str, list[dict[str, Any]]] = {rule: [] for rule in RULES}
        self.kept: dict[str, dict[str, Any]] = {}
        super().begin(training, schedule)
        self._keep(training)

    def after(self, training: Training, schedule: Schedule) -> bool:
        """Validate, and check both rules."""
        super().after(training, schedule)
        if not training.validated:
            return False
        self._keep(training)
        return all(is_over(history, schedule.epochs, self.patience) for history in self.histories.values())

    patience = Config().patience

    def _keep(self, training: Training) -> None:
        record = training.history[-1]
        sums = {
            "loss": sum(row["own_loss"] for row in record["tasks"].values()),
            "linear": sum(row["loss"] for row in record["tasks"].values()),
        }
        for rule, objective in sums.items():
            history = self.histories[rule]
            if history and is_over(history, 10**9, self.patience):
                continue  # This rule has stopped; the training goes on for the other one.
            if not history or objective < min(each["objective"] for each in history):
                values = {**training.model.state_dict(), **(training.average or {})}
                self.kept[rule] = {name: value.detach().clone() for name, value in values.items()}
            history.append({"epoch": record["epoch"], "objective": objective})


def parts_of(store: GraphStore) -> list[np.ndarray]:
    """The ten parts of the splits with seed 0."""
    return [split(store, (part - 2) % 10).validation for part in range(10)]


def run(store: GraphStore, method: str, weighting: str, stop_part: int) -> list[dict[str, Any]]:
    """Train once; one row per rule."""
    parts = parts_of(store)
    others = [parts[p] for p in range(3, 10) if p != stop_part]
    given = Split(np.sort(np.concatenate(others)), parts[stop_part], parts[2])
    config = Config(dataset=store.name, method=method, weighting=weighting, max_epochs=200, stop_on="loss")
    experiment = assemble(config, store, given)
    began, sampler = time.process_time(), experiment.sampler()
    rule = experiment.validation()
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
    seconds, rows = time.process_time() - began, []
    for name in RULES:
        experiment.model.load_state_dict(both.kept[name])
        measured = score(experiment, parts[2])
        best = min(both.histories[name], key=lambda each: each["objective"])
        place = {"dataset": store.name, "method": method, "weighting": weighting, "stop_part": stop_part, "rule": name}
        rows.append({**place, "epoch": best["epoch"], **measured, "cpu_seconds": round(seconds, 1)})
    return rows


def score(experiment: Experiment, ids: np.ndarray) -> dict[str, float]:
    """Main scores of linear heads, fitted to the training graphs, on other graphs, in percent."""
    _, heads = fit_heads(experiment)
    tasks = experiment.examples("test", ids)
    with torch.no_grad():
        embedded = encode_once(experiment.model.encoder, [examples for _, examples in tasks])
    result = {}
    for (task, _), examples in zip(tasks, embedded, strict=True):
        (x,), y = features(task, examples, (heads[task.name].pool,)).x.values(), examples.y.numpy()
        result[task.name] = round(100 * next(iter(scores(task.kind, y, heads[task.name].output(x)).values())), 2)
    return result


def main() -> None:
    """Run what is missing, a row at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of the four datasets")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weightings", default=",".join(WEIGHTINGS))
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--worker", default="0/1", help="k/n: every n-th run, from the k-th")
    options = parser.parse_args()
    limit_threads()
    stores = {name: load(name, options.data) for name in options.datasets.split(",")}
    plan = list(itertools.product(STOP_PARTS, options.weightings.split(","), stores, METHODS))
    k, n = map(int, options.worker.split("/"))
    for stop_part, weighting, dataset, method in plan[k::n]:
        key = (dataset, method, weighting, str(stop_part))
        done = list(csv.reader(options.out.open())) if options.out.exists() else []
        if key in {tuple(row[:4]) for row in done}:
            continue
        rows = run(stores[dataset], method, weighting, stop_part)
        print(*rows, sep="\n", flush=True)
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if not done:
                writer.writeheader()
            writer.writerows({**row, "dataset": dataset} for row in rows)


if __name__ == "__main__":
    main()
