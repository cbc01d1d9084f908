"""Heads: from node embeddings to the outputs of a task (the paper's Appendix C). All return logits."""

import torch.nn.functional as F
from torch import Tensor, nn

from same.graphs.batch import Examples
from same.nn.pairs import Pair, pair_scores
from same.nn.pooling import pool_nodes, pooled_width


class NodeHead(nn.Module):
    """One linear layer on the nodes.

    Args:
        width: width of the embeddings.
        outputs: number of outputs per node.
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: Examples) -> Tensor:
        """Return [examples, outputs] for the nodes `examples.index`, or for all nodes."""
        return self.out(h if examples.index is None else h.index_select(0, examples.index))


class GraphHead(nn.Module):
    """A linear layer and ReLU on the nodes, a pooling of each graph, the mean by default, and a linear layer.

    Args:
        width: width of the embeddings.
        outputs: number of outputs per graph.
        linear: whether to leave out the first layer.
        pool: pooling of the nodes, see `pool_nodes`.
    """

    def __init__(self, width: int, outputs: int, *, linear: bool = False, pool: str = "mean") -> None:
        super().__init__()
        self.node = None if linear else nn.Linear(width, width)
        self.out, self.pool = nn.Linear(pooled_width(width, pool), outputs), pool

    def forward(self, h: Tensor, examples: Examples) -> Tensor:
        """Return [graphs, outputs] for all graphs of the batch."""
        return self.out(pool_nodes(examples.inputs, _hidden(self.node, h), self.pool))


class PairHead(nn.Module):
    """A linear layer and ReLU on the nodes, then a linear layer on pair features.

    Args:
        width: width of the embeddings.
        pair: pair features: `concat`, the paper's [u, v], which a linear layer scores as f(u) + g(v); or `symmetric`,
            [|u − v|, u ⊙ v].
        linear: whether to leave out the first layer. The products of rows of length 1 are small, about 1 / `width`,
            and the last layer would take long to grow to them: rows are scaled to length √width instead.
    """

    def __init__(self, width: int, pair: Pair = "symmetric", *, linear: bool = False) -> None:
        super().__init__()
        self.node = None if linear else nn.Linear(width, width)
        self.out, self.pair, self.scale = nn.Linear(2 * width, 1), pair, width**0.5

    def forward(self, h: Tensor, examples: Examples) -> Tensor:
        """Return [pairs] for the pairs `examples.index` [2, pairs]."""
        h = h * self.scale if self.node is None else _hidden(self.node, h)
        return pair_scores(h, self.out.weight[0], examples.index, self.pair) + self.out.bias


def _hidden(layer: nn.Linear | None, h: Tensor) -> Tensor:
    return h if layer is None else F.relu(layer(h))
