"""Heads: from node embeddings to the outputs of a task (the paper's Appendix C). All give logits."""

from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from same.errors import InputError

if TYPE_CHECKING:
    from same.tasks.task import Examples

Pair = Literal["concat", "symmetric"]


class NodeHead(nn.Module):
    """One linear layer, shared by the nodes."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples, outputs] for the nodes `examples.index`, or for all."""
        return self.out(h if examples.index is None else h[examples.index])


class GraphHead(nn.Module):
    """A linear layer and ReLU on the nodes, their mean over each graph, and a linear layer."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.node, self.out = nn.Linear(width, width), nn.Linear(width, outputs)

    def forward(self, h: Tensor, examples: "Examples") -> Tensor:
        """[examples, outputs] for all graphs of the batch."""
        return self.out(examples.inputs.mean(F.relu(self.node(h))))


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
        return self.out(pair_features(F.relu(self.node(h)), examples.index, self.pair))[:, 0]


def pair_features(h: Tensor, pairs: "Tensor | None", pair: Pair) -> Tensor:
    """[p, 2w] what pairs of rows of `h` [n, w] show: [u, v] or [|u − v|, u ⊙ v].

    >>> h = torch.tensor([[1.0], [3.0]])
    >>> pair_features(h, torch.tensor([[0], [1]]), "symmetric")
    tensor([[2., 3.]])
    """
    if pair not in get_args(Pair):
        raise InputError(f"pair: {pair!r} is not one of {', '.join(get_args(Pair))}")
    if pairs is None:
        raise InputError("pair features need pairs")
    u, v = h[pairs[0]], h[pairs[1]]
    return torch.cat([u, v] if pair == "concat" else [(u - v).abs(), u * v], dim=1)
