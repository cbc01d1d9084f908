import pytest
import torch
from torch import nn
from two_tasks import two_tasks

from same.weighting import Balanced


def gradients(model, losses):
    return {task: torch.autograd.grad(losses()[task], model.encoder.weight)[0] for task in ("a", "b")}


def test_the_weighted_gradients_have_equal_norms_and_the_weights_sum_to_the_number_of_tasks():
    model, losses = two_tasks()
    weighting = Balanced(["a", "b"])
    for _ in range(50):
        weighting.backward(losses(), model)
    norms = torch.stack([gradient.norm() for gradient in gradients(model, losses).values()])
    assert norms[0] > 3 * norms[1]
    pulls = weighting.w * norms
    assert pulls[0].item() == pytest.approx(pulls[1].item(), rel=1e-5)
    assert weighting.w.sum().item() == pytest.approx(2)


def test_the_gradient_is_that_of_the_weighted_sum():
    model, losses = two_tasks()
    weighting = Balanced(["a", "b"])
    weighting.backward(losses(), model)
    w, by_task = weighting.w.tolist(), gradients(model, losses)
    torch.testing.assert_close(model.encoder.weight.grad, w[0] * by_task["a"] + w[1] * by_task["b"])


def test_the_unit_of_a_loss_does_not_matter_from_the_first_step_on():
    def directions(factor):
        model, losses = two_tasks()
        weighting, seen = Balanced(["a", "b"]), []
        for step in range(5):
            model.zero_grad()
            weighting.backward({task: (factor if task == "a" else 1) * loss for task, loss in losses().items()}, model)
            seen.append(nn.functional.normalize(model.encoder.weight.grad.reshape(-1), dim=0))
            with torch.no_grad():
                model.encoder.weight += 0.1 * torch.randn(4, 3, generator=torch.Generator().manual_seed(step))
        return torch.stack(seen)

    torch.testing.assert_close(directions(1000), directions(1), rtol=1e-4, atol=1e-5)


def test_a_batch_without_a_gradient_of_a_task_does_not_change_its_mean():
    model, losses = two_tasks()
    weighting = Balanced(["a", "b"])
    weighting.backward({"a": losses()["a"], "b": 0.0 * losses()["b"]}, model)
    assert weighting.w.tolist() == [1, 1]
    assert weighting.c[1] == 0
    weighting.backward(losses(), model)
    mean = weighting.s[1] / weighting.c[1]
    weighting.backward({"a": 5 * losses()["a"], "b": 0.0 * losses()["b"]}, model)
    assert weighting.s[1] / weighting.c[1] == mean
    # After a gap, the bias is still that of a mean of one value.
    torch.testing.assert_close(mean, gradients(model, losses)["b"].square().sum().float())


def test_the_state_is_in_buffers():
    model, losses = two_tasks()
    weighting, other = Balanced(["a", "b"]), Balanced(["a", "b"])
    for _ in range(3):
        weighting.backward(losses(), model)
    other.load_state_dict(weighting.state_dict())
    assert torch.equal(other.w, weighting.w)
    assert not list(weighting.parameters())
