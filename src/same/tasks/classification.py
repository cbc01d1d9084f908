"""Graph classification (GC) and node classification (NC)."""

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from same.graphs.batch import Examples
from same.graphs.flat import Array
from same.tasks.labelled import GraphLevel, LabelTask, NodeLevel
from same.tasks.task import loss_of, ranks


class Classification(LabelTask):
    """A task that predicts one of several classes. The loss is the cross-entropy, the score the accuracy."""

    kind = "classes"

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy."""
        return loss_of(F.cross_entropy, output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy."""
        return float((output.argmax(1) == examples.y).float().mean()) if len(examples.y) else 0.0


class GraphClassification(GraphLevel, Classification):
    """Predict the class of a graph. Support and target are different graphs, 60/40 at random.

    Args:
        column: name of the column of classes; `y` by default.
        linear: leave out the hidden layer of the head.
        pool: pooling of the nodes of a graph, see `same.nn.pool_nodes`.
    """

    name = "gc"


class NodeClassification(NodeLevel, Classification):
    """Predict the class of a node. Support and target are different nodes of the same graphs, 30/70.

    In each graph, one random node of each class in turn is support until there are 30 %.

    Args:
        column: name of the column of classes; by default `node_y`, or else a node-level `y`.
    """

    name = "nc"

    def rounds(self, examples: Examples, rng: np.random.Generator) -> Array:
        """[n] round of each node, if every round draws one node of each class of its graph."""
        graph, classes = examples.inputs.batch.numpy(), examples.y.numpy()
        group = graph * (classes.max(initial=0) + 1) + classes
        order = np.argsort(group, kind="stable")
        rounds = np.empty(len(group), np.int64)
        rounds[order] = ranks(group[order], rng)
        return rounds
