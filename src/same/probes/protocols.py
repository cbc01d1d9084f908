"""Protocols: which examples a probe is trained and scored on."""

from typing import Literal, get_args

import numpy as np
import torch

from same.errors import InputError
from same.graphs.batch import GraphBatch, pointers, ranges
from same.graphs.splits import Split
from same.graphs.store import GraphStore
from same.seeding import stream
from same.tasks.link_prediction import numbered_pair
from same.tasks.task import Examples, GraphTask, share

Protocol = Literal["paper", "released"]
PARTS = ("train", "validation", "test")


def probe_examples(
    store: GraphStore, split: Split, tasks: list[GraphTask], *, seed: int, k: int, protocol: Protocol = "paper"
) -> dict[str, dict[str, Examples]]:
    """What probes see of each task, by task and part of the split.

    Held-out edges and negatives depend on the set, the seed and the split alone, so every model is scored on the same.
    Under `paper` they are drawn at random, and the held-out edges carry no messages. Under `released` they are those of
    the authors' code, see `released_links`.

    Args:
        store: the set.
        split: its graphs for training, validation and testing.
        tasks: what to probe.
        seed: of the run.
        k: which split it is.
        protocol: how link prediction is evaluated.
    """
    if protocol not in get_args(Protocol):
        raise InputError(f"protocol: {protocol!r} is not one of {', '.join(get_args(Protocol))}")
    found: dict[str, dict[str, Examples]] = {task.name: {} for task in tasks}
    for part in PARTS:
        for task, examples in part_examples(
            store, getattr(split, part), tasks, part, seed=seed, k=k, protocol=protocol
        ):
            found[task.name][part] = examples
    return found


def part_examples(
    store: GraphStore,
    ids: np.ndarray,
    tasks: list[GraphTask],
    part: str,
    *,
    seed: int,
    k: int,
    protocol: Protocol = "paper",
) -> list[tuple[GraphTask, Examples]]:
    """What probes see of each task in one part of a split: `train`, `validation` or `test`, which has these ids."""
    batch, found = store.cut(ids), []
    for task in tasks:
        # A stream for each task: what one task draws does not depend on which others are probed.
        rng = stream(seed, "probes", k, PARTS.index(part))
        released = protocol == "released" and task.kind == "links"
        found.append((task, released_links(batch) if released else task.examples(batch, rng)))
    return found


def released_links(batch: GraphBatch) -> Examples:
    """Links as the authors' released code evaluates them: nothing is random and nothing is hidden.

    Positives are the last fifth of each graph's edges in the order of their nodes, negatives the first pairs that are
    no edges, and messages pass over all edges. So positives join nodes with high numbers and negatives nodes with low
    ones: where nodes are numbered by type, as in the paper's sets, the score measures that.
    """
    edge_ptr, starts = batch.edge_ptr.numpy(), batch.node_ptr.numpy()
    edges = batch.edges.numpy()
    m, n = np.diff(edge_ptr), np.diff(starts)
    count = np.minimum(share(m, 0.2), n * (n - 1) // 2 - m)
    last = edges[:, ranges(edge_ptr[1:] - count, count)]
    # Among the first (edges + wanted) pairs of a graph there are enough that are no edges.
    width = np.minimum(m + count, n * (n - 1) // 2)
    graph = np.repeat(np.arange(len(n)), width)
    u, v = numbered_pair(np.arange(len(graph)) - pointers(width)[graph], n[graph])
    u, v = u + starts[graph], v + starts[graph]
    free = ~np.isin(u * batch.num_nodes + v, edges[0] * batch.num_nodes + edges[1])
    u, v, graph = u[free], v[free], graph[free]
    place = np.arange(len(graph)) - np.searchsorted(graph, graph)
    first = np.stack([u, v])[:, place < count[graph]]
    y = torch.cat([torch.ones(last.shape[1]), torch.zeros(first.shape[1])])
    return Examples(batch, y, torch.from_numpy(np.concatenate([last, first], axis=1)))
