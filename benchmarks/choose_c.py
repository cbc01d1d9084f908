"""By what should validation graphs choose the C of a linear probe? `python benchmarks/choose_c.py DIR [RUN ...]`.

DIR holds the zips of the paper's four sets. Probes of GC see the embeddings of untrained encoders of the preset, of all
ten splits, or of the runs in the folders RUN. Seven tenths of the validation graphs choose C, and the rest tell the
accuracy of the probe that was chosen: the mean of 300 such cuts, in percent. Test graphs are not looked at.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch

from same.config import PRESETS, Config, make_config
from same.episodes import embed
from same.machine import settle
from same.probes.evaluate import GRID, Probing
from same.probes.metrics import cross_entropy
from same.probes.svm import LinearSVM
from same.runs import open_run
from same.study.plan import DATASETS

CUTS, CHOOSING = 300, 0.7


def hinge(y: np.ndarray, decision: np.ndarray, classes: np.ndarray, power: int = 1) -> float:
    """The hinge loss of all classifiers of an SVM; squared, it is what the SVM itself minimises."""
    decision = np.stack([-decision, decision], axis=1) if decision.ndim == 1 else decision
    return float((np.maximum(0, 1 - np.where(y[:, None] == classes, 1, -1) * decision) ** power).sum())


def told(config: Config, encoder: torch.nn.Module | None, data: Path) -> dict[str, float]:
    """The accuracy on validation graphs that had no part in the choice, by what it was made by."""
    probing = Probing.of(config, data=data, tasks=["gc"])
    (task,) = probing.tasks
    sets = [probing.sets["gc"][part] for part in ("train", "validation")]
    with torch.no_grad():
        train, valid = embed((encoder or probing.setting.model.encoder).eval(), sets)
    (x, y), (x_valid, y_valid) = ((task.features(s.embeddings, s).numpy(), s.y.numpy()) for s in (train, valid))
    models = [LinearSVM(c).fit(x, y) for c in GRID]
    right = np.array([model.predict(x_valid) == y_valid for model in models])
    one = np.arange(len(y_valid))[:, None]
    worth = {"accuracy": right.astype(float)}
    losses = {"cross entropy": cross_entropy, "squared hinge": partial(hinge, power=2), "hinge": hinge}
    for name, loss in losses.items():
        decisions = [(model, model.decision_function(x_valid)) for model in models]
        worth[name] = -np.array([[loss(y_valid[i], d[i], model.classes_) for i in one] for model, d in decisions])
    rng, found = np.random.default_rng(0), dict.fromkeys([*worth, *(f"C = {c:g}" for c in GRID)], 0.0)
    for _ in range(CUTS):
        order = rng.permutation(len(y_valid))
        choosing, rest = np.split(order, [int(CHOOSING * len(order))])
        for name, values in worth.items():
            found[name] += 100 * right[values[:, choosing].mean(axis=1).argmax()][rest].mean() / CUTS
        for c, row in zip(GRID, right, strict=True):
            found[f"C = {c:g}"] += 100 * row[rest].mean() / CUTS
    return found


def main(data: Path, folders: list[Path]) -> None:
    """Prints a line for each rule and each C."""
    settle()
    runs = [open_run(folder) for folder in folders]
    cases = [(run.config, run.encoder) for run in runs] or [
        (make_config({**PRESETS["sage-walk"], "method": "untrained", "dataset": name, "split": k}), None)
        for name in DATASETS
        for k in range(10)
    ]
    columns: dict[str, list[dict[str, float]]] = {}
    for config, encoder in cases:
        columns.setdefault(config.dataset, []).append(told(config, encoder, data))
    print(f"{'':<16}" + "".join(f"{name:>10}" for name in columns))
    for rule in next(iter(columns.values()))[0]:
        print(f"{rule:<16}" + "".join(f"{np.mean([row[rule] for row in rows]):>10.1f}" for rows in columns.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(Path, sys.argv[2:])))
