import torch
from torch.autograd import gradcheck, gradgradcheck

from helpers import random_store
from same.nn.sparse import propagate


def test_the_derivative_of_the_sparse_product_is_a_sparse_product():
    batch = random_store(0, [6, 1, 9, 4], density=0.4).cut([0, 1, 2, 3]).to(torch.float64)
    h = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(propagate(batch.adjacency, h), batch.adjacency.to_dense() @ h)
    assert gradcheck(lambda h: propagate(batch.adjacency, h).square(), h)
    assert gradgradcheck(lambda h: propagate(batch.adjacency, h).square(), h)
