"""Pair features of nodes, and linear scores of them without storing the features."""

from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from same.errors import InputError

Pair = Literal["concat", "symmetric"]


def pair_features(h: Tensor, pairs: Tensor | None, pair: Pair) -> Tensor:
    """Return the [p, 2w] features of pairs of rows of `h`: [u, v] or [|u − v|, u ⊙ v].

    Args:
        h: [n, w] rows.
        pairs: [2, p] indices of rows.
        pair: kind of features.

    >>> h = torch.tensor([[1.0], [3.0]])
    >>> pair_features(h, torch.tensor([[0], [1]]), "symmetric")
    tensor([[2., 3.]])
    """
    u, v = _ends(h, _check(pairs, pair))
    return torch.cat([u, v] if pair == "concat" else [(u - v).abs(), u * v], dim=1)


def pair_scores(h: Tensor, weight: Tensor, pairs: Tensor | None, pair: Pair) -> Tensor:
    """Return the [p] products `pair_features(h, pairs, pair) @ weight`, from fewer and smaller arrays.

    [u, v] · [a, b] is (H a)_u + (H b)_v, which needs no array of pairs. For [|u − v|, u ⊙ v] the derivatives are sums
    over the pairs of a node, so the signs of u − v are the only array of pairs that is kept.

    >>> h = torch.tensor([[1.0], [3.0]])
    >>> pair_scores(h, torch.tensor([10.0, 1.0]), torch.tensor([[0], [1]]), "symmetric")
    tensor([23.])
    """
    pairs, weight = _check(pairs, pair), weight.view(2, -1)
    if pair == "symmetric":
        return _Symmetric.apply(h, weight, pairs)
    first, second = (h @ weight.T).unbind(1)
    return first.index_select(0, pairs[0]) + second.index_select(0, pairs[1])


def check_pairs(pairs: Any, node_ptr: np.ndarray) -> np.ndarray:
    """Return [2, p] pairs of nodes as an array, after checking that both ends are nodes of the same graph.

    >>> check_pairs([[0], [2]], np.array([0, 2, 4]))
    Traceback (most recent call last):
    same.errors.InputError: pairs: the nodes 0 and 2 are in different graphs
    """
    array, nodes = np.asarray(pairs), int(node_ptr[-1])
    if array.ndim != 2 or len(array) != 2 or array.dtype.kind not in "iu":
        raise InputError(f"pairs: have the shape {array.shape}, expected whole numbers, (2, p)")
    if (outside := array[(array < 0) | (array >= nodes)]).size:
        raise InputError(f"pairs: there is no node {outside[0]}; the graphs have the nodes 0..{nodes - 1}")
    graph = np.searchsorted(node_ptr, array, side="right")
    if (graph[0] != graph[1]).any():
        u, v = array[:, np.argmax(graph[0] != graph[1])]
        raise InputError(f"pairs: the nodes {u} and {v} are in different graphs")
    return array.astype(np.int64)


def _check(pairs: Tensor | None, pair: str) -> Tensor:
    if pair not in get_args(Pair):
        raise InputError(f"pair: {pair!r} is not one of {', '.join(get_args(Pair))}")
    if pairs is None:
        raise InputError("pair features need pairs")
    return pairs


class _Symmetric(torch.autograd.Function):
    """a · |u − v| + b · (u ⊙ v) for the weights [a, b]."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, pairs: Tensor) -> Tensor:
        u, v = _ends(h, pairs)
        scores = (u * v) @ weight[1]
        u.sub_(v)
        if any(ctx.needs_input_grad):
            ctx.sign, ctx.by_node = u.sign(), _ByNode(pairs, len(h))
            ctx.save_for_backward(h, weight)
        return scores.addmv_(u.abs_(), weight[0])

    @staticmethod
    def backward(ctx: Any, e: Tensor) -> tuple[Tensor, Tensor, None]:
        return *_Gradient.apply(e, *ctx.saved_tensors, ctx.sign, ctx.by_node), None


class _Gradient(torch.autograd.Function):
    """∂h = a ⊙ M + b ⊙ N, ∂a = Σ h ⊙ M, ∂b = ½ Σ h ⊙ N, with sums over nodes.

    M and N are sums over the pairs of a node: e times the sign of its row minus the other row, and e times the other
    row.
    """

    @staticmethod
    def forward(
        ctx: Any, e: Tensor, h: Tensor, weight: Tensor, sign: Tensor, by_node: "_ByNode"
    ) -> tuple[Tensor, Tensor]:
        m, n = by_node.of_pairs(e) @ sign, by_node.of_nodes(e) @ h
        ctx.sign, ctx.by_node = sign, by_node
        ctx.save_for_backward(e, h, weight, m, n)
        by_h = (m * weight[0]).addcmul_(n, weight[1])
        return by_h, torch.stack([(h * m).sum(0), (h * n).sum(0).div_(2)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """For φ = p · ∂h + q · ∂[a, b]; the derivative by e is that of the scores along (p, q)."""
        e, h, weight, m, n = ctx.saved_tensors
        (a, b), (qa, qb) = weight, q
        u, v = _ends((p * a).addcmul_(h, qa), ctx.by_node.pairs)
        by_e = u.sub_(v).mul_(ctx.sign).sum(1) + ctx.by_node.products((p * b).addcmul_(h, qb, value=0.5), h)
        by_h = (ctx.by_node.of_nodes(e) @ p).mul_(b).addcmul_(m, qa).addcmul_(n, qb)
        return by_e, by_h, torch.stack([(p * m).sum(0), (p * n).sum(0)]), None, None


class _ByNode:
    """Pairs sorted by node, once for each end: the rows of sparse matrices."""

    def __init__(self, pairs: Tensor, nodes: int) -> None:
        self.pairs, ends = pairs, pairs.reshape(-1)
        self.order, self.shape = ends.argsort(), (nodes, pairs.shape[1])
        self.pair = self.order % pairs.shape[1]
        self.other = pairs.flip(0).reshape(-1)[self.order]
        self.start = torch.cat([ends.new_zeros(1), ends.bincount(minlength=nodes).cumsum(0)])

    def of_pairs(self, e: Tensor) -> Tensor:
        """[n, p] e where a node is the first end of a pair, −e where it is the second."""
        return self._csr(self.pair, torch.cat([e, -e])[self.order], self.shape)

    def of_nodes(self, e: Tensor) -> Tensor:
        """[n, n] e where two nodes are a pair."""
        return self._csr(self.other, e[self.pair], (self.shape[0], self.shape[0]))

    def products(self, r: Tensor, h: Tensor) -> Tensor:
        """[p] r_u · h_v + r_v · h_u."""
        n, p = self.shape
        pattern = self._csr(self.other, r.new_zeros(2 * p), (n, n))
        values = torch.sparse.sampled_addmm(pattern, r, h.T).values()
        return torch.empty_like(values).scatter_(0, self.order, values).view(2, p).sum(0)

    def _csr(self, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
        return torch.sparse_csr_tensor(self.start, columns, values, shape, check_invariants=False)


def _ends(h: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of both ends of pairs [2, p]."""
    return h.index_select(0, pairs[0]), h.index_select(0, pairs[1])
