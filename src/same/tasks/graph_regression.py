"""Graph regression."""

from same.tasks.labelled import GraphLevel, Regression


class GraphRegression(GraphLevel, Regression):
    """Predict numbers that belong to a graph.

    Support and target are different graphs, 60/40 at random. The loss is the mean squared error, the score R², and a
    linear probe sees the mean of the node embeddings of a graph.

    Args:
        column: name of the column of numbers.
        linear: leave out the hidden layer of the head.
    """

    name = "graph_regression"
