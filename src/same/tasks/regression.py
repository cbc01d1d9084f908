"""Regression on graphs and on nodes. Each task is one class; nothing else in the package knows of them."""

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.store import GraphStore
from same.nn.heads import GraphHead, NodeHead
from same.tasks.graph_classification import all_graphs, graph_examples
from same.tasks.node_classification import all_nodes, node_examples
from same.tasks.task import Array, Examples, GraphTask


class _Regression(GraphTask):
    kind = "numbers"

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Mean squared error."""
        return F.mse_loss(output, examples.y.reshape(output.shape))

    def score(self, output: Tensor, examples: Examples) -> float:
        """R², the mean over the targets; 0, that of guessing the mean, where there is no spread to explain."""
        from sklearn.metrics import r2_score

        if len(examples.y) < 2:
            return 0.0
        return float(r2_score(examples.y.cpu().numpy(), output.cpu().numpy()))


class GraphRegression(_Regression):
    """Tell numbers that belong to a graph. Support and target are different graphs, 60/40 at random.

    Args:
        store: the set, whose graphs have targets.
        linear: whether the head is to see what a linear probe sees.
    """

    name = "graph_regression"

    def __init__(self, store: GraphStore, *, linear: bool = False) -> None:
        self.targets, self.linear = _targets(store.graph_y), linear

    @classmethod
    def missing(cls, store: GraphStore) -> str | None:
        """Float targets of the graphs are needed."""
        return None if _targets(store.graph_y) else "targets of graphs (floats)"

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """The mean of the node embeddings of each graph."""
        return examples.inputs.mean(h)

    def head(self, width: int) -> nn.Module:
        """See `GraphHead`."""
        return GraphHead(width, self.targets, linear=self.linear)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """60 % of the graphs, at random, and the others."""
        return graph_examples(store, ids, rng)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All graphs."""
        return all_graphs(batch)


class NodeRegression(_Regression):
    """Tell numbers that belong to a node. Support and target are different nodes of the same graphs, 30/70."""

    name = "node_regression"

    def __init__(self, store: GraphStore) -> None:
        self.targets = _targets(store.node_y)

    @classmethod
    def missing(cls, store: GraphStore) -> str | None:
        """Float targets of the nodes are needed."""
        return None if _targets(store.node_y) else "targets of nodes (floats)"

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """The embeddings as they are."""
        return h if examples.index is None else h[examples.index]

    def head(self, width: int) -> nn.Module:
        """See `NodeHead`."""
        return NodeHead(width, self.targets)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """In each graph, 30 % of the nodes, at random, and the others."""
        batch = store.cut(ids)
        return node_examples(batch, np.zeros(batch.num_nodes, np.int64), rng)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All nodes."""
        return all_nodes(batch)


def _targets(y: Array | None) -> int:
    """How many targets each row has; 0 where there are none or where they are classes."""
    return 0 if y is None or y.dtype.kind != "f" else y.reshape(len(y), -1).shape[1]
