import pytest
import torch
from torchjd import aggregation
from two_tasks import two_tasks

from same.errors import InputError
from same.weighting import Jacobian


@pytest.mark.parametrize("name", ["upgrad", "pcgrad", "mgda"])
def test_an_aggregator_combines_the_shared_gradients_and_leaves_those_of_heads(name):
    model, losses = two_tasks()
    torch.manual_seed(0)
    Jacobian(name).backward(losses(), model)
    params = dict(model.named_parameters())
    shared = [params["encoder.weight"], params["encoder.bias"]]
    combined = torch.cat([p.grad.reshape(-1) for p in shared])
    rows = torch.stack(
        [torch.cat([g.reshape(-1) for g in torch.autograd.grad(losses()[t], shared)]) for t in ("a", "b")]
    )
    torch.manual_seed(0)
    kinds = {k.lower(): v for k, v in vars(aggregation).items()}
    torch.testing.assert_close(combined, kinds[name]()(rows))
    for task in ("a", "b"):
        head = params[f"heads.{task}.factor"]
        torch.testing.assert_close(head.grad, torch.autograd.grad(losses()[task], head)[0])
    if name == "upgrad":
        # Its defining property: the update conflicts with no task.
        assert (rows @ combined >= -1e-9).all()


@pytest.mark.parametrize("name", ["excessmtl", "gradvac", "pcd"])
def test_aggregators_that_keep_state_are_refused(name):
    with pytest.raises(InputError, match="keeps state between steps"):
        Jacobian(name)
