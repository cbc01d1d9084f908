"""Graph classification (GC)."""

from same.tasks.labelled import Classification, GraphLevel


class GraphClassification(GraphLevel, Classification):
    """Predict the class of a graph.

    Support and target are different graphs, 60/40 at random. The loss is the cross-entropy, the score the accuracy, and
    a linear probe sees the mean of the node embeddings of a graph.

    Args:
        column: name of the column of classes; `y` by default.
        linear: leave out the hidden layer of the head.
    """

    name = "gc"
