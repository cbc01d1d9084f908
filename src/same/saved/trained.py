"""A trained model with everything needed to use it, saved to and loaded from a folder."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from same.config import Config
from same.episodes import part_examples, to_device
from same.errors import InputError
from same.files import atomic
from same.graphs import GraphStore, Inputs
from same.graphs.batch import Examples
from same.graphs.inputs import DEGREE_WITHOUT_ATTRIBUTES
from same.graphs.labels import Labels
from same.linear import LinearHead
from same.methods.adapt import Params
from same.methods.base import Method, make_method
from same.nn import Encoder, Model, PyGEncoder
from same.nn.embedding import CHUNK
from same.nn.encoders import make_encoder
from same.saved.format import begin, finish, read
from same.seeding import forked_torch, stream_seed
from same.tasks import GraphTask, make_tasks, named_task
from same.training.loop import Record
from same.weighting import Weighting

Head = Literal["linear", "own"]
"""What predicts a task: a linear head on the embeddings, or the head that the model was trained with."""


@dataclass(frozen=True)
class Custom:
    """Parts of the user's own, each in place of the one that the configuration names.

    Attributes:
        encoder: a module, of which a copy is trained, or a function from the number of input columns to a module.
            A module that is not one of `same.nn`'s encoders is called as `module(x, edge_index)`.
        tasks: task classes or tasks; `bind` adapts them to the set.
        weighting: a weighting, of which a copy is trained.
        method: a method.
    """

    encoder: nn.Module | Callable[[int], nn.Module] | None = None
    tasks: tuple[type[GraphTask] | GraphTask, ...] = ()
    weighting: Weighting | None = None
    method: Method | None = None

    def names(self) -> dict[str, Any]:
        """Return the names of the parts that `load` needs again; they are for messages only."""

        def name(part: Any) -> str | None:
            return None if part is None else str(getattr(part, "__name__", type(part).__name__))

        return {"encoder": name(self.encoder), "tasks": {task.name: name(task) for task in self.tasks}}


def build(config: Config, store: GraphStore, custom: Custom, method: Method) -> tuple[list[GraphTask], Model]:
    """Build the tasks and a new model of a configuration, whose initialisation depends on seed and split alone."""
    kinds = {task.name: task for task in custom.tasks}
    chosen = [kinds.get(name, name) for name in config.tasks]
    tasks = make_tasks(chosen, store, pair=config.pair, linear_heads=config.linear_heads, pool=config.pool)
    with forked_torch(stream_seed(config.seed, "init", config.split)):
        encoder: Any = make_encoder(config, store.num_features) if custom.encoder is None else _encoder(custom, store)
        heads = {task.name: task.head(encoder.width) for task in tasks} if method.has_heads else {}
        model = Model(encoder, heads)
        method.extend(model, encoder.width)
    return tasks, model


def _encoder(custom: Custom, store: GraphStore) -> nn.Module:
    """Build an encoder from the user's module; its width is read off the embeddings of one graph."""
    given: Any = custom.encoder
    module = copy.deepcopy(given) if isinstance(given, nn.Module) else given(store.num_features)
    if not isinstance(module, nn.Module):
        raise InputError(f"encoder: returned {type(module).__name__}, expected a torch module")
    encoder: Any = module if isinstance(module, Encoder | PyGEncoder) else PyGEncoder(module)
    try:
        with torch.no_grad():
            encoder.eval()(store.cut([0]))
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"encoder: fails on nodes with {store.num_features} input columns: {reason}") from error
    return encoder.train()


@dataclass(frozen=True)
class Trained:
    """A trained model with everything needed to use it. Using it changes nothing, so threads may share it.

    Attributes:
        config: configuration of the training.
        custom: the user's own parts.
        tasks: tasks that were learned, and tasks that were added.
        model: f_θ.
        adapted: θ′ of each task that has a head.
        linear: the linear head of each task.
        inputs: input columns of the encoder.
        like: one graph with the attributes and label columns of the training graphs.
        history: record of each validation.
        training: summary of the training.
        options: further values that were saved with the model.
        added: kind of each task that was added, see `same.tasks.named_task`.
    """

    config: Config
    custom: Custom
    tasks: list[GraphTask]
    model: Model
    adapted: dict[str, Params]
    linear: dict[str, LinearHead]
    inputs: Inputs
    like: GraphStore
    history: list[Record]
    training: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    added: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model.eval()
        _ = self.heads  # Built now, so that threads need not.

    @property
    def encoder(self) -> Any:
        """The trained encoder."""
        return self.model.encoder

    @cached_property
    def heads(self) -> dict[str, Model]:
        """A model for each task, with θ′ as its parameters."""
        return {task: _with_adapted(self.model, task, params) for task, params in self.adapted.items()}

    def check(self, task: GraphTask, head: Head) -> None:
        """Refuse a head that the model does not have."""
        if head not in get_args(Head):
            raise InputError(f"head: {head!r} is not one of {', '.join(get_args(Head))}")
        if head == "linear" and task.name not in self.linear:
            made = self.training.get("versions", {}).get("same", "0.1")
            raise InputError(f"{task.name}: the model, of version {made}, has no linear heads; use head='own'")
        if head == "own" and task.name not in self.heads:
            raise InputError(
                f"{task.name}: method={self.config.method} leaves no head of its own for this task; use head='linear'"
            )

    def output(self, task: GraphTask, examples: Examples, head: Head = "linear") -> Tensor:
        """Return the outputs of a head of a task for some examples: logits, or numbers."""
        self.check(task, head)
        with torch.no_grad():
            if head == "own":
                return self.heads[task.name](task.name, examples).cpu()
            linear = self.linear[task.name]
            h = self.encoder(examples.inputs) if examples.embeddings is None else examples.embeddings
            x = task.pooled(linear.pool).features(h, examples)
            return torch.from_numpy(linear.outputs(x.cpu().numpy(), getattr(task, "outputs", 0)))

    def outputs(
        self, task: GraphTask, store: GraphStore, pairs: np.ndarray | None = None, *, head: Head = "linear"
    ) -> np.ndarray:
        """Return the outputs of a head of a task for all graphs or nodes of a set, or for pairs of nodes."""
        rows, order = [], []
        device = next(self.model.parameters()).device
        for start in range(0, len(store), CHUNK):
            stop = min(start + CHUNK, len(store))
            batch, index = store.cut(np.arange(start, stop)).to(device), None
            if pairs is not None:
                first = store.node_ptr[start]
                (here,) = np.nonzero((pairs[0] >= first) & (pairs[0] < store.node_ptr[stop]))
                index = torch.from_numpy(pairs[:, here] - first).to(device)
                order.append(here)
            rows.append(self.output(task, Examples(batch, torch.empty(0), index), head).numpy())
        joined = np.concatenate(rows)
        return joined[np.argsort(np.concatenate(order))] if order else joined

    def score(self, task: GraphTask, store: GraphStore, *, head: Head = "linear") -> float:
        """Return the score of a head of a task on a labelled set; classes are matched by value.

        Links are scored on a fifth of the edges, which are removed, and as many random non-edges: those that
        `same evaluate` draws for test graphs.
        """
        self.check(task, head)
        store = task.match(store)
        if missing := task.missing(store):
            raise InputError(f"score: {task.name} needs {missing}, and {store.name} has none")
        part = part_examples(
            store, np.arange(len(store)), [task], "test", seed=self.config.seed, split=self.config.split
        )
        ((_, examples),) = to_device(part, next(self.model.parameters()).device)
        return task.score(self.output(task, examples, head), replace(examples, y=examples.y.cpu()))

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by name, as they are written to disk."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for task, params in self.adapted.items():
            tensors |= {f"adapted.{task}.{name}": value for name, value in params.items()}
        for task, head in self.linear.items():
            tensors |= {f"linear.{task}.{name}": torch.from_numpy(a) for name, a in head.to_tensors()[0].items()}
        scaling = {name: torch.from_numpy(getattr(self.inputs, name)) for name in ("mean", "scale")}
        return tensors | {f"inputs.{name}": value for name, value in scaling.items()}


def _with_adapted(model: Model, task: str, params: Params) -> Model:
    """A model for one task with adapted parameters. Not a functional call, which is not safe among threads."""
    is_adapted = any(name.startswith("encoder.") for name in params)
    encoder = copy.deepcopy(model.encoder) if is_adapted else model.encoder
    one = Model(encoder, {task: copy.deepcopy(model.heads[task])}).eval()
    one.load_state_dict({name: value for name, value in params.items() if name in one.state_dict()}, strict=False)
    return one


def describe(store: GraphStore) -> dict[str, Any]:
    """Describe what a model must know of its training graphs: attributes, label columns, classes it is shown."""
    labels = {
        name: {
            "level": column.level,
            "classes": None if column.classes is None else list(column.classes),
            "shape": list(column.y.shape[1:]),
        }
        for name, column in store.labels.items()
    }
    shown = None if store.inputs is None else store.inputs.classes
    return {"attributes": store.x.shape[1], "labels": labels} | ({} if shown is None else {"shown": list(shown)})


def stand_in(graphs: Mapping[str, Any]) -> GraphStore:
    """Build the smallest set, two nodes and an edge, that fits a description: enough to make tasks and heads."""
    labels = {}
    for name, column in graphs["labels"].items():
        rows = 1 if column["level"] == "graph" else 2
        if column["classes"] is None:
            labels[name] = Labels(column["level"], np.zeros((rows, *column["shape"]), np.float32))
        else:
            labels[name] = Labels(column["level"], np.zeros(rows, np.int32), tuple(column["classes"]))
    x = np.zeros((2, int(graphs["attributes"])), np.float32)
    return GraphStore.build("model", x=x, sizes=[2], edge_index=[[0], [1]], labels=labels)


def save_trained(trained: Trained, folder: Path, options: Mapping[str, Any] | None = None) -> None:
    """Write a trained model to a new folder."""
    about = {"graphs": describe(trained.like), "custom": trained.custom.names(), "added": trained.added}
    with atomic(folder, folder=True) as temporary:
        begin(
            temporary, trained.config, {**about, "options": {**trained.options, **dict(options or {}), "fitted": True}}
        )
        finish(temporary, trained.tensors(), trained.history, trained.training)


def load_trained(folder: Path, *, custom: Custom | None = None, device: str = "cpu") -> Trained:
    """Load the trained model in a folder: a finished run, or a model that was saved."""
    content, custom, target = read(folder), custom or Custom(), find_device(device)
    config, about, tensors = content.config, content.about, content.tensors
    _check_custom(folder, about["custom"], custom)
    try:
        mean, scale = (tensors[f"inputs.{name}"].numpy() for name in ("mean", "scale"))
        if not len(mean) == len(scale) == about["graphs"]["attributes"]:
            raise ValueError(f"inputs of {len(mean)} attributes, expected {about['graphs']['attributes']}")
        shown = about["graphs"].get("shown")
        degree = config.degree if len(mean) else config.degree or DEGREE_WITHOUT_ATTRIBUTES
        inputs = Inputs(config.scaling, degree, config.walk, mean, scale, None if shown is None else tuple(shown))
        like = stand_in(about["graphs"]).with_inputs(inputs)
        if about["options"].get("encoder_only"):
            model, tasks = Model(make_encoder(config, like.num_features), {}), list[GraphTask]()
        else:
            tasks, model = build(config, like, custom, custom.method or make_method(config))
        added = dict(about.get("added", {}))
        tasks += [named_task(kind, name, config.pair).bind(like) for name, kind in added.items()]
        model.load_state_dict(_below("model.", tensors))
        adapted = {name: _below(f"adapted.{name}.", tensors) for name in model.heads}
        adapted = {task: {name: p.to(target) for name, p in params.items()} for task, params in adapted.items()}
        kept = {name: _below(f"linear.{name}.", tensors) for name in content.training.get("linear", {})}
        linear = {n: LinearHead.from_tensors(arrays, content.training["linear"][n]) for n, arrays in kept.items()}
        rest = (content.history, content.training, about["options"], added)
        return Trained(config, custom, tasks, model.to(target), adapted, linear, inputs, like, *rest)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{folder}: does not fit its configuration ({reason}); train or save it again") from error


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _check_custom(folder: Path, needed: Mapping[str, Any], custom: Custom) -> None:
    """Refuse to guess what the user's own parts of a model were."""
    name, wanted = needed.get("encoder"), needed.get("tasks") or {}
    if name is not None and custom.encoder is None:
        raise InputError(f"{folder}: has an encoder of your own, {name}; pass it as load(…, encoder=…)")
    if name is None and custom.encoder is not None:
        raise InputError(f"{folder}: has no encoder of your own; load it without one")
    given = {task.name for task in custom.tasks}
    if missing := [f"{task} ({name})" for task, name in wanted.items() if task not in given]:
        raise InputError(f"{folder}: has tasks of your own, {', '.join(missing)}; pass them as load(…, tasks=[…])")
    if odd := given - set(wanted):
        raise InputError(f"{folder}: has no task of your own called {', '.join(sorted(odd))}; load it without")


def find_device(name: str) -> torch.device:
    """Return a device by name; `auto` is cuda if available, else cpu.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name not in available:
        raise InputError(f"device: {name!r} is not one of auto, {', '.join(available)}")
    if not available[name]:
        raise InputError(f"device: {name} is not available on this machine; choose cpu or auto")
    return torch.device(name)
