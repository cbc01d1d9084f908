import torch
from torch.autograd import gradcheck, gradgradcheck

from same.nn.norm import unit_norm


def test_unit_norm_has_exact_first_and_second_derivatives():
    torch.manual_seed(0)
    s = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(unit_norm(s), s / s.norm(dim=1, keepdim=True))
    assert gradcheck(lambda s: unit_norm(s).exp(), s)
    assert gradgradcheck(lambda s: unit_norm(s).exp(), s)


def test_unit_norm_is_differentiable_near_and_at_zero():
    tiny = (1e-6 * torch.randn(5, 4, dtype=torch.float64)).requires_grad_()
    assert gradcheck(unit_norm, tiny, eps=1e-9, rtol=1e-2)
    zero = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(unit_norm(zero).sum(), zero, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), zero)
    assert torch.isfinite(first).all()
    assert torch.isfinite(second).all()
