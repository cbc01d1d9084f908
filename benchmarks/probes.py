"""What a linear classifier's scaling and C are worth: `python benchmarks/probes.py DIR STUDY --tasks gc,nc`.

DIR holds the zips of the paper's sets, STUDY is a study of C = 1 with its weights, as `same study` leaves it. Of each
run that was trained for the task, or not at all, on test graphs, in percent: embeddings standardised, C = 1 (what the
study has); as they are, scikit-learn's default (what the paper says); standardised, C chosen by the loss on validation
graphs; and single-task Cl, by its own head. Prints means over splits; `--out FILE.csv` keeps a line a run, beside the
lines of other runs that are there. With `--networks`, of untrained encoders instead: a linear classifier, a network,
and one that sees embeddings as they are.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from sklearn.svm import LinearSVC

from same.episodes import embed
from same.machine import settle
from same.probes.evaluate import Probing
from same.probes.metrics import MAIN, scores
from same.runs import TrainedRun, open_run
from same.study.results import RUNS, Study
from same.study.tables import baseline

PROBES = ("standardised", "as they are", "C chosen")
HEAD, BESIDE = ("dataset", "method", "trained on", "adapts", "measured", "split"), "single-task Cl"


def told(run: TrainedRun, tasks: list[str], data: Path) -> dict[str, list[float]]:
    """By task, the scores of the three."""
    found = defaultdict(list)
    for choose_c in (None, "loss"):
        probing = Probing.of(run.config, data=data, tasks=tasks, choose_c=choose_c)
        for row in probing.rows(run.config.method, run.encoder, ("linear",)):
            found[row.task].append(100 * row.main)
    for task in probing.tasks:
        sets = [probing.sets[task.name][part] for part in ("train", "test")]
        with torch.no_grad():
            known = embed(run.encoder, sets)
        (x, y), (x_test, y_test) = ((task.features(s.embeddings, s).numpy(), s.y.numpy()) for s in known)
        svm = LinearSVC(random_state=0).fit(x, y)
        tells = svm.decision_function(x_test) if task.kind == "links" else svm.predict(x_test)
        found[task.name].insert(1, 100 * scores(task.kind, y_test, tells)[MAIN[task.kind]])
    return found


def networks(run: TrainedRun, tasks: list[str], data: Path) -> dict[str, list[float]]:
    """By task, the scores of a linear classifier, of the network, and of one whose embeddings are not standardised."""
    probing = Probing.of(run.config, data=data, tasks=tasks)
    found = defaultdict(list)
    for row in probing.rows(run.config.method, run.encoder, ("linear", "network")):
        found[row.task].append(100 * row.main)
    with patch("same.probes.network.standardised", lambda *examples: examples):
        for row in probing.rows(run.config.method, run.encoder, ("network",)):
            found[row.task].append(100 * row.main)
    return found


def keep(path: Path, table: list[tuple[str, ...]]) -> None:
    """Adds a table to a file; a line of the same run takes the place of the one that is there."""
    head, *rows = table
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            before, *others = map(tuple, csv.reader(file))
        if before != head:
            raise SystemExit(f"{path}: has other columns ({', '.join(before)}); name another file")
        rows = others + rows
    known = {row[: len(HEAD)]: row for row in rows}
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *sorted(known.values())])


def main() -> None:
    """See the module."""
    settle()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("study", type=Path)
    parser.add_argument("--tasks", default="gc,nc")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--networks", action="store_true")
    asked = parser.parse_args()
    names = ("linear", "network", "network, as they are") if asked.networks else PROBES
    study, rows, cells = Study.open(asked.study), [], defaultdict(list)
    for run in study.runs.values():
        c, place = run.config, study.folder / RUNS / run.config.key
        tasks = [task for task in asked.tasks.split(",") if task in c.tasks]
        if c.weighting != "fixed" or (asked.networks and c.method != "untrained"):
            continue
        if not tasks or not (place / "model.safetensors").is_file():
            continue
        for task, told_ in (networks if asked.networks else told)(open_run(place), tasks, asked.data).items():
            values = [*told_, baseline(study, c.dataset, task).get(c.split, float("nan"))]
            where = (c.dataset, c.method, "+".join(c.tasks), c.adapts, task)
            rows.append((*where, str(c.split), *(f"{value:.4f}" for value in values)))
            cells[where].append(values)
    if asked.out:
        keep(asked.out, [(*HEAD, *names, BESIDE), *rows])
    print(f"| | {' | '.join((*names, BESIDE))} | splits |\n|---|---|---|---|---|---|")
    for where, values in sorted(cells.items()):
        print(
            f"| {' '.join(where)} | {' | '.join(f'{mean:.1f}' for mean in np.mean(values, axis=0))} | {len(values)} |"
        )


if __name__ == "__main__":
    main()
