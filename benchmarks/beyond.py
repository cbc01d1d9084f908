"""Which settings make a better encoder? Linear probes on validation graphs: `benchmarks/beyond.py DIR --out RUNS`.

DIR holds the zips of the paper's four sets. Every variant is an ordinary run in RUNS, so an interrupted comparison goes
on. Test graphs are not looked at: probes are trained on the training graphs and scored on the validation graphs.
"""

import argparse
import csv
import re
import sys
from pathlib import Path

import numpy as np

from same.config import make_config, parse_setting
from same.machine import settle
from same.names import CHOOSE_C
from same.probes.evaluate import Probing
from same.runs import open_run, run

TASKS = ("gc", "nc", "lp")


def variant(text: str) -> dict[str, object]:
    """Settings from `method=isame,weights={"gc":0.1,"nc":1}`; tasks are apart by plus signs."""
    found = dict(parse_setting(part) for part in re.split(r",(?![^{]*})", text)) if text else {}
    return {name: value.split("+") if name == "tasks" else value for name, value in found.items()}


def main() -> None:
    """Trains and probes what is not done yet, and prints a line for each variant and set."""
    settle()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--datasets", default="ENZYMES,PROTEINS,DHFR,COX2")
    parser.add_argument("--splits", default="0,1")
    parser.add_argument("--always", default="max_epochs=60", help="settings of all variants")
    parser.add_argument("--variants", nargs="+", default=[""], help="settings, as `method=isame,layers=4`")
    parser.add_argument("--choose-c", choices=CHOOSE_C, help="probes take the C that is best on these graphs, by this")
    asked = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["set", "variant", "splits", *TASKS, "mean", "epochs", "cpu seconds"])
    for dataset in asked.datasets.split(","):
        for text in asked.variants:
            rows, epochs, spent = [], [], []
            splits = [int(k) for k in asked.splits.split(",")]
            for split in splits:
                settings = {**variant(asked.always), **variant(text), "dataset": dataset, "split": split}
                config = make_config(settings)
                folder = asked.out / config.key
                result = run(config, folder, data=asked.data)
                epochs.append(result["epochs"])
                spent.append(result["cpu_seconds"])
                probing = Probing.of(config, data=asked.data, choose_c=asked.choose_c)
                found = probing.rows(config.method, open_run(folder).encoder, ("linear",), part="validation")
                rows.append([100 * next(row.main for row in found if row.task == task) for task in TASKS])
            means = np.mean(rows, axis=0)
            numbers = [f"{value:.1f}" for value in (*means, means.mean())]
            table.writerow([dataset, text, len(splits), *numbers, round(np.mean(epochs)), round(np.mean(spent))])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
