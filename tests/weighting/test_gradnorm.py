import pytest
import torch
from torch import nn
from two_tasks import two_tasks

from same.weighting import GradNorm


def test_gradient_norms_of_equally_fast_tasks_become_equal():
    """With equal rates of learning, G(t) = w(t) ‖∇_W L(t)‖ must become equal, and the weights sum to T."""
    model, losses = two_tasks()
    weighting = GradNorm(["a", "b"], lr=1e-2)
    for _ in range(400):
        values = losses()
        weighting.first.copy_(torch.stack([loss.detach() for loss in values.values()]))
        weighting.backward(values, model)
    norms = [torch.autograd.grad(losses()[t], model.encoder.weight)[0].norm().item() for t in ("a", "b")]
    assert norms[0] > 3 * norms[1]
    g = [w * n for w, n in zip(weighting.w.tolist(), norms, strict=True)]
    assert g[0] == pytest.approx(g[1], rel=0.05)
    assert weighting.w.sum().item() == pytest.approx(2)


def test_the_slower_task_gains_weight():
    """Equal norms, but `a` is still at its first loss and `b` at a tenth of it."""
    weighting = GradNorm(["a", "b"])
    weighting.first.copy_(torch.tensor([1.0, 1.0]))
    gradient = weighting.weight_gradient(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.1]))
    assert gradient[0] < 0 < gradient[1]


def test_the_weight_gradient_is_that_of_the_objective():
    weighting = GradNorm(["a", "b", "c"], alpha=0.7)
    weighting.w.copy_(torch.tensor([0.5, 1.5, 1.0]))
    weighting.first.copy_(torch.tensor([1.0, 2.0, 3.0]))
    norms, losses = torch.tensor([1.0, 0.2, 3.0]), torch.tensor([0.9, 0.4, 2.0])
    w = weighting.w.clone().requires_grad_()
    g, ratio = w * norms, losses / weighting.first
    objective = (g - (g.mean() * (ratio / ratio.mean()) ** 0.7).detach()).abs().sum()
    torch.testing.assert_close(weighting.weight_gradient(norms, losses), torch.autograd.grad(objective, w)[0])


def test_weights_wait_for_the_first_loss_of_every_task():
    """A first batch without examples of a task has the loss 0, to which no later loss can be relative."""
    weighting = GradNorm(["a", "b"])
    model, losses = two_tasks()
    weighting.backward({"a": losses()["a"], "b": 0.0 * losses()["b"]}, model)
    assert weighting.w.tolist() == [1, 1]
    values = losses()
    weighting.backward(values, model)
    torch.testing.assert_close(weighting.first[1], values["b"].detach().float())


def test_weights_are_updated_as_by_adam():
    weighting, w = GradNorm(["a", "b"], lr=0.01), nn.Parameter(torch.ones(2))
    optimiser = torch.optim.Adam([w], 0.01)
    for step in range(20):
        gradient = torch.tensor([1.0 + step, -2.0])
        weighting._descend(gradient)
        w.grad = gradient
        optimiser.step()
        with torch.no_grad():
            w *= 2 / w.sum()
    torch.testing.assert_close(weighting.w, w.detach())


def test_the_gradient_is_that_of_the_weighted_sum():
    model, losses = two_tasks()
    weighting = GradNorm(["a", "b"])
    weighting.w.copy_(torch.tensor([0.5, 1.5]))
    weighting.backward(losses(), model)
    gradient = model.encoder.weight.grad.clone()
    a, b = (torch.autograd.grad(losses()[t], model.encoder.weight)[0] for t in ("a", "b"))
    torch.testing.assert_close(gradient, 0.5 * a + 1.5 * b)
