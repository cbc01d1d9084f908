"""Checkpoints: an interrupted training continues from its last one and ends with the same bits."""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from same.errors import DamagedError, InputError
from same.files import CHECKPOINT, HISTORY, PREVIOUS, atomic, load_tensors, read_header, save_tensors
from same.training.loop import InterruptedTraining, Record, Rule, Schedule, Training

log = logging.getLogger("same")

_PLAIN = ("step", "history", "best_record", "examples", "seconds", "cpu_seconds")


class Checkpoint(Rule):
    """Save the state of a training in a folder after every validation, and at least once a minute.

    Args:
        folder: folder of the run.
        key: key of the configuration; a checkpoint with another key is refused.
        stop: polled after every step; if it returns True, the state is saved and `InterruptedTraining` is raised.
        seconds: maximum time between two checkpoints.
    """

    def __init__(
        self, folder: Path, key: str, *, stop: Callable[[], bool] = lambda: False, seconds: float = 60.0
    ) -> None:
        self.folder, self.key, self.stop, self.seconds = folder, key, stop, seconds

    def begin(self, training: Training, schedule: Schedule) -> None:
        """Save the state before the first step."""
        self.stop()  # First poll: from here on there is state worth saving.
        if training.step == 0:
            self._save(training, schedule)

    def after(self, training: Training, schedule: Schedule) -> None:
        """Save if it is time, and stop if asked to."""
        if training.validated or training.untimed() > self.seconds:
            self._save(training, schedule)
        if training.ranks.any(self.stop()):
            self._save(training, schedule)
            raise InterruptedTraining

    def _save(self, training: Training, schedule: Schedule) -> None:
        """Write the checkpoint, which holds everything, and the history, which repeats a part of it for people."""
        training.add_time()
        if training.ranks.rank:
            return
        tensors, plain = _state(training)
        with atomic(self.folder / CHECKPOINT) as temporary:
            save_tensors(tensors, temporary, {**plain, "key": self.key, "cap": schedule.epochs})
            if (self.folder / CHECKPOINT).is_file():
                (self.folder / CHECKPOINT).replace(self.folder / PREVIOUS)
        write_history(self.folder, training.history)


def restore(training: Training, folder: Path | None, key: str) -> None:
    """Restore a training from the checkpoint in a folder, if there is one, on all ranks."""

    def first() -> tuple[dict[str, Tensor], Record]:
        if folder is not None:
            _restore(training, folder, key)
        tensors, plain = _state(training)
        return {name: value.cpu() for name, value in tensors.items()}, plain

    state = training.ranks.first(first)
    if training.ranks.rank:
        _put_back(training, *state)
    devices = {name: p.device for name, p in training.model.named_parameters()}
    training.average = {name: training.average[name].to(devices[name]) for name in devices if name in training.average}


def _restore(training: Training, folder: Path, key: str) -> None:
    for path in _checkpoints(folder):
        try:
            tensors, plain = load_tensors(path)
        except DamagedError as error:
            log.warning("%s; continuing from an earlier state", error)
            continue
        if plain.pop("key", key) != key:
            raise InputError(f"{path}: belongs to another run; choose another folder")
        try:
            _put_back(training, tensors, plain)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: does not fit the model ({error}); delete it to start the run again") from error
        _repair_history(folder, training.history)
        return


def _state(training: Training) -> tuple[dict[str, Tensor], Record]:
    """Return the tensors of a training, by group and name, and its plain values."""
    slots = training.optimiser.state_dict()["state"]
    groups = {
        "model": training.model.state_dict(),
        "weighting": training.weighting.state_dict(),
        "average": training.average,
        "best": training.best,
        "adam": {f"{number}.{slot}": value for number, values in slots.items() for slot, value in values.items()},
    }
    tensors = {f"{group}.{name}": value for group, values in groups.items() for name, value in values.items()}
    return tensors, {name: getattr(training, name) for name in _PLAIN}


def _put_back(training: Training, tensors: dict[str, Tensor], plain: Record) -> None:
    groups: dict[str, dict[str, Tensor]] = {"model": {}, "weighting": {}, "average": {}, "best": {}, "adam": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition(".")
        groups[group][rest] = value
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in groups["adam"].items():
        number, _, slot = name.partition(".")
        slots.setdefault(int(number), {})[slot] = value
    training.model.load_state_dict(groups["model"])
    training.weighting.load_state_dict(groups["weighting"])
    training.optimiser.load_state_dict({**training.optimiser.state_dict(), "state": slots})
    training.average, training.best = groups["average"], groups["best"]
    for name in _PLAIN:
        setattr(training, name, plain[name])


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the last one first."""
    return [path for path in (folder / CHECKPOINT, folder / PREVIOUS) if path.is_file()]


def read_state(folder: Path) -> Record:
    """Return the plain values of a run's checkpoint (`history`, `cpu_seconds`, …); empty without a valid one."""
    for path in _checkpoints(folder):
        try:
            return read_header(path)
        except DamagedError as error:
            log.warning("%s", error)
    return {}


def write_history(folder: Path, history: Sequence[Record]) -> None:
    """Write the history of a run, one JSON record per line."""
    with atomic(folder / HISTORY) as temporary:
        temporary.write_text(_lines(history), encoding="utf-8")


def _lines(history: Sequence[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in history)


def _repair_history(folder: Path, history: Sequence[Record]) -> None:
    """Bring the history file up to the checkpoint: the process may have died between writing the two."""
    path, text = folder / HISTORY, _lines(history)
    current = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if current != _lines(history[:-1]) and (not current or not current.startswith(text)):
        log.warning("%s: is missing or damaged; it is written again", path)
    if current != text:
        write_history(folder, history)
