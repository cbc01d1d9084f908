import pytest
import torch

from same.weighting import Uncertainty


def test_the_weight_of_a_loss_converges_to_half_its_inverse():
    """d/ds (exp(-s) L + s/2) = 0 at exp(-s) = 1/(2L), for each task alone."""
    weighting = Uncertainty(["a", "b"])
    optimiser = torch.optim.SGD(weighting.parameters(), 0.5)
    losses = {"a": torch.tensor(4.0), "b": torch.tensor(0.25)}
    for _ in range(100):
        optimiser.zero_grad()
        weighting.weigh(losses).backward()
        optimiser.step()
    for task, loss in losses.items():
        assert torch.exp(-weighting.s[task]).item() == pytest.approx(1 / (2 * loss.item()), rel=1e-3)


def test_tasks_without_a_loss_are_left_alone():
    weighting = Uncertainty(["a", "b"])
    weighting.weigh({"a": torch.tensor(4.0)}).backward()
    assert weighting.s["a"].grad is not None
    assert weighting.s["b"].grad is None
