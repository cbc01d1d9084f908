"""Graph classification (GC)."""

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.store import GraphStore
from same.nn.heads import GraphHead
from same.tasks.task import Array, Examples, GraphTask, share


class GraphClassification(GraphTask):
    """Tell the class of a graph. Support and target are different graphs, 60/40 at random.

    Args:
        store: the set, whose graphs have classes.
        linear: whether the head is to see what a linear probe sees.
    """

    name = "gc"
    kind = "classes"

    def __init__(self, store: GraphStore, *, linear: bool = False) -> None:
        self.classes, self.linear = len(store.graph_classes or ()), linear

    @classmethod
    def missing(cls, store: GraphStore) -> str | None:
        """Two graph classes are needed."""
        return None if len(store.graph_classes or ()) > 1 else "graphs of at least two classes"

    def head(self, width: int) -> nn.Module:
        """See `GraphHead`."""
        return GraphHead(width, self.classes, linear=self.linear)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """60 % of the graphs, at random, and the others."""
        return graph_examples(store, ids, rng)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All graphs."""
        return all_graphs(batch)

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """The mean of the node embeddings of each graph."""
        return examples.inputs.mean(h)

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy."""
        return F.cross_entropy(output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy."""
        return float((output.argmax(1) == examples.y).float().mean())


def graph_examples(store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """Support and target sets of whole graphs, 60/40 at random."""
    ids = rng.permutation(ids)
    first = int(share(np.array(len(ids)), 0.6))
    return all_graphs(store.cut(ids[:first])), all_graphs(store.cut(ids[first:]))


def all_graphs(batch: GraphBatch) -> Examples:
    """Every graph of a batch, with its label."""
    assert batch.graph_y is not None
    return Examples(batch, batch.graph_y)
