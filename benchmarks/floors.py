"""Scores without training, under both protocols: `python benchmarks/floors.py DIR [SPLITS]`.

DIR has the zip files of the paper's four sets. Scores are means ± standard deviations over the splits, in percent.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from same.config import Config
from same.graphs.batch import GraphBatch
from same.probes.evaluate import Evaluation
from same.threads import limit_threads


def node_index(batch: GraphBatch) -> torch.Tensor:
    """One number per node: its place in the file divided by the number of nodes of its graph."""
    place = torch.arange(batch.num_nodes) - batch.node_ptr[batch.batch]
    return (place / batch.node_ptr.diff()[batch.batch])[:, None].float()


def main(folder: Path, splits: int) -> None:
    """Print one table per input scaling, with one row per model and task."""
    limit_threads()
    names = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
    for scaling in ("standardise", "row"):
        cells: dict[str, dict[str, list[float]]] = {}
        for name in names:
            for k in range(splits):
                for pair, protocols in (("concat", ("paper", "released")), ("symmetric", ("paper",))):
                    config = Config(dataset=name, split=k, scaling=scaling, degree=0, pair=pair, method="untrained")
                    tasks = None if pair == "concat" else ["lp"]
                    evaluation = Evaluation(config, data=folder, tasks=tasks, protocols=protocols)
                    for row in [*evaluation.floors(), *evaluation.probe("node index", node_index, ("linear",))]:
                        what = f", {row.protocol}, {pair}" if row.task == "lp" else ""
                        label = f"{row.task} {row.metric}{what}: {row.model}"
                        cells.setdefault(label, {}).setdefault(name, []).append(100 * row.score)
        print(f"\nscaling {scaling}, {splits} splits")
        print(f"{'':<52}" + "".join(f"{name:>14}" for name in names))
        for label in sorted(cells):
            values = (cells[label][name] for name in names)
            print(f"{label:<52}" + "".join(f"{np.mean(v):>8.1f} ±{np.std(v):>4.1f}" for v in values))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10)
