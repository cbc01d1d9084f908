"""What fixed episodes cost: eSAME as the paper describes it beside the released way, by linear probes on test graphs.

python benchmarks/fixed_episodes.py DIR [--dataset ENZYMES] [--splits 0,1] [--epochs 60]

In the released code a graph serves one task, in one half of the episode, with the same cut, from the first epoch to the
last. DIR holds the zips of the paper's sets. Everything else is the same in both, down to the order of batches.
"""

import argparse
from pathlib import Path
from typing import Any

from same.machine import settle

settle()

import numpy as np  # noqa: E402

from same.config import Config  # noqa: E402
from same.episodes import EpisodeSampler  # noqa: E402
from same.probes.evaluate import Probing  # noqa: E402
from same.runs import lessons, prepare  # noqa: E402
from same.training import train  # noqa: E402

TASKS = ("gc", "nc", "lp")


class FixedSampler(EpisodeSampler):
    """Every epoch has the episodes of the first one."""

    def draw(self, epoch: int, step: int) -> Any:
        """The episode of a step."""
        return super().draw(0, step)


def main() -> None:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dataset", default="ENZYMES")
    parser.add_argument("--splits", default="0,1")
    parser.add_argument("--epochs", type=int, default=60)
    asked = parser.parse_args()
    print(f"{asked.dataset}, {asked.epochs} epochs, splits {asked.splits}: validation loss at its best, then probes")
    for kind in (EpisodeSampler, FixedSampler):
        found, losses = [], []
        for split in map(int, asked.splits.split(",")):
            config = Config(dataset=asked.dataset, split=split, max_epochs=asked.epochs, patience=10**6, pair="concat")
            setting = prepare(config, asked.data)
            method, sampler, validation = lessons(config, setting)
            drawn = kind(setting.store, sampler.ids, setting.tasks, config.batch_size, sampler.build, split=split)
            state = train(setting.model, method, drawn, validation, config)
            losses.append(state.best_record["objective"] if state.best_record else np.nan)
            rows = Probing.of(config, data=asked.data).rows("esame", setting.model.encoder.eval(), ("linear",))
            found.append([100 * next(row.main for row in rows if row.task == task) for task in TASKS])
        means = ", ".join(f"{task} {mean:.1f}" for task, mean in zip(TASKS, np.mean(found, axis=0), strict=True))
        print(f"{kind.__name__}: loss {np.mean(losses):.3f}, {means}", flush=True)


if __name__ == "__main__":
    main()
