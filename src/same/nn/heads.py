"""Heads: from node embeddings to the outputs of a task (the paper's Appendix C). All give logits."""

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from same.nn.chain import ConcatenatedPairs, Linear, Op, SymmetricPairs, means, rows, scaled
from same.nn.pairs import Pair, pair_scores

if TYPE_CHECKING:
    from same.tasks.task import Examples


class NodeHead(nn.Module):
    """One linear layer, shared by the nodes."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples, outputs] for the nodes `examples.index`, or for all."""
        return self.out(h if examples.index is None else h.index_select(0, examples.index))

    def ops(self, name: str, examples: "Examples") -> list[Op]:
        """What `forward` consists of, for `same.nn.chain`."""
        found: list[Op] = [Linear(f"{name}.out", relu=False)]
        return found if examples.index is None else [*found, rows(examples.index, examples.inputs.num_nodes)]


class GraphHead(nn.Module):
    """A linear layer and ReLU on the nodes, their mean over each graph, and a linear layer.

    Args:
        width: of the embeddings.
        outputs: how many numbers a graph gets.
        linear: whether to leave out the first layer.
    """

    def __init__(self, width: int, outputs: int, *, linear: bool = False) -> None:
        super().__init__()
        self.node = None if linear else nn.Linear(width, width)
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples, outputs] for all graphs of the batch."""
        return self.out(examples.inputs.mean(_hidden(self.node, h)))

    def ops(self, name: str, examples: "Examples") -> list[Op]:
        """What `forward` consists of, for `same.nn.chain`."""
        return [*_hidden_ops(self.node, name), means(examples.inputs), Linear(f"{name}.out", relu=False)]


class PairHead(nn.Module):
    """A linear layer and ReLU on the nodes, then a linear layer on what a pair of them shows.

    Args:
        width: of the embeddings.
        pair: `concat`, the paper's [u, v], which a linear layer scores as f(u) + g(v); or `symmetric`,
            [|u − v|, u ⊙ v].
        linear: whether to leave out the first layer. What pairs of rows of length 1 show is small, u ⊙ v about 1 in
            `width`, and a layer would take long to grow to it: rows are scaled to the length √width instead.
    """

    def __init__(self, width: int, pair: Pair = "symmetric", *, linear: bool = False) -> None:
        super().__init__()
        self.node = None if linear else nn.Linear(width, width)
        self.out, self.pair, self.scale = nn.Linear(2 * width, 1), pair, width**0.5

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples] for the pairs `examples.index` [2, examples]."""
        h = h * self.scale if self.node is None else _hidden(self.node, h)
        return pair_scores(h, self.out.weight[0], examples.index, self.pair) + self.out.bias

    def ops(self, name: str, examples: "Examples") -> list[Op]:
        """What `forward` consists of, for `same.nn.chain`."""
        assert examples.index is not None
        kind = SymmetricPairs if self.pair == "symmetric" else ConcatenatedPairs
        first = [scaled(self.scale)] if self.node is None else _hidden_ops(self.node, name)
        return [*first, kind(f"{name}.out", examples.index, examples.inputs.num_nodes)]


def _hidden(layer: nn.Linear | None, h: Tensor) -> Tensor:
    return h if layer is None else F.relu(layer(h))


def _hidden_ops(layer: nn.Linear | None, name: str) -> list[Op]:
    return [] if layer is None else [Linear(f"{name}.node", relu=True)]
