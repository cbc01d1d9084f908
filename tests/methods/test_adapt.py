import pytest
import torch
from small_model import draw, make

from same.methods.adapt import adapt


def test_more_inner_steps_fit_the_support_better():
    store, tasks, model = make()
    for task, support, _ in draw(store, tasks):
        losses = []
        for steps in (0, 1, 5):
            adapted = adapt(model, task, support, lr=0.05, steps=steps)
            losses.append(task.loss(torch.func.functional_call(model, adapted, (task.name, support)), support).item())
        assert losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize("parts", [("heads.nc.",), ("encoder.", "heads.nc.")])
def test_only_the_named_parts_are_adapted(parts):
    store, tasks, model = make()
    task, support, _ = draw(store, tasks)[1]
    adapted = adapt(model, task, support, lr=0.1, parts=parts)
    assert set(adapted) == {name for name, _ in model.named_parameters() if name.startswith(parts)}
    assert all(not torch.equal(value, model.get_parameter(name)) for name, value in adapted.items())
