import time

import pytest
import torch
from parabola import Descent, Parabola, descend

from same.training import DivergedError, GivenUpTraining
from same.training.checkpoint import read_state
from same.training.distributed import Ranks
from same.training.stopping import is_over


def test_training_stops_after_patience_and_keeps_the_best_model():
    method, model, seen = Descent(script=[5, 4, 3, 2, 9, 9, 9, 9, 9, 1]), Parabola(), []
    training = descend(
        model, method, patience=4, report=lambda step, steps, record: seen.append((record, model.w.item()))
    )
    assert training.best_record["epoch"] == 3
    assert training.history[-1]["epoch"] == 7
    assert training.step == 14
    at_best = next(w for record, w in seen if record.get("epoch") == 3)
    assert model.w.item() == at_best


def test_the_objective_has_the_weights_of_the_losses():
    class Torn(Descent):
        def evaluate(self, model, episode):
            self.calls += 1
            return {"a": (self.calls, -self.calls), "b": (-2 * self.calls, 2 * self.calls)}

    for weights, best in (({}, 4), ({"b": 0.1}, 0)):
        assert descend(method=Torn(), epochs=4, weights=weights).best_record["epoch"] == best


def falling(*losses):
    """A probe that shows these losses of task `a`, one per validation."""
    script = iter(losses)
    return lambda encoder: {"a": (next(script), 0.5)}


def test_a_probe_is_shown_while_the_methods_own_losses_stop():
    training = descend(method=Descent(script=[3, 1, 2]), epochs=2, probe=falling(7, 8, 9))
    assert [record["tasks"]["a"] for record in training.history] == [
        {"loss": loss, "score": 0.5, "own_loss": own} for loss, own in ((7, 3), (8, 1), (9, 2))
    ]
    assert training.best_record["epoch"] == 1


def test_without_episodes_the_losses_of_the_probe_stop():
    training = descend(method=Descent(script=[]), epochs=9, probe=falling(5, 4, 6, 6, 6), episodes=(), patience=3)
    assert (training.best_record["epoch"], training.history[-1]["epoch"]) == (1, 4)
    assert training.history[0]["tasks"] == {"a": {"loss": 5, "score": 0.5}}


def test_without_any_validation_the_last_model_is_kept():
    training = descend(epochs=7, episodes=(), patience=1)
    assert training.best_record["epoch"] == 7
    assert training.best_record["tasks"] == {}


def test_a_probe_that_is_not_finite_is_reported():
    with pytest.raises(DivergedError, match="the validation loss of a is not finite"):
        descend(probe=falling(float("nan")), episodes=())


def test_training_is_given_up_after_a_validation_and_can_be_continued(tmp_path):
    seen = []

    def give_up(history):
        seen.append(len(history))
        return len(history) == 3

    for _ in range(2):  # It is called again when the run is continued.
        with pytest.raises(GivenUpTraining):
            descend(epochs=5, folder=tmp_path, give_up=give_up)
    assert seen == [1, 2, 3, 3]
    resumed, alone = Parabola(), Parabola()
    # After the last validation it is too late to give up.
    descend(resumed, epochs=5, folder=tmp_path, give_up=lambda history: len(history) == 6)
    descend(alone, epochs=5)
    assert torch.equal(resumed.w, alone.w)


def test_a_training_is_over_by_patience_or_by_its_epochs():
    history = [{"epoch": e, "objective": o} for e, o in ((0, 3.0), (5, 1.0), (10, 2.0))]
    assert not is_over(history, epochs=20, patience=6)
    assert is_over(history, epochs=20, patience=5)
    assert is_over(history, epochs=10, patience=50)


def test_the_end_of_a_training_has_a_reason():
    assert descend(method=Descent(script=[1, 2, 3, 4, 5]), patience=3).ended == "patience"
    assert descend(epochs=3).ended == "cap"
    assert descend(epochs=3, max_seconds=60).ended == "cap"


def slow(step, steps, record):
    time.sleep(0.01)


def test_training_ends_after_its_seconds_with_a_validation_that_counts(tmp_path):
    def given_up(history):  # The last validation comes too late to give up.
        return len(history) > 1

    training = descend(epochs=10**6, every=10**6, max_seconds=0.2, report=slow, folder=tmp_path, give_up=given_up)
    assert training.ended == "seconds"
    assert [record["step"] for record in training.history] == [0, training.step]
    assert training.best_record["step"] == training.step < 25
    assert read_state(tmp_path)["step"] == training.step


def test_seconds_count_through_interruptions(tmp_path):
    def interrupt(step, steps, record):
        slow(step, steps, record)
        if step == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descend(epochs=10**6, every=1, folder=tmp_path, report=interrupt, max_seconds=60)
    before = read_state(tmp_path)
    training = descend(epochs=10**6, every=10**6, folder=tmp_path, max_seconds=before["seconds"] + 0.05, report=slow)
    assert before["step"] < training.step < before["step"] + 7
    again = descend(epochs=10**6, every=10**6, folder=tmp_path, max_seconds=before["seconds"], report=slow)
    assert again.step == training.step + 1


def test_the_ranks_end_together():
    class Hurried(Ranks):
        """Of two ranks, the other one has run out of time at once."""

        def any(self, flag):
            return True

    assert descend(ranks=Hurried(), max_seconds=60).step == 1
    assert descend(ranks=Hurried()).ended == "cap"
