"""Rows of length 1, with exact first and second derivatives in few passes over memory."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_EPSILON = 1e-12  # Derivatives are finite at 0.


def unit_norm(s: Tensor) -> Tensor:
    """Scale each row s to length 1: y = s / (|s|² + ε)^½.

    >>> unit_norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return _UnitNorm.apply(s)


class _UnitNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor) -> Tensor:
        r = torch.linalg.vector_norm(s, dim=1, keepdim=True).square_().add_(_EPSILON).rsqrt_()
        y = s * r
        # y is kept as a constant outside the graph: `_Gradient` accounts for its dependence on s.
        ctx.constants = y.detach(), r
        ctx.save_for_backward(s)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return _Gradient.apply(g, *ctx.saved_tensors, *ctx.constants)


class _Gradient(torch.autograd.Function):
    """∂s = r (g − y (y·g)), with r = (|s|² + ε)^-½, as a function of g and s."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, s: Tensor, y: Tensor, r: Tensor) -> Tensor:
        yg = _row_dot(y, g)
        ctx.save_for_backward(g, y, r, yg)
        return torch.addcmul(g, y, yg, value=-1).mul_(r)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, v: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """For φ = v · ∂s: ∂φ/∂g = r (v − y (y·v)), ∂φ/∂s = r² (y (3 (y·v)(y·g) − v·g) − v (y·g) − g (y·v))."""
        g, y, r, yg = ctx.saved_tensors
        yv, vg = _row_dot(y, v), _row_dot(v, g)
        by_g = torch.addcmul(v, y, yv, value=-1).mul_(r)
        by_s = (y * (3 * yv * yg - vg)).addcmul_(v, yg, value=-1).addcmul_(g, yv, value=-1).mul_(r.square())
        return by_g, by_s, None, None


def _row_dot(a: Tensor, b: Tensor) -> Tensor:
    """[n, 1] dot products of rows."""
    return (a * b).sum(dim=1, keepdim=True)
