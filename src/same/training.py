"""The loop around any method: steps, validation, early stopping, checkpoints, history."""

import json
import logging
import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from same.config import Config
from same.episodes import moved
from same.errors import DamagedError, InputError
from same.files import atomic, check_digests, read_json
from same.parallel import ALONE, Ranks
from same.streams import stream
from same.tensors import load_tensors, read_about, save_tensors
from same.weighting import Weighting

Record = dict[str, Any]

log = logging.getLogger("same")

CHECKPOINT, HISTORY, RESULT = "checkpoint.safetensors", "history.jsonl", "result.json"
PREVIOUS = "checkpoint.previous.safetensors"
"""The checkpoint before the last one, in case that one is damaged; a finished run has none."""


class Method(Protocol):
    """What the loop needs to know of a method."""

    def losses(self, model: nn.Module, episode: Any) -> dict[str, Tensor]:
        """The losses to minimise in a step, by task."""

    def evaluate(self, model: nn.Module, episode: Any) -> dict[str, tuple[float, float]]:
        """Loss and score of a validation episode, by task."""

    def adapted(self, model: nn.Module, batch: Any, task: Any) -> dict[str, Tensor]:
        """What a method makes of the parameters before it tells a task, given (task, examples) to adapt to."""


class Sampler(Protocol):
    """Where episodes come from; a draw depends on its arguments alone."""

    steps: int

    def draw(self, epoch: int, step: int) -> Any:
        """The episode of a step of an epoch."""


class DivergedError(InputError):
    """A loss or a gradient is not a finite number."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(
            f"step {step}: {what} is not finite; the last checkpoint is kept. "
            "Lower outer_lr or inner_lr, or set clip, and start a new run"
        )


class InterruptedTraining(Exception):  # noqa: N818
    """Training was asked to stop, and has saved where it stands."""


class GivenUpTraining(Exception):  # noqa: N818
    """Training was found to be worth no more time; it has saved where it stands, and can go on from there."""


@dataclass
class State:
    """Where training stands.

    Attributes:
        step: how many steps were taken.
        history: what each validation found.
        average: a running mean of the parameters, if one is kept: steadier than where the last episodes led.
        best: the model's state at the best validation.
        best_record: what that validation found.
        seconds: how long it took so far.
        cpu_seconds: how much processor time.
    """

    step: int = 0
    history: list[Record] = field(default_factory=list)
    average: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_record: Record | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def train(
    model: nn.Module,
    method: Method,
    sampler: Sampler,
    validation: Sequence[Any],
    config: Config,
    *,
    folder: Path | None = None,
    report: Callable[[int, int, Record], None] = lambda step, steps, news: None,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_seconds: float = 60.0,
    give_up: Callable[[Sequence[Record]], bool] = lambda history: False,
    ranks: Ranks = ALONE,
) -> State:
    """Trains a model in place until validation has not improved for a while, and leaves it in its best state.

    UPDATE is Adam on Σ λ(t) L(t). What is validated and kept is the running mean of the parameters (Polyak & Juditsky,
    1992), θ̄ ← d θ̄ + (1 − d) θ with d = `config.average` once there are enough steps. An interrupted training goes on
    from its checkpoint and ends with the same bits as one that was left alone.

    Args:
        model: what is trained.
        method: gives the losses of a step.
        sampler: gives the episodes.
        validation: the fixed episodes that validation uses.
        config: rates, patience and so on.
        folder: where the checkpoint and the history are kept; nowhere by default.
        report: is told the step, the most steps there may be, and the news (`losses`, or a validation's record).
        stop: asked after every step, and once before, whether to save and raise `InterruptedTraining`.
        checkpoint_seconds: the most time between checkpoints; there is one at every validation in any case.
        give_up: asked with the history after every validation but the last whether to raise `GivenUpTraining`.
        ranks: the processes that train this model together, of which the first one writes and the others follow.
    """
    if config.episodes_per_step % ranks.size:
        raise InputError(f"episodes_per_step: {config.episodes_per_step} do not go evenly to {ranks.size} ranks")
    optimiser = torch.optim.Adam(model.parameters(), lr=config.outer_lr, weight_decay=config.weight_decay, fused=True)

    def begin() -> tuple[State, Any, Any]:
        state = _restore(folder, model, optimiser, config.key) if folder is not None else None
        if state is None:
            state = State()
            if config.average:
                state.average = {name: p.detach().clone().cpu() for name, p in model.named_parameters()}
        return state, {name: value.cpu() for name, value in model.state_dict().items()}, optimiser.state_dict()

    state, *there = ranks.first(begin)
    if ranks.rank:
        model.load_state_dict(there[0])
        optimiser.load_state_dict(there[1])
    state.average = {n: state.average[n].to(p.device) for n, p in model.named_parameters() if n in state.average}
    k = config.episodes_per_step
    steps, every = (math.ceil(epochs * sampler.steps / k) for epochs in (config.epochs, config.validate_every))
    clock = _Clock(state)

    def save() -> None:
        clock.read()
        if folder is not None and ranks.rank == 0:
            _save(folder, model, optimiser, state, config.key)

    stop()  # Whoever is asked knows that from now on there is something to save, at the end of a step.
    if not state.history:
        _validate(model, method, validation, config, state, ranks, epoch=0)
        report(0, steps, state.history[-1])
        save()
    while _goes_on(state, config) and state.step < steps:
        # Asked here, so that a run that is killed before it can ask does so when it is taken up again.
        if state.history[-1]["step"] == state.step and give_up(state.history):
            raise GivenUpTraining
        mine = range(state.step * k + ranks.rank, state.step * k + k, ranks.size)
        losses = _step(model, method, sampler, mine, optimiser, config, state.step, ranks)
        state.step += 1
        _follow(model, state, config.average)
        report(state.step, steps, {"losses": losses})
        if state.step % every == 0 or state.step == steps:
            epoch = min(state.step * k // sampler.steps, config.epochs)
            _validate(model, method, validation, config, state, ranks, epoch=epoch)
            report(state.step, steps, state.history[-1])
            save()
        elif clock.unread() > checkpoint_seconds:
            save()
        if ranks.any(stop()):
            save()
            raise InterruptedTraining
    clock.read()
    model.load_state_dict(state.best)
    return state


def _step(
    model: nn.Module,
    method: Method,
    sampler: Sampler,
    numbers: range,
    optimiser: torch.optim.Optimizer,
    config: Config,
    step: int,
    ranks: Ranks,
) -> dict[str, float]:
    """One UPDATE, from the episodes of these numbers and those of the other ranks; what the losses of ours were."""
    model.train()
    if config.episodes_per_step == 1:
        losses = _gradients(model, method, sampler, numbers[0], config, step)
    else:
        flat, found = _Flat(model), []
        for number in numbers:
            flat.restore()
            found.append(_gradients(model, method, sampler, number, config, step))
            flat.add()
        flat.share(ranks, config.episodes_per_step)
        losses = {task: sum(each[task] for each in found) / len(found) for task in found[0]}
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    if not math.isfinite(norm.item()):
        raise DivergedError(step, "the gradient")
    if norm > (config.clip or math.inf):
        nn.utils.clip_grads_with_norm_(model.parameters(), config.clip, norm)
    optimiser.step()
    return losses


def _gradients(
    model: nn.Module, method: Method, sampler: Sampler, number: int, config: Config, step: int
) -> dict[str, float]:
    """Leaves the gradients of one episode in the parameters; what its losses were."""
    # For dropout, and for weightings that draw: a resumed step draws what it would have drawn.
    torch.manual_seed(int(stream(config.seed, "dropout", config.split, number).integers(2**63)))
    weighting = getattr(model, "weighting", None) or Weighting(config.weights)
    losses = method.losses(model, _on(model, sampler.draw(*divmod(number, sampler.steps))))
    values = {task: loss.item() for task, loss in losses.items()}
    for task, value in values.items():
        if not math.isfinite(value):
            raise DivergedError(step, f"the loss of {task}")
    model.zero_grad()
    weighting.backward(losses, model)
    return values


class _Flat:
    """Sums what several episodes leave in a model, its gradients and its buffers, in one vector.

    Every episode finds the buffers (running means, learned weights) as they were, and their mean is kept. Behind them
    stands which parameters have a gradient at all: those that have none are left alone.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self.buffers = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
        self.before = [buffer.clone() for buffer in self.buffers]
        self.total: Tensor | None = None

    def restore(self) -> None:
        for buffer, value in zip(self.buffers, self.before, strict=True):
            buffer.copy_(value)

    def add(self) -> None:
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        there = torch.tensor([float(p.grad is not None) for p in self.parameters]).to(gradients[0])
        vector = torch.cat([part.reshape(-1) for part in (*gradients, *self.buffers, there)])
        self.total = vector if self.total is None else self.total.add_(vector)

    def share(self, ranks: Ranks, episodes: int) -> None:
        assert self.total is not None
        things = (*self.parameters, *self.buffers)
        *parts, there = ranks.sum(self.total).div_(episodes).split([*(t.numel() for t in things), len(self.parameters)])
        for p, part, known in zip(self.parameters, parts, there.tolist(), strict=False):
            p.grad = part.view_as(p) if known else None
        for buffer, part in zip(self.buffers, parts[len(self.parameters) :], strict=True):
            buffer.copy_(part.view_as(buffer))


def _validate(
    model: nn.Module, method: Method, episodes: Sequence[Any], config: Config, state: State, ranks: Ranks, *, epoch: int
) -> None:
    """Adds the mean losses and scores over some episodes to the history, and keeps the model if it is the best."""
    model.eval()
    with _averaged(model, state):
        mine = {
            i: method.evaluate(model, _on(model, episodes[i])) for i in range(ranks.rank, len(episodes), ranks.size)
        }
        here = {name: value.detach().clone() for name, value in model.state_dict().items()}
    if ranks.size > 1:
        sums = ranks.gather([zlib.crc32(value.cpu().numpy().tobytes()) for value in here.values()])
        if any(each != sums[0] for each in sums):
            raise InputError(f"step {state.step}: the ranks have drifted apart; use machines of one kind")
    shared = {i: rows for part in ranks.gather(mine) for i, rows in part.items()}
    found = [shared[i] for i in range(len(episodes))]
    tasks = {}
    for task in found[0]:
        loss, score = (sum(values) / len(found) for values in zip(*(row[task] for row in found), strict=True))
        for what, value in (("loss", loss), ("score", score)):
            if not math.isfinite(value):
                raise DivergedError(state.step, f"the validation {what} of {task}")
        tasks[task] = {"loss": loss, "score": score}
    # The less, the better, in either case.
    sign = 1 if config.stop_on == "loss" else -1
    weighting = getattr(model, "weighting", None)
    weights = weighting.weights if type(weighting) is Weighting else config.weights
    objective = sign * sum(weights.get(task, 1.0) * row[config.stop_on] for task, row in tasks.items())
    record = {"step": state.step, "epoch": epoch, "objective": objective, "tasks": tasks}
    state.history.append(record)
    if state.best_record is None or objective < state.best_record["objective"]:
        state.best_record, state.best = record, here


def _follow(model: nn.Module, state: State, decay: float) -> None:
    """Brings the running mean of the parameters up to date; at the start it forgets faster."""
    if state.average:
        decay = min(decay, state.step / (state.step + 9))
        torch._foreach_lerp_(list(state.average.values()), [p.detach() for p in model.parameters()], 1 - decay)


@contextmanager
def _averaged(model: nn.Module, state: State) -> Iterator[None]:
    """The model with the running mean in the place of its parameters."""

    def swap() -> None:
        for name, p in model.named_parameters():
            if name in state.average:
                p.data, state.average[name] = state.average[name], p.data

    swap()
    try:
        yield
    finally:
        swap()


def _on(model: nn.Module, episode: Any) -> Any:
    """The episode where the model is."""
    device = next(model.parameters()).device
    return episode if device.type == "cpu" else moved(episode, device)


def _goes_on(state: State, config: Config) -> bool:
    """Whether the best validation is not yet too long ago."""
    assert state.best_record is not None
    return state.history[-1]["epoch"] - state.best_record["epoch"] < config.patience


def is_over(history: Sequence[Record], config: Config) -> bool:
    """Whether a training with this history has come to its end, by patience or by the cap."""
    best = min(history, key=lambda record: record["objective"])
    epoch = history[-1]["epoch"]
    return bool(epoch >= config.epochs or epoch - best["epoch"] >= config.patience)


class _Clock:
    """Adds the time since it was last read to a state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def unread(self) -> float:
        return time.perf_counter() - self.wall

    def read(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.state.seconds += wall - self.wall
        self.state.cpu_seconds += cpu - self.cpu
        self.wall, self.cpu = wall, cpu


def _save(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: State, key: str) -> None:
    """Writes the checkpoint, which holds everything, and the history, which repeats a part of it for people."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in state.average.items()}
    tensors |= {f"best.{name}": value for name, value in state.best.items()}
    for number, slots in optimiser.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{slot}": value for slot, value in slots.items()}
    plain = {name: getattr(state, name) for name in ("step", "history", "best_record", "seconds", "cpu_seconds")}
    with atomic(folder / CHECKPOINT) as temporary:
        save_tensors(tensors, temporary, {**plain, "key": key})
        if (folder / CHECKPOINT).is_file():
            (folder / CHECKPOINT).replace(folder / PREVIOUS)
    _write_history(folder, state)


def _write_history(folder: Path, state: State) -> None:
    with atomic(folder / HISTORY) as temporary:
        temporary.write_text(_lines(state.history), encoding="utf-8")


def _lines(history: Sequence[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in history)


def checkpoints(folder: Path) -> Iterator[Path]:
    """The checkpoints of a run, the last one first; to be left when one is found to be sound."""
    yield from (path for name in (CHECKPOINT, PREVIOUS) if (path := folder / name).is_file())


def read_state(folder: Path) -> Record:
    """What a run's checkpoint says beside its tensors (`history`, `cpu_seconds` …); empty if there is no sound one."""
    for path in checkpoints(folder):
        try:
            return read_about(path)
        except DamagedError as error:
            log.warning("%s", error)
    return {}


def read_history(folder: Path) -> list[Record]:
    """What the validations of a run found; what cannot be vouched for is not taken.

    The result of a finished run has the checksum of its history. Otherwise, and where it is damaged, the checkpoint
    knows.
    """
    try:
        check_digests(folder, {HISTORY: read_json(folder / RESULT)["files"][HISTORY]})
        return [json.loads(line) for line in (folder / HISTORY).read_text(encoding="utf-8").splitlines()]
    except (FileNotFoundError, KeyError):
        pass
    except DamagedError as error:
        log.warning("%s; the checkpoint is asked", error)
    return list(read_state(folder).get("history", []))


def _restore(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, key: str) -> State | None:
    """The state in a folder, if there is one; model and optimiser are put back where they were."""
    for path in checkpoints(folder):
        try:
            tensors, plain = load_tensors(path)
        except DamagedError as error:
            log.warning("%s; going on from an earlier state", error)
            continue
        if plain.pop("key", key) != key:
            raise InputError(f"{path}: is of another run; choose another folder")
        try:
            state = _put_back(tensors, plain, model, optimiser)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: does not fit ({error}); delete it to start the run again") from error
        _mend_history(folder, state)
        return state
    return None


def _put_back(tensors: dict[str, Tensor], plain: Record, model: nn.Module, optimiser: torch.optim.Optimizer) -> State:
    groups: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "best": {}, "adam": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition(".")
        groups[group][rest] = value
    model.load_state_dict(groups["model"])
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in groups["adam"].items():
        number, _, slot = name.partition(".")
        slots.setdefault(int(number), {})[slot] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})
    average = {name: groups["average"][name] for name, _ in model.named_parameters() if name in groups["average"]}
    return State(average=average, best=groups["best"], **plain)


def _mend_history(folder: Path, state: State) -> None:
    """Brings the history up to the checkpoint: the process may have died between the two."""
    path, text = folder / HISTORY, _lines(state.history)
    there = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if there != _lines(state.history[:-1]) and (not there or not there.startswith(text)):
        log.warning("%s: is gone or damaged; it is written again", path)
    if there != text:
        _write_history(folder, state)
