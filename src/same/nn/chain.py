"""Derivatives written out: a loss as a chain of operations, its gradient, and the product of its Hessian with a vector.

Autograd finds the outer gradient of an episode by differentiating the graph of the inner gradient. For operations this
small that takes longer than the arithmetic. Here every operation knows its own derivatives:

    forward   y = f(x; p)
    backward  the gradients with respect to x and p, given that with respect to y
    tangent   ẏ, how y moves when x and p move along ẋ and v
    turned    how the gradients move then, given how the one with respect to y moves

The first two give a gradient, all four the product of the Hessian with a vector ("forward over reverse", Pearlmutter
1994). What an operation keeps between them is in a dictionary of its own for every run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from same.graphs.batch import GraphBatch
from same.nn.norm import EPSILON, row_dot
from same.nn.pairs import ByNode, ends

Params = Mapping[str, Tensor]
Gradients = dict[str, Tensor]
Kept = dict[str, Any]


class Op(Protocol):
    """An operation; see the module."""

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """y."""

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """The gradient with respect to x, if it is needed; those with respect to parameters go into a dictionary."""

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """ẏ, or None where nothing moves."""

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """The movement of what `backward` gave."""


class Chain:
    """A loss as a function of parameters and an input: operations one after the other, the last one a loss.

    Args:
        ops: the operations.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops

    def forward(self, p: Params, x: Any) -> tuple[Tensor, list[Kept]]:
        """The loss, and what the other functions need."""
        kept: list[Kept] = [{} for _ in self.ops]
        for op, own in zip(self.ops, kept, strict=True):
            x = op.forward(p, x, own)
        return x, kept

    def gradient(self, p: Params, kept: list[Kept]) -> Gradients:
        """∇L, with respect to the parameters."""
        found: Gradients = {}
        g: Any = None
        for i in reversed(range(len(self.ops))):
            g = self.ops[i].backward(p, g, kept[i], found, i > 0)
        return found

    def curved(self, p: Params, v: Params, kept: list[Kept]) -> Gradients:
        """∇(v · ∇L), the Hessian times v; after `gradient`."""
        dx: Tensor | None = None
        for op, own in zip(self.ops, kept, strict=True):
            dx = op.tangent(p, v, dx, own)
        found: Gradients = {}
        dg: Any = None
        for i in reversed(range(len(self.ops))):
            dg = self.ops[i].turned(p, v, dg, kept[i], found, i > 0)
        return found


class Convolution:
    """norm(ReLU(Â H W + b) + H), as `same.nn.Encoder` has it with graph convolutions.

    Args:
        name: of the layer; its parameters are `name.weight` and `name.bias`.
        batch: the graphs.
        first: whether H is the batch's input, on which Â has been multiplied already.
        residual: whether to add H.
        unit_norm: whether to normalise.
    """

    def __init__(self, name: str, batch: GraphBatch, *, first: bool, residual: bool, unit_norm: bool) -> None:
        self.weight, self.bias, self.batch = f"{name}.weight", f"{name}.bias", batch
        self.first, self.residual, self.unit_norm = first, residual, unit_norm

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        h = self.batch.smoothed if self.first else self.batch.adjacency @ x
        z = (h @ p[self.weight]).add_(p[self.bias]).relu_()
        kept |= {"h": h, "z": z}
        s = z + x if self.residual else z
        if not self.unit_norm:
            return s
        r = torch.linalg.vector_norm(s, dim=1, keepdim=True).square_().add_(EPSILON).rsqrt_()
        kept["y"], kept["r"] = (s.mul_(r) if self.residual else s * r), r
        return kept["y"]

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        if self.unit_norm:
            kept["g"], kept["yg"] = g, row_dot(kept["y"], g)
            g = kept["gs"] = torch.addcmul(g, kept["y"], kept["yg"], value=-1).mul_(kept["r"])
        ga = kept["ga"] = _where_positive(g, kept["z"])
        into[self.weight], into[self.bias] = kept["h"].T @ ga, ga.sum(0)
        if not need_x:
            return None
        gx = self.batch.adjacency @ (ga @ p[self.weight].T)
        return gx.add_(g) if self.residual else gx

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        da = (kept["h"] @ v[self.weight]).add_(v[self.bias])
        kept["dh"] = None
        if dx is not None:
            kept["dh"] = self.batch.adjacency @ dx
            da.addmm_(kept["dh"], p[self.weight])
        ds = _where_positive(da, kept["z"])
        if self.residual and dx is not None:
            ds.add_(dx)
        if not self.unit_norm:
            return ds
        kept["ys"] = row_dot(kept["y"], ds)
        kept["dy"] = ds.addcmul_(kept["y"], kept["ys"], value=-1).mul_(kept["r"])
        return kept["dy"]

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        if self.unit_norm:
            y, dy, r = kept["y"], kept["dy"], kept["r"]
            along = row_dot(dy, kept["g"]).add_(row_dot(y, dg))
            dg = torch.addcmul(dg, dy, kept["yg"], value=-1).addcmul_(y, along, value=-1)
            dg.addcmul_(kept["gs"], kept["ys"], value=-1).mul_(r)  # ṙ / r = − r (y · ṡ)
        da = _where_positive(dg, kept["z"])
        weight = kept["h"].T @ da
        if kept["dh"] is not None:
            weight.addmm_(kept["dh"].T, kept["ga"])
        into[self.weight], into[self.bias] = weight, da.sum(0)
        if not need_x:
            return None
        dx = self.batch.adjacency @ (da @ p[self.weight].T).addmm_(kept["ga"], v[self.weight].T)
        return dx.add_(dg) if self.residual else dx


class Linear:
    """x Wᵀ + b, perhaps with ReLU behind.

    Args:
        name: of the layer; its parameters are `name.weight` and `name.bias`.
        relu: whether there is one.
    """

    def __init__(self, name: str, *, relu: bool) -> None:
        self.weight, self.bias, self.relu = f"{name}.weight", f"{name}.bias", relu

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        z = (x @ p[self.weight].T).add_(p[self.bias])
        kept |= {"x": x, "z": z.relu_() if self.relu else z}
        return z

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        ga = kept["ga"] = _where_positive(g, kept["z"]) if self.relu else g
        into[self.weight], into[self.bias] = ga.T @ kept["x"], ga.sum(0)
        return ga @ p[self.weight] if need_x else None

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        kept["dx"] = dx
        da = (kept["x"] @ v[self.weight].T).add_(v[self.bias])
        if dx is not None:
            da.addmm_(dx, p[self.weight].T)
        return _where_positive(da, kept["z"]) if self.relu else da

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        da = _where_positive(dg, kept["z"]) if self.relu else dg
        weight = da.T @ kept["x"]
        if kept["dx"] is not None:
            weight.addmm_(kept["ga"].T, kept["dx"])
        into[self.weight], into[self.bias] = weight, da.sum(0)
        return (da @ p[self.weight]).addmm_(kept["ga"], v[self.weight]) if need_x else None


class Fixed:
    """A linear map without parameters.

    Args:
        apply: the map.
        transposed: the transposed one.
    """

    def __init__(self, apply: Callable[[Tensor], Tensor], transposed: Callable[[Tensor], Tensor]) -> None:
        self.apply, self.transposed = apply, transposed

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        return self.apply(x)

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        return self.transposed(g) if need_x else None

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        return None if dx is None else self.apply(dx)

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        return self.transposed(dg) if need_x else None


def rows(index: Tensor, count: int) -> Fixed:
    """Some of `count` rows."""

    def back(g: Tensor) -> Tensor:
        return g.new_zeros(count, *g.shape[1:]).index_add_(0, index, g)

    return Fixed(lambda x: x.index_select(0, index), back)


def scaled(factor: float) -> Fixed:
    """A multiple of what comes in."""
    return Fixed(lambda x: x * factor, lambda g: g * factor)


def means(batch: GraphBatch) -> Fixed:
    """The mean over the nodes of each graph."""
    sizes = batch.node_ptr.diff()[:, None]
    return Fixed(batch.mean, lambda g: (g / sizes).index_select(0, batch.batch))


class SymmetricPairs:
    """a · |u − v| + b · (u ⊙ v) + c for pairs of rows, see `same.nn.pairs`.

    Args:
        name: of a linear layer with the weights [a, b] and the bias c.
        pairs: [2, p] which rows.
        nodes: how many rows there are.
    """

    def __init__(self, name: str, pairs: Tensor, nodes: int) -> None:
        self.weight, self.bias = f"{name}.weight", f"{name}.bias"
        self.by_node = ByNode(pairs, nodes)

    def _halves(self, p: Params) -> tuple[Tensor, Tensor]:
        a, b = p[self.weight].view(2, -1)
        return a, b

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        a, b = self._halves(p)
        u, v = ends(x, self.by_node.pairs)
        scores = (u * v) @ b
        u.sub_(v)
        kept |= {"x": x, "sign": u.sign()}
        return scores.addmv_(u.abs_(), a).add_(p[self.bias])

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        (a, b), x = self._halves(p), kept["x"]
        kept["here"] = self.by_node.of_nodes(g)
        m, n = kept["m"], kept["n"] = self.by_node.of_pairs(g) @ kept["sign"], kept["here"] @ x
        into[self.weight] = torch.cat([(x * m).sum(0), (x * n).sum(0).div_(2)])[None]
        into[self.bias] = g.sum().view(1)
        return (m * a).addcmul_(n, b) if need_x else None

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        (a, b), (va, vb), x = self._halves(p), self._halves(v), kept["x"]
        kept["dx"] = dx
        left, right = x * va, x * (vb / 2)
        if dx is not None:
            left.addcmul_(dx, a)
            right.addcmul_(dx, b)
        u, w = ends(left, self.by_node.pairs)
        moved = u.sub_(w).mul_(kept["sign"]).sum(1)
        return moved.add_(self.by_node.products(right, x)).add_(v[self.bias])

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        (a, b), (va, vb), x, dx = self._halves(p), self._halves(v), kept["x"], kept["dx"]
        m, n = kept["m"], kept["n"]
        dm, dn = self.by_node.of_pairs(dg) @ kept["sign"], self.by_node.of_nodes(dg) @ x
        if dx is not None:
            dn += kept["here"] @ dx
        by_a, by_b = (x * dm).sum(0), (x * dn).sum(0)
        if dx is not None:
            by_a += (dx * m).sum(0)
            by_b += (dx * n).sum(0)
        into[self.weight] = torch.cat([by_a, by_b.div_(2)])[None]
        into[self.bias] = dg.sum().view(1)
        return dm.mul_(a).addcmul_(m, va).addcmul_(dn, b).addcmul_(n, vb) if need_x else None


class ConcatenatedPairs:
    """a · u + b · v + c for pairs of rows, which is (x a)ᵤ + (x b)ᵥ + c; see `SymmetricPairs`."""

    def __init__(self, name: str, pairs: Tensor, nodes: int) -> None:
        self.weight, self.bias, self.pairs, self.nodes = f"{name}.weight", f"{name}.bias", pairs, nodes

    def _sums(self, g: Tensor) -> Tensor:
        """[nodes, 2] what the pairs of a node sum up to, where it is the first and where it is the second."""
        sums = g.new_zeros(2, self.nodes)
        sums[0].index_add_(0, self.pairs[0], g)
        sums[1].index_add_(0, self.pairs[1], g)
        return sums.T

    def _picked(self, t: Tensor) -> Tensor:
        return t[:, 0].index_select(0, self.pairs[0]).add_(t[:, 1].index_select(0, self.pairs[1]))

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        kept["x"] = x
        return self._picked(x @ p[self.weight].view(2, -1).T).add_(p[self.bias])

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        sums = kept["sums"] = self._sums(g)
        into[self.weight], into[self.bias] = (sums.T @ kept["x"]).view(1, -1), g.sum().view(1)
        return sums @ p[self.weight].view(2, -1) if need_x else None

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        kept["dx"] = dx
        moved = kept["x"] @ v[self.weight].view(2, -1).T
        if dx is not None:
            moved.addmm_(dx, p[self.weight].view(2, -1).T)
        return self._picked(moved).add_(v[self.bias])

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        sums = self._sums(dg)
        weight = sums.T @ kept["x"]
        if kept["dx"] is not None:
            weight.addmm_(kept["sums"].T, kept["dx"])
        into[self.weight], into[self.bias] = weight.view(1, -1), dg.sum().view(1)
        if not need_x:
            return None
        return (sums @ p[self.weight].view(2, -1)).addmm_(kept["sums"], v[self.weight].view(2, -1))


class CrossEntropy:
    """The mean of −log softmax(x)_y; of nothing, 0."""

    def __init__(self, y: Tensor) -> None:
        self.y = y

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        logs = F.log_softmax(x, dim=1)
        kept["p"] = logs.exp()
        return F.nll_loss(logs, self.y) if len(self.y) else x.sum()

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        told = kept["p"].clone()
        told[torch.arange(len(self.y), device=told.device), self.y] -= 1
        return told.div_(max(1, len(self.y)))

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        kept["dx"] = dx
        return None

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        told, dx = kept["p"], kept["dx"]
        return (told * (dx - row_dot(told, dx))).div_(max(1, len(self.y)))


class BinaryCrossEntropy:
    """The mean of log(1 + eˣ) − y x; of nothing, 0."""

    def __init__(self, y: Tensor) -> None:
        self.y = y

    def forward(self, p: Params, x: Tensor, kept: Kept) -> Tensor:
        """See the module."""
        kept["p"] = x.sigmoid()
        return F.binary_cross_entropy_with_logits(x, self.y) if len(self.y) else x.sum()

    def backward(self, p: Params, g: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        return (kept["p"] - self.y).div_(max(1, len(self.y)))

    def tangent(self, p: Params, v: Params, dx: Tensor | None, kept: Kept) -> Tensor | None:
        """See the module."""
        kept["dx"] = dx
        return None

    def turned(self, p: Params, v: Params, dg: Tensor, kept: Kept, into: Gradients, need_x: bool) -> Tensor | None:
        """See the module."""
        return (kept["p"] * (1 - kept["p"])).mul_(kept["dx"]).div_(max(1, len(self.y)))


def _where_positive(g: Tensor, z: Tensor) -> Tensor:
    """g where z > 0, else 0."""
    return torch.ops.aten.threshold_backward(g, z, 0)
