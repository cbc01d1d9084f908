"""What fitting leaves behind: everything that is needed to use a model without the graphs it was fitted to."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from same import __version__
from same.config import Config, first_config, make_config, read_config
from same.errors import DamagedError, InputError
from same.files import atomic, seal, unsealed
from same.graphs import GraphStore, Inputs, Split
from same.methods.adapt import Params
from same.nn import Model
from same.probes.evaluate import adapted_heads
from same.runs import (
    CONFIG,
    MODEL,
    Own,
    Setting,
    arrange,
    assemble,
    inputs_from,
    inputs_state,
    lessons,
    start_from,
)
from same.tasks import GraphTask
from same.tensors import load_tensors, save_tensors
from same.training import Record, State, train

Array = np.ndarray
Report = Callable[[int, int, dict[str, Any]], None]

FORMAT = 1


@dataclass(frozen=True)
class Fitted:
    """A model that has learned; nothing in it changes when it is used, so that many threads may.

    Attributes:
        config: what was done.
        own: what no configuration names.
        tasks: what was learned.
        model: f_θ.
        adapted: θ′ of each task that has a head, adapted to the training graphs.
        inputs: what the encoder sees of a node.
        like: one graph with the columns, classes and targets of the training graphs.
        classes: the labels of graphs, where they are not 0, 1, …
        history: what each validation found.
    """

    config: Config
    own: Own
    tasks: list[GraphTask]
    model: Model
    adapted: dict[str, Params]
    inputs: Inputs
    like: GraphStore
    classes: list[Any] | None
    history: list[Record]

    @cached_property
    def heads(self) -> dict[str, Model]:
        """A model for each task, with θ′ in its place."""
        return {task: _with_adapted(self.model, task, params) for task, params in self.adapted.items()}


def fit(
    config: Config,
    own: Own,
    store: GraphStore,
    parts: Split,
    classes: list[Any] | None,
    device: torch.device,
    report: Report,
) -> Fitted:
    """Trains what a configuration and parts of one's own say, as `same.runs.run` does, and adapts the heads."""
    # What torch draws elsewhere does not depend on what was fitted.
    with torch.random.fork_rng(devices=[]):
        setting = arrange(config, store, parts, own)
        state = _learn(config, own, setting, store, device, report)
        adapted = adapted_heads(config, setting, setting.model)
    assert setting.store.inputs is not None
    inputs = replace(setting.store.inputs, cache=None)
    like = _stand_in(_description(store)).with_inputs(inputs)
    return _checked(Fitted(config, own, setting.tasks, setting.model, adapted, inputs, like, classes, state.history))


def _learn(
    config: Config, own: Own, setting: Setting, store: GraphStore, device: torch.device, report: Report
) -> State:
    method, sampler, validation = lessons(config, setting)
    if config.method == "finetuned":
        first, begun = first_config(config), replace(own, weighting=None)
        start = arrange(first, store, setting.split, begun)
        _learn(first, begun, start, store, device, report)
        start_from(setting.model, start.model.state_dict())
    setting.model.to(device)
    return train(setting.model, method, sampler, validation, config, report=report)


def _checked(fitted: Fitted) -> Fitted:
    fitted.model.eval()
    _ = fitted.heads  # Made now, so that threads need not agree on who makes them.
    return fitted


def _with_adapted(model: Model, task: str, params: Params) -> Model:
    """A model for one task with adapted parameters. Not a functional call: those are not safe among threads."""
    moves = any(name.startswith("encoder.") for name in params)
    encoder = copy.deepcopy(model.encoder) if moves else model.encoder
    one = Model(encoder, {task: copy.deepcopy(model.heads[task])}).eval()
    one.load_state_dict({name: value for name, value in params.items() if name in one.state_dict()}, strict=False)
    return one


def save(fitted: Fitted, folder: Path, further: Mapping[str, Any]) -> None:
    """Writes what was fitted to a new folder: `config.json` and `model.safetensors`.

    Args:
        fitted: what to write; of the parts of one's own, only what they have learned.
        folder: must not exist yet, or be empty.
        further: what else to keep in `config.json`, as plain values.
    """
    tensors = {f"model.{name}": value for name, value in fitted.model.state_dict().items()}
    for task, params in fitted.adapted.items():
        tensors |= {f"adapted.{task}.{name}": value for name, value in params.items()}
    tensors |= inputs_state(fitted.inputs)
    own = fitted.own
    about = {
        "format": FORMAT,
        "same": __version__,
        "config": fitted.config.model_dump(mode="json"),
        "own": {
            "encoder": None if own.encoder is None else _name_of(own.encoder),
            "tasks": {task.name: _name_of(task) for task in own.tasks},
            "weighting": None if own.weighting is None else _name_of(own.weighting),
        },
        "graphs": _description(fitted.like),
        "classes": fitted.classes,
        "history": fitted.history,
        "further": dict(further),
    }
    with atomic(folder, folder=True) as temporary:
        # Copies, because tensors that share their memory, as tied weights do, are refused.
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        save_tensors(copies, temporary / MODEL)
        (temporary / CONFIG).write_text(seal(about), encoding="utf-8")


def load(folder: Path, own: Own, device: torch.device) -> tuple[Fitted, dict[str, Any]]:
    """What `save` wrote to a folder; nothing in it is executed.

    Args:
        folder: where it is.
        own: the parts of one's own that it was fitted with.
        device: where to put the model.

    Returns:
        What was fitted, and what else was kept.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: holds no model (no {CONFIG})")
    about = read_config(folder / CONFIG)
    if "format" not in about:
        raise InputError(f"{folder}: holds no model of SAME.save; `same embed` and `same evaluate` use runs")
    if about["format"] != FORMAT:
        raise InputError(f"{folder}: written in format {about['format']}, this version reads {FORMAT}")
    try:
        about = unsealed(about)
        state, _ = load_tensors(folder / MODEL)
        config = make_config(about["config"], str(folder / CONFIG))
        _check_own(folder, about["own"], own)
        inputs, described = inputs_from(config, state), about["graphs"]
        if not len(inputs.mean) == len(inputs.scale) == described["attributes"]:
            raise ValueError(f"inputs of {len(inputs.mean)} attributes, expected {described['attributes']}")
        like = _stand_in(described).with_inputs(inputs)
        with torch.random.fork_rng(devices=[]):
            tasks, model = assemble(config, like, own)
        model.load_state_dict(_matching(_below("model.", state), model.state_dict()))
        adapted = {name: _below(f"adapted.{name}.", state) for name in model.heads}
        for params in adapted.values():
            _matching(params, {name: value for name, value in model.state_dict().items() if name in params})
        classes, history, further = about["classes"], list(about["history"]), dict(about["further"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, InputError) and not isinstance(error, DamagedError):
            raise
        raise InputError(f"{folder}: is damaged or not of this version ({_line(error)}); save it again") from error
    model.to(device)
    adapted = {task: {name: p.to(device) for name, p in params.items()} for task, params in adapted.items()}
    return _checked(Fitted(config, own, tasks, model, adapted, inputs, like, classes, history)), further


def _below(start: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}


def _matching(found: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors found, if their names, shapes and types are those expected."""
    if odd := sorted(found.keys() ^ expected.keys()):
        what = "is missing" if odd[0] in expected else "is one too many"
        raise ValueError(f"{odd[0]} {what}")
    for name, value in expected.items():
        there = (tuple(found[name].shape), found[name].dtype)
        if there != (tuple(value.shape), value.dtype):
            raise ValueError(f"{name} is {there[0]}, {there[1]}, expected {tuple(value.shape)}, {value.dtype}")
    return found


def _check_own(folder: Path, needed: dict[str, Any], own: Own) -> None:
    """Refuses to guess what a model's own parts were."""
    for part in ("encoder", "weighting"):
        name, given = needed[part], getattr(own, part)
        if name is not None and given is None:
            raise InputError(f"{folder}: has a {part} of its own, {name}; give it as SAME.load(…, {part}=…)")
        if name is None and given is not None:
            raise InputError(f"{folder}: has no {part} of its own; load it without one")
    given_tasks = {task.name for task in own.tasks}
    if missing := [f"{task} ({name})" for task, name in needed["tasks"].items() if task not in given_tasks]:
        raise InputError(f"{folder}: has tasks of its own, {', '.join(missing)}; give them as SAME.load(…, tasks=[…])")
    if odd := given_tasks - set(needed["tasks"]):
        raise InputError(f"{folder}: has no task of its own called {', '.join(sorted(odd))}; load it without")


def _name_of(thing: Any) -> str:
    """What to call something of one's own in a message; nothing is looked up by it."""
    return str(getattr(thing, "__name__", type(thing).__name__))


def _line(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _description(store: GraphStore) -> dict[str, Any]:
    """How many attributes, which classes and how many targets a set has."""
    about: dict[str, Any] = {"attributes": store.x.shape[1]}
    for kind, y, classes in (
        ("graph", store.graph_y, store.graph_classes),
        ("node", store.node_y, store.node_classes),
    ):
        about[f"{kind}_classes"] = None if classes is None else list(classes)
        about[f"{kind}_targets"] = None if y is None or classes is not None else list(y.shape[1:])
    return about


def _stand_in(about: Mapping[str, Any]) -> GraphStore:
    """The smallest set, two nodes and an edge, that a description fits: enough to make tasks and heads for."""

    def labels(kind: str, rows: int) -> Array | None:
        if about[f"{kind}_classes"] is not None:
            return np.zeros(rows, np.int32)
        shape = about[f"{kind}_targets"]
        return None if shape is None else np.zeros((rows, *shape), np.float32)

    return GraphStore.build(
        "model",
        x=np.zeros((2, int(about["attributes"]))),
        sizes=[2],
        edge_index=[[0], [1]],
        graph_y=labels("graph", 1),
        node_y=labels("node", 2),
        graph_classes=about["graph_classes"],
        node_classes=about["node_classes"],
    )
