"""Node regression."""

from same.tasks.labelled import NodeLevel, Regression


class NodeRegression(NodeLevel, Regression):
    """Predict numbers that belong to a node.

    Support and target are different nodes of the same graphs, 30/70 at random. The loss is the mean squared error, the
    score R², and a linear probe sees the embeddings as they are.

    Args:
        column: name of the column of numbers; by default `node_y`, or else a node-level `y`.
    """

    name = "node_regression"
