import time

import pytest
import torch
from parabola import Parabola, descend

from same.errors import InputError
from same.files import CHECKPOINT, HISTORY, PREVIOUS
from same.training import InterruptedTraining, Schedule, Training
from same.training.checkpoint import Checkpoint, read_state, restore


def test_checkpoints_are_written_between_validations_too(tmp_path):
    written = []

    def report(step, steps, record):
        if (tmp_path / CHECKPOINT).is_file():
            written.append((tmp_path / CHECKPOINT).stat().st_mtime_ns)
        time.sleep(0.002)

    descend(epochs=50, every=50, folder=tmp_path, report=report, seconds=0.01)
    assert len(set(written)) > 5


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(tmp_path, caplog):
    whole = Parabola()
    descend(whole, epochs=6)
    with pytest.raises(RuntimeError):
        descend(epochs=6, folder=tmp_path, report=_fail_at(9))
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    assert (tmp_path / PREVIOUS).is_file()
    resumed = Parabola()
    descend(resumed, epochs=6, folder=tmp_path)
    assert "continuing from an earlier state" in caplog.text
    assert torch.equal(resumed.w, whole.w)


def _fail_at(last):
    def report(step, steps, record):
        if step == last:
            raise RuntimeError

    return report


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    descend(epochs=1, folder=tmp_path)
    with pytest.raises(InputError, match="belongs to another run"):
        restore(Training(Parabola()), tmp_path, "another key")


def test_the_history_file_is_repaired(tmp_path):
    descend(epochs=3, folder=tmp_path)
    text = (tmp_path / HISTORY).read_text()
    (tmp_path / HISTORY).unlink()
    restore(Training(Parabola()), tmp_path, "key")
    assert (tmp_path / HISTORY).read_text() == text
    assert len(read_state(tmp_path)["history"]) == 4


def test_stop_saves_and_interrupts(tmp_path):
    rule = Checkpoint(tmp_path, "key", stop=iter([False, True]).__next__)
    training = Training(Parabola())
    rule.begin(training, Schedule(7, 2))
    training.step = 1
    with pytest.raises(InterruptedTraining):
        rule.after(training, Schedule(7, 2))
    state = read_state(tmp_path)
    assert (state["step"], state["cap"]) == (1, 7)
