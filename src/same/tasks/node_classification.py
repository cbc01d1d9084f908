"""Node classification (NC)."""

import numpy as np

from same.graphs.examples import Examples
from same.graphs.flat import Array
from same.tasks.labelled import Classification, NodeLevel
from same.tasks.task import ranks


class NodeClassification(NodeLevel, Classification):
    """Predict the class of a node.

    Support and target are different nodes of the same graphs, 30/70: in each graph, one random node of each class in
    turn is support until there are 30 %. The loss is the cross-entropy, the score the accuracy, and a linear probe sees
    the embeddings as they are.

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
