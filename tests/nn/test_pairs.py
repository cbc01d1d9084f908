import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from same.nn.pairs import pair_features, pair_scores


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_pair_scores_are_the_features_times_the_weights(pair):
    torch.manual_seed(0)
    # In both directions, repeated, nodes in no pair, and a node with itself.
    pairs = torch.tensor([[0, 1, 4, 4, 2, 3], [1, 0, 2, 0, 3, 3]])
    h = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, dtype=torch.float64, requires_grad=True)

    def scores(h, weight):
        return pair_scores(h, weight, pairs, pair)

    torch.testing.assert_close(scores(h, weight), pair_features(h, pairs, pair) @ weight)
    apart = h + torch.arange(6.0)[:, None]  # |u − v| has a corner at 0; node 3 with itself stays at it.
    apart = apart.detach().requires_grad_()
    others = [0, 1, 2, 3, 4]
    assert gradcheck(lambda h, w: scores(h, w)[others], (apart, weight))
    assert gradgradcheck(lambda h, w: scores(h, w)[others].square(), (apart, weight))
    plain = torch.autograd.grad((pair_features(h, pairs, pair) @ weight).square().sum(), (h, weight))
    for ours, theirs in zip(torch.autograd.grad(scores(h, weight).square().sum(), (h, weight)), plain, strict=True):
        torch.testing.assert_close(ours, theirs)
