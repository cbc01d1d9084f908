"""Heads: from node embeddings to the outputs of a task (the paper's Appendix C). All give logits."""

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from same.nn.chain import ConcatenatedPairs, Linear, Op, SymmetricPairs, means, rows
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
    """A linear layer and ReLU on the nodes, their mean over each graph, and a linear layer."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.node, self.out = nn.Linear(width, width), nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples, outputs] for all graphs of the batch."""
        return self.out(examples.inputs.mean(F.relu(self.node(h))))

    def ops(self, name: str, examples: "Examples") -> list[Op]:
        """What `forward` consists of, for `same.nn.chain`."""
        return [Linear(f"{name}.node", relu=True), means(examples.inputs), Linear(f"{name}.out", relu=False)]


class PairHead(nn.Module):
    """A linear layer and ReLU on the nodes, then a linear layer on what a pair of them shows.

    Args:
        width: of the embeddings.
        pair: `concat`, the paper's [u, v], which a linear layer scores as f(u) + g(v); or `symmetric`,
            [|u − v|, u ⊙ v].
    """

    def __init__(self, width: int, pair: Pair = "symmetric") -> None:
        super().__init__()
        self.node, self.out, self.pair = nn.Linear(width, width), nn.Linear(2 * width, 1), pair

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples] for the pairs `examples.index` [2, examples]."""
        z = F.relu(self.node(h))
        return pair_scores(z, self.out.weight[0], examples.index, self.pair) + self.out.bias

    def ops(self, name: str, examples: "Examples") -> list[Op]:
        """What `forward` consists of, for `same.nn.chain`."""
        assert examples.index is not None
        kind = SymmetricPairs if self.pair == "symmetric" else ConcatenatedPairs
        return [Linear(f"{name}.node", relu=True), kind(f"{name}.out", examples.index, examples.inputs.num_nodes)]
