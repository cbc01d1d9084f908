"""Features of sets that do not fit into memory: written to disk block by block, and memory-mapped."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from same.episodes import PARTS
from same.experiment import Experiment
from same.graphs.store import GraphStore
from same.linear import Features
from same.nn.embedding import encode_once
from same.probes.protocols import Case, CaseFeatures, Encode
from same.seeding import stream
from same.tasks.task import features

LARGE_BYTES = 2**30  # Embeddings that would take more memory than this go to disk.
_GRAPHS = 512  # Per block; each block draws its own examples.


def is_large(store: GraphStore, width: int) -> bool:
    """Whether the embeddings of a set take too much memory."""
    return store.num_nodes * width * 4 > LARGE_BYTES


def disk_features(
    experiment: Experiment, cases: Sequence[Case], encode: Encode, folder: Path, most_graphs: int | None = None
) -> CaseFeatures:
    """Memory-mapped features, and labels, of each case by part of the split.

    Memory grows with the number of examples, by a few bytes each, and not with the width of the embeddings.
    With `most_graphs`, each part is a random sample of so many graphs.
    """
    seed, k = experiment.config.seed, experiment.config.split
    made: CaseFeatures = {case: {} for case in cases}
    for number, part in enumerate(PARTS):
        ids, labels = getattr(experiment.split, part), {case: [np.empty(0, np.int32)] for case in cases}
        if most_graphs is not None and len(ids) > most_graphs:
            ids = np.sort(stream(seed, "probes", k, number, 2**31).permutation(ids)[:most_graphs])
        for block, start in enumerate(range(0, len(ids), _GRAPHS)):
            batch = experiment.store.cut(ids[start : start + _GRAPHS])
            drawn = [case.task.examples(batch, stream(seed, "probes", k, number, block)) for case in cases]
            with torch.no_grad():
                embedded = encode_once(encode, drawn)
            for i, (case, examples) in enumerate(zip(cases, embedded, strict=True)):
                x, y = features(case.task, examples, case.task.pools[:1])  # One pooling: the others take as much space.
                labels[case].append(y.astype(np.int32) if y.dtype.kind == "i" else y)
                with (folder / f"{i}-{part}").open("ab") as file:
                    np.ascontiguousarray(next(iter(x.values())), np.float32).tofile(file)
        for i, case in enumerate(cases):
            y = np.concatenate(labels[case])
            rows = np.memmap(folder / f"{i}-{part}", np.float32, mode="r").reshape(len(y), -1)
            made[case][part] = Features({"": rows}, y)
    return made
