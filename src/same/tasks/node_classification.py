"""Node classification (NC)."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.store import GraphStore
from same.nn.heads import NodeHead
from same.tasks.task import Array, Examples, GraphTask, loss_of, ranks, share


class NodeClassification(GraphTask):
    """Tell the class of a node. Support and target are different nodes of the same graphs, 30/70."""

    name = "nc"
    kind = "classes"

    def __init__(self, store: GraphStore) -> None:
        self.classes = len(store.node_classes or ())

    @classmethod
    def missing(cls, store: GraphStore) -> str | None:
        """Two node classes are needed."""
        return None if len(store.node_classes or ()) > 1 else "nodes of at least two classes"

    def head(self, width: int) -> nn.Module:
        """See `NodeHead`."""
        return NodeHead(width, self.classes)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """In each graph, one random node of each class in turn until there are 30 %; the others are target."""
        batch = store.cut(ids)
        assert batch.node_y is not None
        graph, classes = batch.batch.numpy(), batch.node_y.numpy()
        return node_examples(batch, _rounds(graph, classes, rng), rng)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All nodes."""
        return all_nodes(batch)

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """The embeddings as they are."""
        return h if examples.index is None else h[examples.index]

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy."""
        return loss_of(F.cross_entropy, output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy."""
        return float((output.argmax(1) == examples.y).float().mean()) if len(examples.y) else 0.0


def all_nodes(batch: GraphBatch) -> Examples:
    """Every node of a batch, with its label."""
    assert batch.node_y is not None
    return Examples(batch, batch.node_y)


def _rounds(graph: Array, classes: Array, rng: np.random.Generator) -> Array:
    """[n] in which round each node would be drawn, if each round drew one node of each class of its graph."""
    group = graph * (classes.max(initial=0) + 1) + classes
    order = np.argsort(group, kind="stable")
    rounds = np.empty(len(group), np.int64)
    rounds[order] = ranks(group[order], rng)
    return rounds


def node_examples(batch: GraphBatch, rounds: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """Support and target sets of nodes: 30 % of each graph, those of the first rounds, and the others.

    Args:
        batch: the graphs.
        rounds: [n] nodes of earlier rounds come first; within a round the order is random.
        rng: the source of that order.
    """
    assert batch.node_y is not None
    graph, starts = batch.batch.numpy(), batch.node_ptr.numpy()
    order = np.lexsort((rng.random(len(graph)), rounds, graph))
    place = np.arange(len(graph)) - starts[graph]
    chosen = np.zeros(len(graph), bool)
    chosen[order] = place < share(np.diff(starts), 0.3)[graph]
    support, target = torch.from_numpy(np.flatnonzero(chosen)), torch.from_numpy(np.flatnonzero(~chosen))
    return Examples(batch, batch.node_y[support], support), Examples(batch, batch.node_y[target], target)
