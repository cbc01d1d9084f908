"""Probes of sets that do not fit into memory: features go to disk block by block, and the SVM reads them from there.

What stays in memory grows with the number of examples, by a few bytes each, and not with the width of the embeddings.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from same.config import Config
from same.episodes import embed
from same.errors import InputError
from same.graphs.store import GraphStore
from same.probes.metrics import majority, scores
from same.probes.protocols import PARTS
from same.probes.svm import LinearSVM
from same.runs import Setting
from same.seeding import stream
from same.tasks import GraphTask

log = logging.getLogger("same")

Array = np.ndarray
Told = tuple[str, str, str, dict[str, float]]
"""Model, probe, task and scores."""

LARGE_BYTES = 2**30
"""How much memory the embeddings of a set may take before they go to disk."""

_GRAPHS = 512


def is_large(store: GraphStore, width: int) -> bool:
    """Whether the embeddings of a set are too much for memory.

    >>> from same.graphs import planted
    >>> is_large(planted(), 256)
    False
    """
    return store.num_nodes * width * 4 > LARGE_BYTES


def probe_large(
    config: Config,
    setting: Setting,
    tasks: Sequence[GraphTask],
    encoders: Mapping[str, Callable[[Any], Tensor]],
    most_graphs: int | None = None,
    *,
    floor: bool = False,
) -> list[Told]:
    """Scores of linear probes of several encoders, as `Probing.rows` has them but for which edges are held out.

    Args:
        config: of the run.
        setting: the graphs and their split.
        tasks: what to probe.
        encoders: by the names of their models.
        most_graphs: of each part of the split, at random; all by default.
        floor: whether to add the majority.
    """
    for task in tasks:
        if task.kind == "numbers":
            raise InputError(f"tasks: {task.name} tells numbers: no probe for a set of this size; leave it out")
    ids = {part: _some(getattr(setting.split, part), part, config, most_graphs) for part in ("train", "test")}
    rows: list[Told] = []
    for model, encode in encoders.items():
        with tempfile.TemporaryDirectory(prefix="same-probe-") as folder:
            known = {
                part: write_features(setting.store, ids[part], tasks, part, encode, Path(folder), config)
                for part in ids
            }
            if floor and not rows:
                for task in tasks:
                    y, y_test = (known[part][task.name][1] for part in ids)
                    rows.append(
                        ("majority", "none", task.name, scores(task.kind, y_test, majority(task.kind, y, y_test)))
                    )
            for task in tasks:
                (x, y), (x_test, y_test) = (known[part][task.name] for part in ("train", "test"))
                svm = LinearSVM().fit(x, y)
                told = svm.decision_function(x_test) if task.kind == "links" else svm.predict(x_test)
                rows.append((model, "linear", task.name, scores(task.kind, y_test, told)))
                log.info("%s: probed for %s (%d examples)", model, task.name, len(x))
    return rows


def _some(ids: Array, part: str, config: Config, most: int | None) -> Array:
    if most is None or len(ids) <= most:
        return ids
    rng = stream(config.seed, "probes", config.split, PARTS.index(part), 2**31)
    return np.sort(rng.permutation(ids)[:most])


def write_features(
    store: GraphStore,
    ids: Array,
    tasks: Sequence[GraphTask],
    part: str,
    encode: Callable[[Any], Tensor],
    folder: Path,
    config: Config,
) -> dict[str, tuple[Array, Array]]:
    """The features and labels of what probes see of some graphs, memory-mapped, by task.

    Args:
        store: the set.
        ids: which graphs.
        tasks: what is probed.
        part: `train`, `validation` or `test`.
        encode: from a batch to embeddings.
        folder: where the files go.
        config: has the seed and the split.
    """
    shapes: dict[str, tuple[int, int]] = {}
    dtypes: dict[str, str] = {}
    for number, start in enumerate(range(0, len(ids), _GRAPHS)):
        batch, examples = store.cut(ids[start : start + _GRAPHS]), []
        for task in tasks:
            rng = stream(config.seed, "probes", config.split, PARTS.index(part), number)
            examples.append(task.examples(batch, rng))
        with torch.no_grad():
            for task, known in zip(tasks, embed(encode, examples), strict=True):
                assert known.embeddings is not None
                x = np.ascontiguousarray(task.features(known.embeddings, known).numpy())
                y = known.y.numpy().astype(np.int32)
                for name, array in ((f"{task.name}-{part}.x", x), (f"{task.name}-{part}.y", y)):
                    with (folder / name).open("ab") as file:
                        array.tofile(file)
                rows, _ = shapes.get(task.name, (0, 0))
                shapes[task.name], dtypes[task.name] = (rows + len(x), x.shape[1]), x.dtype.str
    return {
        name: (
            np.memmap(folder / f"{name}-{part}.x", dtypes[name], mode="r", shape=shape),
            np.fromfile(folder / f"{name}-{part}.y", np.int32),
        )
        for name, shape in shapes.items()
    }
