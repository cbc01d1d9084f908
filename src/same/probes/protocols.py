"""Protocols: the examples that probes are trained and scored on."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch

from same.episodes import PARTS
from same.errors import InputError
from same.graphs.batch import GraphBatch
from same.graphs.examples import Examples
from same.graphs.flat import pointers, ranges
from same.graphs.splits import Split
from same.graphs.store import GraphStore
from same.metrics import scores
from same.seeding import stream
from same.tasks.link_prediction import numbered_pair
from same.tasks.task import GraphTask, share

Array = np.ndarray
Protocol = Literal["paper", "released"]


class Case(NamedTuple):
    """A task under a protocol. The protocols differ in link prediction alone.

    Under `paper`, held-out edges and negatives are drawn at random, and held-out edges carry no messages. Under
    `released` they are those of the authors' code, see `released_links`.
    """

    protocol: Protocol
    task: GraphTask

    @property
    def released(self) -> bool:
        """Whether the examples are those of the authors' code."""
        return self.protocol == "released" and self.task.kind == "links"

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All examples of a batch of whole graphs."""
        return released_links(batch) if self.released else self.task.examples(batch, rng)

    def features(self, examples: Examples) -> tuple[Array, Array]:
        """[n, d] features and [n] labels of examples with embeddings."""
        assert examples.embeddings is not None
        return self.task.features(examples.embeddings, examples).numpy(), examples.y.numpy()

    def scores(self, y: Array, predicted: Array) -> dict[str, float]:
        """Scores by metric; the released code reports the accuracy of links first."""
        first = {"accuracy": float(np.mean((predicted > 0) == (y > 0)))} if self.released else {}
        return first | scores(self.task.kind, y, predicted)


def make_cases(tasks: Iterable[GraphTask], protocols: Sequence[Protocol]) -> list[Case]:
    """Link prediction under every protocol, and other tasks under the first."""
    for protocol in protocols:
        if protocol not in get_args(Protocol):
            raise InputError(f"protocol: {protocol!r} is not one of {', '.join(get_args(Protocol))}")
    return [Case(name, task) for task in tasks for name in (protocols if task.kind == "links" else protocols[:1])]


def probe_examples(
    store: GraphStore, split: Split, cases: Sequence[Case], *, seed: int, k: int
) -> dict[Case, dict[str, Examples]]:
    """Examples of each case by part of the split. They depend on the set, the seed and the split alone.

    Args:
        store: the set.
        split: its training, validation and test graphs.
        cases: tasks and protocols.
        seed: seed of the run.
        k: number of the split.
    """
    examples: dict[Case, dict[str, Examples]] = {case: {} for case in cases}
    for number, part in enumerate(PARTS):
        batch = store.cut(getattr(split, part))
        for case in cases:
            # Each task starts the stream anew: what it draws does not depend on the other tasks.
            examples[case][part] = case.examples(batch, stream(seed, "probes", k, number))
    return examples


def released_links(batch: GraphBatch) -> Examples:
    """Links as the authors' released code evaluates them: nothing is random and nothing is hidden.

    Positives are the last fifth of each graph's edges in the order of their nodes, negatives are the first pairs
    without an edge, and messages pass over all edges. So positives join nodes with high numbers and negatives nodes
    with low ones: if nodes are numbered by type, as in the paper's sets, the score measures that.
    """
    edge_ptr, starts = batch.edge_ptr.numpy(), batch.node_ptr.numpy()
    edges = batch.edges.numpy()
    m, n = np.diff(edge_ptr), np.diff(starts)
    count = np.minimum(share(m, 0.2), n * (n - 1) // 2 - m)
    last = edges[:, ranges(edge_ptr[1:] - count, count)]
    # Among the first (edges + count) pairs of a graph, at least `count` have no edge.
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
