"""Each weighting is held to the property that defines it."""

import pytest
import torch
from torch import nn
from torchjd import aggregation

from same.errors import InputError
from same.nn import Model
from same.weighting import GradNorm, Jacobian, Uncertainty, Weighting, make_weighting


class Scale(nn.Module):
    """A head that gives a fixed multiple of what it is given."""

    def __init__(self, by):
        super().__init__()
        self.by = nn.Parameter(torch.tensor(float(by)))

    def forward(self, h, examples):
        return self.by * h


def two_tasks(seed=0):
    """A shared linear layer and two tasks whose gradients differ in size and direction."""
    torch.manual_seed(seed)
    model = Model(nn.Linear(3, 4), {"a": Scale(10.0), "b": Scale(1.0)}).double()
    x = torch.randn(8, 3, dtype=torch.float64)
    goals = {"a": torch.randn(8, 4, dtype=torch.float64), "b": torch.randn(8, 4, dtype=torch.float64)}

    def losses():
        h = model.encoder(x)
        return {task: (model.heads[task](h, None) - goal).square().mean() for task, goal in goals.items()}

    return model, losses


def test_fixed_weights_scale_gradients():
    model, losses = two_tasks()
    Weighting({"a": 3.0}).backward(losses(), model)
    found = model.encoder.weight.grad.clone()
    a, b = (torch.autograd.grad(losses()[t], model.encoder.weight)[0] for t in ("a", "b"))
    torch.testing.assert_close(found, 3 * a + b)


def test_uncertainty_settles_where_the_weight_of_a_loss_is_half_its_inverse():
    """d/ds (exp(-s) L + s/2) = 0 at exp(-s) = 1/(2L): each task in use, its own s."""
    weighting = Uncertainty(["a", "b"])
    optimiser = torch.optim.SGD(weighting.parameters(), 0.5)
    losses = {"a": torch.tensor(4.0), "b": torch.tensor(0.25)}
    for _ in range(400):
        optimiser.zero_grad()
        weighting.weigh(losses).backward()
        optimiser.step()
    for task, loss in losses.items():
        assert torch.exp(-weighting.s[task]).item() == pytest.approx(1 / (2 * loss.item()), rel=1e-3)


def test_uncertainty_leaves_tasks_that_are_not_there_alone():
    weighting = Uncertainty(["a", "b"])
    weighting.weigh({"a": torch.tensor(4.0)}).backward()
    assert weighting.s["a"].grad is not None
    assert weighting.s["b"].grad is None


def test_gradnorm_evens_out_gradient_norms_of_equally_fast_tasks():
    """With rates of learning kept equal, G(t) = w(t) ‖∇_W L(t)‖ must become equal, and the weights sum to T."""
    model, losses = two_tasks()
    weighting = GradNorm(["a", "b"], lr=1e-3)
    for _ in range(3000):
        found = losses()
        weighting.first.copy_(torch.stack([loss.detach() for loss in found.values()]))
        weighting.backward(found, model)
    norms = [torch.autograd.grad(losses()[t], model.encoder.weight)[0].norm().item() for t in ("a", "b")]
    assert norms[0] > 3 * norms[1]
    g = [w * n for w, n in zip(weighting.w.tolist(), norms, strict=True)]
    assert g[0] == pytest.approx(g[1], rel=0.05)
    assert weighting.w.sum().item() == pytest.approx(2)


def test_gradnorm_helps_the_task_that_learns_slowly():
    """Norms alike, but `a` still at its first loss and `b` at a tenth of it: `a` must gain weight."""
    weighting = GradNorm(["a", "b"])
    weighting.first.copy_(torch.tensor([1.0, 1.0]))
    gradient = weighting.weight_gradient(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.1]))
    assert gradient[0] < 0 < gradient[1]


def test_gradnorms_weight_gradient_is_that_of_its_objective():
    weighting = GradNorm(["a", "b", "c"], alpha=0.7)
    weighting.w.copy_(torch.tensor([0.5, 1.5, 1.0]))
    weighting.first.copy_(torch.tensor([1.0, 2.0, 3.0]))
    norms, losses = torch.tensor([1.0, 0.2, 3.0]), torch.tensor([0.9, 0.4, 2.0])
    w = weighting.w.clone().requires_grad_()
    g, ratio = w * norms, losses / weighting.first
    objective = (g - (g.mean() * (ratio / ratio.mean()) ** 0.7).detach()).abs().sum()
    torch.testing.assert_close(weighting.weight_gradient(norms, losses), torch.autograd.grad(objective, w)[0])


def test_gradnorm_waits_for_the_first_loss_of_every_task():
    """A first batch without examples of a task has the loss 0, which is no loss to be relative to."""
    weighting = GradNorm(["a", "b"])
    model, losses = two_tasks()
    weighting.backward({"a": losses()["a"], "b": 0.0 * losses()["b"]}, model)
    assert weighting.w.tolist() == [1, 1]
    found = losses()
    weighting.backward(found, model)
    torch.testing.assert_close(weighting.first[1], found["b"].detach().float())


def test_gradnorms_weights_move_as_torchs_adam_moves_them():
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


def test_gradnorm_leaves_the_gradient_of_the_weighted_sum():
    model, losses = two_tasks()
    weighting = GradNorm(["a", "b"])
    weighting.w.copy_(torch.tensor([0.5, 1.5]))
    weighting.backward(losses(), model)
    found = model.encoder.weight.grad.clone()
    a, b = (torch.autograd.grad(losses()[t], model.encoder.weight)[0] for t in ("a", "b"))
    torch.testing.assert_close(found, 0.5 * a + 1.5 * b)


@pytest.mark.parametrize("name", ["upgrad", "pcgrad", "mgda"])
def test_aggregators_shape_the_shared_gradient_and_leave_the_heads_theirs(name):
    model, losses = two_tasks()
    torch.manual_seed(0)
    Jacobian(name).backward(losses(), model)
    names = dict(model.named_parameters())
    shared = [names["encoder.weight"], names["encoder.bias"]]
    found = torch.cat([p.grad.reshape(-1) for p in shared])
    rows = torch.stack(
        [torch.cat([g.reshape(-1) for g in torch.autograd.grad(losses()[t], shared)]) for t in ("a", "b")]
    )
    torch.manual_seed(0)
    kinds = {k.lower(): v for k, v in vars(aggregation).items()}
    torch.testing.assert_close(found, kinds[name]()(rows))
    for task in ("a", "b"):
        head = names[f"heads.{task}.by"]
        torch.testing.assert_close(head.grad, torch.autograd.grad(losses()[task], head)[0])
    if name == "upgrad":
        # What defines it: the update conflicts with no task.
        assert (rows @ found >= -1e-9).all()


@pytest.mark.parametrize("name", ["excessmtl", "gradvac", "pcd"])
def test_aggregators_that_remember_are_refused(name):
    with pytest.raises(InputError, match="keeps state between steps"):
        Jacobian(name)


def test_names_that_are_not_known_are_refused():
    with pytest.raises(InputError, match=r"'magic' is neither fixed, uncertainty, gradnorm nor one of .*upgrad"):
        make_weighting("magic", ["a", "b"])
