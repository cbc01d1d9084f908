"""What a linear classifier's scaling and C are worth: `python benchmarks/probes.py DIR STUDY`.

DIR holds the zips of the paper's sets, STUDY is a study of C = 1 with its weights, as `same study` leaves it. Of GC and
NC, on test graphs, the mean over splits in percent: embeddings standardised, C = 1 (what the study has); as they are,
scikit-learn's default (what the paper says); standardised, C chosen by the loss on validation graphs.
"""

import sys
from collections import defaultdict
from pathlib import Path

from same.machine import settle

settle()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

from same.episodes import embed  # noqa: E402
from same.probes.evaluate import Probing  # noqa: E402
from same.runs import TrainedRun, open_run  # noqa: E402
from same.study.results import RUNS, read_plan  # noqa: E402

TASKS = ("gc", "nc")


def told(run: TrainedRun, data: Path) -> dict[str, list[float]]:
    """By task, the scores of the three."""
    found = defaultdict(list)
    for choose_c in (None, "loss"):
        probing = Probing.of(run.config, data=data, tasks=TASKS, choose_c=choose_c)
        for row in probing.rows(run.config.method, run.encoder, ("linear",)):
            found[row.task].append(100 * row.main)
    for task in probing.tasks:
        sets = [probing.sets[task.name][part] for part in ("train", "test")]
        with torch.no_grad():
            known = embed(run.encoder, sets)
        (x, y), (x_test, y_test) = ((task.features(s.embeddings, s).numpy(), s.y.numpy()) for s in known)
        found[task.name].insert(1, 100 * LinearSVC(random_state=0).fit(x, y).score(x_test, y_test))
    return found


def main(data: Path, folder: Path) -> None:
    """Prints a line for each set, method, tasks and task."""
    cells = defaultdict(list)
    for config in read_plan(folder).runs():
        place = folder / RUNS / config.key
        if (place / "model.safetensors").is_file():
            for task, scores in told(open_run(place), data).items():
                cells[f"{config.dataset} {config.method} on {'+'.join(config.tasks)}, {task}"].append(scores)
    print("| | standardised, C = 1 | as they are, C = 1 | standardised, C chosen | splits |\n|---|---|---|---|---|")
    for what, rows in sorted(cells.items()):
        print(f"| {what} | {' | '.join(f'{value:.1f}' for value in np.mean(rows, axis=0))} | {len(rows)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
