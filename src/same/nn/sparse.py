"""The product of a sparse symmetric matrix and a dense one, differentiable any number of times."""

from typing import Any

import torch
from torch import Tensor


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(h: Tensor, holder: tuple[Tensor]) -> Tensor:
        return holder[0] @ h

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, tuple[Tensor]], output: Tensor) -> None:
        ctx.holder = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # Aᵀ = A: the derivative of the product is the product, and so on for every order.
        return _Product.apply(gradient, ctx.holder), None


def propagate(a: Tensor, h: Tensor) -> Tensor:
    """A h for a constant symmetric sparse matrix A.

    Args:
        a: [n, n] sparse CSR; symmetric, which is not checked.
        h: [n, w] dense.

    >>> a = torch.eye(2).to_sparse_csr()
    >>> propagate(a, torch.ones(2, 1)).flatten()
    tensor([1., 1.])
    """
    # In a tuple, because a tensor argument would take part in differentiation.
    return _Product.apply(h, (a,))
