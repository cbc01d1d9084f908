import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest
from parabola import Parabola, descend

from same.errors import InputError
from same.training import Schedule, Training
from same.training.progress import Estimate, Progress, TensorBoard


def record(step, objective, **losses):
    tasks = {task: {"loss": loss, "score": 1 - loss} for task, loss in losses.items()}
    return {"step": step, "epoch": step // 2, "objective": objective, "tasks": tasks}


def test_every_step_and_every_validation_is_reported():
    calls = []
    training = descend(epochs=3, every=2, report=lambda *call: calls.append(call))
    assert {steps for _, steps, _ in calls} == {6}
    assert [step for step, _, each in calls if "losses" in each] == [1, 2, 3, 4, 5, 6]
    assert [each for _, _, each in calls if "tasks" in each] == training.history
    left = [each["seconds_left"] for _, _, each in calls if "losses" in each]
    assert all(seconds > 0 for seconds in left[:-1])
    assert left[-1] == 0
    assert [step for step, _, each in calls if "tasks" in each] == [0, 4, 6]


def test_validations_are_plain_lines_where_there_is_no_terminal(capsys):
    with Progress() as progress:
        progress(0, 9, record(0, 2.0, gc=0.5, nc=0.75))
        progress(1, 9, {"losses": {"gc": 0.4}})
        progress(4, 9, record(4, 3.0, gc=0.25, nc=1.0))
        for step in (6, 9):
            progress(step, 9, {"losses": {"gc": 0.4}, "seconds_left": 3.0 * (9 - step)})
            progress(step, 9, record(step, 3.0, gc=0.25))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "epoch 0 step 0 validation loss/score: gc 0.500/0.500, nc 0.750/0.250 *",
        "epoch 2 step 4 validation loss/score: gc 0.250/0.750, nc 1.000/0.000",
        "epoch 3 step 6 validation loss/score: gc 0.250/0.750, at most 9.0 s left",
        "epoch 4 step 9 validation loss/score: gc 0.250/0.750",
    ]


def test_quiet_prints_nothing(capsys):
    with Progress(quiet=True) as progress:
        progress(0, 9, record(0, 2.0, gc=0.5))
    assert capsys.readouterr() == ("", "")


def test_the_table_has_smoothed_losses_and_the_best_validation(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = Progress()
    progress.live.auto_refresh = False
    progress(0, 9, record(0, 2.0, gc=0.5))
    for step, loss in ((1, 1.0), (2, 0.0)):
        progress(step, 9, {"losses": {"gc": loss}})
    progress(2, 9, record(2, 3.0, gc=0.75))
    table = progress._table(2, 9)
    assert table.title == "step 2 of at most 9, best validation at step 0"
    progress(2, 9, {"losses": {}, "seconds_left": 750.0})
    assert progress._table(2, 9).title == "step 2 of at most 9, best validation at step 0, at most 12 min left"
    assert [list(column.cells) for column in table.columns] == [
        ["gc"], ["0.9500"], ["0.7500"], ["0.2500"], ["0.5000"], ["0.5000"]
    ]  # fmt: skip


def test_tensorboard_gets_losses_and_validations(tmp_path, monkeypatch):
    written = []
    writer = SimpleNamespace(add_scalar=lambda *row: written.append(row), close=lambda: written.append("closed"))
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = lambda folder: writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with Progress(quiet=True, board=TensorBoard(tmp_path)) as progress:
        progress(3, 9, {"losses": {"gc": 0.4}})
        progress(3, 9, record(3, 2.0, gc=0.25))
    expected = [("loss/gc", 0.4, 3), ("validation loss/gc", 0.25, 3), ("validation score/gc", 0.75, 3), "closed"]
    assert written == expected


def test_without_tensorboard_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install same-gnn\[track\]"):
        TensorBoard(tmp_path)


@pytest.mark.parametrize(("epochs", "level", "left"), [(100, logging.INFO, "48 s"), (2000, logging.WARNING, "32 min")])
def test_the_estimate_is_logged_once_and_warns_of_a_long_training(caplog, epochs, level, left):
    """Of a training with two steps per epoch, of half a second each in the end."""
    caplog.set_level(logging.INFO, "same")
    estimate, training, schedule = Estimate(), Training(Parabola()), Schedule(epochs, 2)
    training.total_seconds = lambda: training.seconds
    training.history = [record(0, 1.0, a=1.0)]
    for training.step, training.seconds in ((5, 5.0), (11, 11.0)):
        estimate.after(training, schedule)
    assert not caplog.records  # Not before the first validation, unless a minute has passed.
    training.history.append(record(11, 1.0, a=1.0))
    for training.step, training.seconds in ((105, 52.5), (106, 53.0)):
        estimate.after(training, schedule)
    (message,) = caplog.records
    assert message.levelno == level
    assert message.getMessage().startswith(f"at most about {left} left ({epochs} epochs of 1.0 s); early stopping")


def test_the_estimate_does_not_wait_for_a_late_validation(caplog):
    caplog.set_level(logging.INFO, "same")
    training = Training(Parabola(), seconds=61.0, step=1)
    Estimate().after(training, Schedule(100, 2))
    assert len(caplog.records) == 1
