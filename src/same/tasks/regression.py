"""Graph regression and node regression."""

import torch.nn.functional as F
from torch import Tensor

from same.graphs.batch import Examples
from same.metrics import scores
from same.tasks.labelled import GraphLevel, LabelTask, NodeLevel


class Regression(LabelTask):
    """A task that predicts one or more numbers. The loss is the mean squared error, the score R²."""

    kind = "numbers"

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Mean squared error."""
        return F.mse_loss(output, examples.y.reshape(output.shape))

    def score(self, output: Tensor, examples: Examples) -> float:
        """R², averaged over the targets; 0, as for the mean, where there is no spread to explain."""
        if len(examples.y) < 2:
            return 0.0
        return scores("numbers", examples.y.cpu().numpy(), output.cpu().numpy())["r2"]


class GraphRegression(GraphLevel, Regression):
    """Predict numbers that belong to a graph. Support and target are different graphs, 60/40 at random.

    Args:
        column: name of the column of numbers; `y` by default.
        linear: leave out the hidden layer of the head.
        pool: pooling of the nodes of a graph, see `same.nn.pool_nodes`.
    """

    name = "graph_regression"


class NodeRegression(NodeLevel, Regression):
    """Predict numbers that belong to a node. Support and target are different nodes of the same graphs, 30/70.

    Args:
        column: name of the column of numbers; by default `node_y`, or else a node-level `y`.
    """

    name = "node_regression"
