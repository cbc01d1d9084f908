from dataclasses import replace

import pytest
import torch
from parabola import Descent, Parabola, Steps, descend
from safetensors.torch import load_file

from same.errors import InputError
from same.files import CHECKPOINT
from same.training import DivergedError, Rule, Schedule, Training, train
from same.training.distributed import Ranks
from same.training.loop import update
from same.weighting import Jacobian, Weighting


def test_the_cap_is_kept():
    training = descend(epochs=3, every=2)
    assert training.step == 6
    assert [record["epoch"] for record in training.history] == [0, 2, 3]


def test_a_schedule_counts_steps_of_several_episodes():
    schedule = Schedule(epochs=3, steps_per_epoch=5, validate_every=2, episodes_per_step=2)
    assert schedule.steps == 8
    assert [schedule.epoch(step) for step in (0, 2, 3, 5, 8)] == [0, 0, 1, 2, 3]
    assert [step for step in range(1, 9) if schedule.validates(step)] == [5, 8]
    often = Schedule(epochs=1, steps_per_epoch=50, validate_every=0.1)
    assert sum(often.validates(step) for step in range(1, 51)) == 10


def test_the_time_left_is_that_of_the_steps_left_or_of_the_limit():
    schedule = Schedule(epochs=10, steps_per_epoch=5)
    assert schedule.seconds_left(10, 4.0) == pytest.approx(16)
    assert schedule.seconds_left(50, 20.0) == 0
    limited = replace(schedule, max_seconds=12)
    assert limited.seconds_left(10, 4.0) == pytest.approx(8)
    assert limited.seconds_left(49, 11.0) == pytest.approx(11 / 49)
    assert limited.seconds_left(10, 13.0) == 0


def test_weights_scale_the_losses():
    heavy, light = Parabola(), Parabola()
    for model, weight in ((heavy, 1.0), (light, 0.0)):
        descend(model, epochs=2, weights={"a": weight})
    assert heavy.w.item() < 3.0
    assert light.w.item() == 3.0


def test_the_draws_of_a_weighting_repeat_and_leave_the_global_generator_alone():
    class Noisy(Weighting):
        draws = True

        def backward(self, losses, model):
            super().backward(losses, model)
            model.w.grad += torch.rand(1)

    before, gradients = torch.get_rng_state(), []
    for step in (7, 7, 8):
        training = Training(Parabola(), weighting=Noisy(), step=step)
        update(training, Descent(), Steps())
        gradients.append(training.model.w.grad)
    assert torch.equal(torch.get_rng_state(), before)
    assert gradients[0] == gradients[1] != gradients[2]
    assert Jacobian("pcgrad").draws


def test_a_loss_that_is_not_finite_stops_with_step_and_task(tmp_path):
    with pytest.raises(DivergedError, match=r"step 5: the loss of a is not finite.*Lower outer_lr"):
        descend(method=Descent(bad_step=5), epochs=9, folder=tmp_path)
    kept = load_file(tmp_path / CHECKPOINT)["model.w"]
    assert torch.isfinite(kept).all()
    assert 2.5 < kept.item() < 3.0


def test_a_gradient_that_is_not_finite_stops():
    class Root(Descent):
        def losses(self, model, episode):
            return {"a": torch.sqrt(model.w - model.w.detach()).sum()}

    with pytest.raises(DivergedError, match="step 0: the gradient is not finite"):
        descend(method=Root())


def test_the_gradient_is_clipped():
    class Steep(Descent):
        def losses(self, model, episode):
            seen.append(None if model.w.grad is None else model.w.grad.clone())
            return {"a": 1e6 * model.w.sum()}

    seen: list = []
    descend(method=Steep(), epochs=1, clip=0.5)
    # The second step sees the gradient of the first.
    assert seen[1].abs().item() == pytest.approx(0.5)


def test_all_rules_act_even_if_one_ends_the_training():
    class Stop(Rule):
        def after(self, training, schedule):
            calls.append("stop")
            return True

    class Count(Rule):
        def after(self, training, schedule):
            calls.append("count")
            return False

        def end(self, training):
            calls.append("end")

    calls: list[str] = []
    train(Training(Parabola()), Descent(), Steps(), Schedule(9, 2), [Stop(), Count()])
    assert calls == ["stop", "count", "end"]


def test_episodes_that_ranks_cannot_share_are_refused():
    class Three(Ranks):
        size = 3

    with pytest.raises(InputError, match="2 cannot be shared evenly by 3 ranks"):
        train(Training(Parabola(), ranks=Three()), Descent(), Steps(), Schedule(1, 2, episodes_per_step=2))


def test_training_leaves_the_global_generator_alone_and_isolated_training_repeats():
    class Noisy(Descent):
        def losses(self, model, episode):
            return {"a": (model.w * torch.rand(1)).square().sum()}

    results = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        before = torch.get_rng_state()
        training = Training(Parabola(), lr=0.1, isolate=True)
        train(training, Noisy(), Steps(), Schedule(2, 2))
        assert torch.equal(torch.get_rng_state(), before)
        results.append(training.model.w.item())
    assert results[0] == results[1]
