"""Protocols: the examples that probes are trained and scored on."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from same.episodes import PARTS, part_examples
from same.errors import InputError
from same.experiment import Experiment
from same.graphs.batch import Examples, GraphBatch
from same.graphs.flat import Array, pointers, ranges
from same.linear import Features
from same.metrics import scores
from same.tasks.link_prediction import LinkPrediction, numbered_pair
from same.tasks.task import GraphTask, share

Encode = Callable[[Any], Tensor]  # From a batch of graphs to node embeddings.
Protocol = Literal["paper", "released"]


class ReleasedLinks(LinkPrediction):
    """Link prediction as the authors' released code evaluates it: nothing is random and nothing is hidden.

    Positives are the last fifth of each graph's edges in the order of their nodes, negatives are the first pairs
    without an edge, and messages pass over all edges. So positives join nodes with high numbers and negatives nodes
    with low ones: if nodes are numbered by type, as in the paper's sets, the score measures that.
    """

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """The last edges and the first non-edges of each graph; nothing is drawn."""
        edge_ptr, starts = batch.edge_ptr.numpy(), batch.node_ptr.numpy()
        edges = batch.edges.numpy()
        m, n = np.diff(edge_ptr), np.diff(starts)
        count = np.minimum(share(m, 0.2), n * (n - 1) // 2 - m)
        last = edges[:, ranges(edge_ptr[1:] - count, count)]
        # Among the first (edges + count) pairs of a graph, at least `count` have no edge.
        width = np.minimum(m + count, n * (n - 1) // 2)
        graph = np.repeat(np.arange(len(n)), width)
        pairs = np.stack(numbered_pair(np.arange(len(graph)) - pointers(width)[graph], n[graph])) + starts[graph]
        free = ~np.isin(pairs[0] * batch.num_nodes + pairs[1], edges[0] * batch.num_nodes + edges[1])
        pairs, graph = pairs[:, free], graph[free]
        first = pairs[:, np.arange(len(graph)) - np.searchsorted(graph, graph) < count[graph]]
        y = torch.cat([torch.ones(last.shape[1]), torch.zeros(first.shape[1])])
        return Examples(batch, y, torch.from_numpy(np.concatenate([last, first], axis=1)))


LINKS: dict[Protocol, type[LinkPrediction]] = {"paper": LinkPrediction, "released": ReleasedLinks}
"""Link prediction under each protocol; under `paper`, held-out edges are drawn at random and carry no messages."""


class Case(NamedTuple):
    """A task under a protocol. The protocols differ in link prediction alone."""

    protocol: Protocol
    task: GraphTask

    def scores(self, y: Array, predicted: Array) -> dict[str, float]:
        """Scores by metric; the released code reports the accuracy of links first."""
        released = isinstance(self.task, ReleasedLinks)
        first = {"accuracy": float(np.mean((predicted > 0) == (y > 0)))} if released else {}
        return first | scores(self.task.kind, y, predicted)


CaseFeatures = dict[Case, dict[str, Features]]
"""Features and labels of each case by part of the split."""


def make_cases(tasks: Iterable[GraphTask], protocols: Sequence[Protocol]) -> list[Case]:
    """Link prediction under every protocol, and other tasks under the first."""
    if unknown := [name for name in protocols if name not in LINKS]:
        raise InputError(f"protocol: {unknown[0]!r} is not one of {', '.join(LINKS)}")
    cases = []
    for task in tasks:
        links = [Case(name, LINKS[name](task.pair)) for name in protocols] if isinstance(task, LinkPrediction) else []
        cases += links or [Case(protocols[0], task)]
    return cases


def probe_examples(experiment: Experiment, cases: Sequence[Case]) -> dict[Case, dict[str, Examples]]:
    """Examples of each case by part of the split; they depend on the set, the seed and the split alone."""
    config, store, split, tasks = experiment.config, experiment.store, experiment.split, [case.task for case in cases]
    drawn = {
        part: part_examples(store, getattr(split, part), tasks, part, seed=config.seed, split=config.split)
        for part in PARTS
    }
    return {case: {part: drawn[part][i][1] for part in PARTS} for i, case in enumerate(cases)}
