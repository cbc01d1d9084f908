"""What the released code's departures from the text cost, each alone: three-task eSAME, linear probes on test graphs.

python benchmarks/causes.py DIR [--dataset ENZYMES] [--splits 0,1] [--epochs 40]

DIR holds the zips of the paper's sets. In the released code a graph serves one task, in one half of the episode, with
the same cut, from the first epoch to the last; inputs are rows divided by their sums; batches and rates are smaller.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from same.config import Config, make_config
from same.episodes import EpisodeSampler
from same.machine import settle
from same.nn import Encoder
from same.probes.evaluate import Probing
from same.runs import lessons, prepare
from same.training import train

COLUMNS = (("gc", "paper"), ("nc", "paper"), ("lp", "paper"), ("lp", "released"))


class FixedSampler(EpisodeSampler):
    """Every epoch has the episodes of the first one."""

    def draw(self, epoch: int, step: int) -> Any:
        """The episode of a step."""
        return super().draw(0, step)


CAUSES: dict[str, tuple[type[EpisodeSampler], dict[str, Any]]] = {
    "as here": (EpisodeSampler, {}),
    "untrained": (EpisodeSampler, {"method": "untrained"}),
    "fixed episodes": (FixedSampler, {}),
    "inputs: rows over their sums, no degrees": (EpisodeSampler, {"scaling": "row", "degree": 0}),
    "untrained, with these inputs": (EpisodeSampler, {"scaling": "row", "degree": 0, "method": "untrained"}),
    "batches of 16, rates 5e-4 and 0.04": (EpisodeSampler, {"batch_size": 16, "outer_lr": 5e-4, "inner_lr": 0.04}),
}


def trained(config: Config, kind: type[EpisodeSampler], data: Path) -> Encoder:
    """The encoder that a configuration comes to, with episodes of this kind."""
    setting = prepare(config, data)
    if config.method != "untrained":
        method, sampler, validation = lessons(config, setting)
        drawn = kind(setting.store, sampler.ids, setting.tasks, config.batch_size, sampler.build, split=config.split)
        train(setting.model, method, drawn, validation, config)
    encoder: Encoder = setting.model.encoder.eval()
    return encoder


def main() -> None:
    """Prints a line for each cause."""
    settle()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dataset", default="ENZYMES")
    parser.add_argument("--splits", default="0,1")
    parser.add_argument("--epochs", type=int, default=40)
    asked = parser.parse_args()
    print(f"{asked.dataset}, eSAME, {asked.epochs} epochs, mean over the splits {asked.splits}\n")
    print("| | GC | NC | LP, AUC | LP as released, accuracy |\n|---|---|---|---|---|")
    for cause, (kind, changes) in CAUSES.items():
        found = []
        for split in map(int, asked.splits.split(",")):
            fixed = {"dataset": asked.dataset, "split": split, "pair": "concat"}
            config = make_config({**fixed, "max_epochs": asked.epochs, "patience": asked.epochs, **changes})
            encoder = trained(config, kind, asked.data)
            scores = {
                (row.task, protocol): 100 * row.main
                for protocol, tasks in (("paper", ["gc", "nc", "lp"]), ("released", ["lp"]))
                for row in Probing.of(config, data=asked.data, tasks=tasks, protocol=protocol).rows(
                    "esame", encoder, ("linear",)
                )
            }
            found.append([scores[column] for column in COLUMNS])
        print(f"| {cause} | " + " | ".join(f"{value:.1f}" for value in np.mean(found, axis=0)) + " |", flush=True)


if __name__ == "__main__":
    main()
