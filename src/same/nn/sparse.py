"""The product of a sparse symmetric matrix and a dense one, differentiable any number of times."""

from typing import Any

import torch
from torch import Tensor


class _Product(torch.autograd.Function):
    # Not in the newer style with `setup_context`, for which torch inspects the signature at every call: that takes as
    # long as the product of a small batch.
    @staticmethod
    def forward(ctx: Any, h: Tensor, a: Tensor) -> Tensor:
        ctx.a = a
        return a @ h

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # Aᵀ = A: the derivative of the product is the product itself, at every order.
        return _Product.apply(gradient, ctx.a), None


def propagate(a: Tensor, h: Tensor) -> Tensor:
    """Return A h for a constant symmetric sparse matrix A.

    Args:
        a: [n, n] sparse CSR matrix; its symmetry is not checked.
        h: [n, w] dense matrix.

    >>> a = torch.eye(2).to_sparse_csr()
    >>> propagate(a, torch.ones(2, 1)).flatten()
    tensor([1., 1.])
    """
    return _Product.apply(h, a)
