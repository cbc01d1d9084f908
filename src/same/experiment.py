"""The one path from a configuration and graphs to a trained model: the estimator, the commands and studies take it."""

import copy
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from same import __version__, saved
from same.config import Config
from same.episodes import EpisodeSampler, part_examples, to_device, validation_episodes
from same.errors import InputError
from same.files import atomic, clean, locked
from same.graphs import GraphStore, Inputs, Split, load, split
from same.graphs.examples import Examples
from same.graphs.inputs import DEGREE_WITHOUT_ATTRIBUTES
from same.graphs.splits import rare_classes
from same.methods.adapt import Params
from same.methods.base import Method, make_method
from same.nn import Encoder, Model, PyGEncoder
from same.nn.embedding import CHUNK, write_embeddings
from same.nn.encoders import make_encoder
from same.seeding import forked_torch, stream, stream_seed
from same.tasks import GraphTask, make_tasks
from same.training.averaging import Averaging
from same.training.checkpoint import Checkpoint, restore
from same.training.distributed import ALONE, Ranks
from same.training.loop import Record, Rule, Schedule, Training, train
from same.training.progress import Report, ReportFunction
from same.training.stopping import EarlyStopping, Validation
from same.weighting import Weighting, make_weighting

log = logging.getLogger("same")

ADAPT_NODES = 2**18
"""About the most nodes of training graphs that heads are adapted to when training ends."""


@dataclass(frozen=True)
class Custom:
    """Parts of the user's own, each in place of the one that the configuration names.

    Attributes:
        encoder: a module, of which a copy is trained, or a function from the number of input columns to a module.
            A module that is not one of `same.nn`'s encoders is called as `module(x, edge_index)`.
        tasks: task classes, called with the set, or tasks.
        weighting: a weighting, of which a copy is trained.
        method: a method.
    """

    encoder: nn.Module | Callable[[int], nn.Module] | None = None
    tasks: tuple[type[GraphTask] | GraphTask, ...] = ()
    weighting: Weighting | None = None
    method: Method | None = None

    def names(self) -> dict[str, Any]:
        """Return the names of the parts, for messages; nothing is looked up by them."""

        def name(part: Any) -> str | None:
            return None if part is None else str(getattr(part, "__name__", type(part).__name__))

        tasks = {task.name: name(task) for task in self.tasks}
        return {"encoder": name(self.encoder), "tasks": tasks, "weighting": name(self.weighting)}


@dataclass(frozen=True)
class Experiment:
    """What a configuration amounts to: graphs with fitted inputs, split, tasks, method, weighting and a new model."""

    config: Config
    store: GraphStore
    split: Split
    tasks: list[GraphTask]
    model: Model
    method: Method
    weighting: Weighting
    custom: Custom = field(default_factory=Custom)


@dataclass(frozen=True)
class Trained:
    """A trained model with everything needed to use it. Using it changes nothing, so threads may share it.

    Attributes:
        config: configuration of the training.
        custom: the user's own parts.
        tasks: tasks that were learned.
        model: f_θ.
        adapted: θ′ of each task that has a head.
        inputs: input columns of the encoder.
        like: one graph with the attributes and label columns of the training graphs.
        history: record of each validation.
        training: summary of the training.
        options: further values that were saved with the model.
    """

    config: Config
    custom: Custom
    tasks: list[GraphTask]
    model: Model
    adapted: dict[str, Params]
    inputs: Inputs
    like: GraphStore
    history: list[Record]
    training: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

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

    def outputs(self, task: GraphTask, store: GraphStore, pairs: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs of a task's own head for all graphs or nodes of a set, or for pairs of nodes.

        Args:
            task: one of `tasks`.
            store: set with the inputs of this model.
            pairs: for links, [2, p] pairs of nodes of the same graph, counted through all graphs.
        """
        model, rows, order = self.heads[task.name], [], []
        device = next(model.parameters()).device
        with torch.no_grad():
            for start in range(0, len(store), CHUNK):
                stop = min(start + CHUNK, len(store))
                batch, index = store.cut(np.arange(start, stop)).to(device), None
                if pairs is not None:
                    first = store.node_ptr[start]
                    (here,) = np.nonzero((pairs[0] >= first) & (pairs[0] < store.node_ptr[stop]))
                    index = torch.from_numpy(pairs[:, here] - first).to(device)
                    order.append(here)
                rows.append(model(task.name, Examples(batch, torch.empty(0), index)).cpu().numpy())
        joined = np.concatenate(rows)
        return joined[np.argsort(np.concatenate(order))] if order else joined

    def score(self, task: GraphTask, store: GraphStore) -> float:
        """Return the score of a task's own head on a set whose labels are matched to the model's classes by value.

        Links are scored on a fifth of the edges, which are removed, and as many random non-edges: those that
        `same evaluate` draws for test graphs.

        Args:
            task: one of `tasks`.
            store: labelled set with the inputs of this model.
        """
        store = task.match(store)
        if missing := task.missing(store):
            raise InputError(f"score: {task.name} needs {missing}, and {store.name} has none")
        model, ids = self.heads[task.name], np.arange(len(store))
        part = part_examples(store, ids, [task], "test", seed=self.config.seed, split=self.config.split)
        ((_, examples),) = to_device(part, next(model.parameters()).device)
        with torch.no_grad():
            return task.score(model(task.name, examples), examples)

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by name, as `same.saved` writes them."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for task, params in self.adapted.items():
            tensors |= {f"adapted.{task}.{name}": value for name, value in params.items()}
        scaling = {name: torch.from_numpy(getattr(self.inputs, name)) for name in ("mean", "scale")}
        return tensors | {f"inputs.{name}": value for name, value in scaling.items()}


def prepare(config: Config, data: str | Path | None = None) -> Experiment:
    """Load the graphs of a configuration, and build its tasks, method and new model.

    Args:
        config: configuration of a run.
        data: folder of local sets.

    >>> prepare(Config(width=8)).model.encoder.width
    8
    """
    make_method(config)  # A mistake in the settings is reported before a set is downloaded.
    store = load(config.dataset, data)
    if rare := rare_classes(store):
        log.info("%s: graph classes with fewer than ten graphs are absent from some splits: %s", store.name, rare)
    return assemble(config, store, split(store, config.split, config.seed))


def assemble(config: Config, store: GraphStore, parts: Split, custom: Custom | None = None) -> Experiment:
    """Fit the inputs to the training graphs, and build tasks, method, weighting and a new model.

    Args:
        config: configuration; its dataset and split are replaced by those given.
        store: set of graphs.
        parts: training, validation and test graphs.
        custom: the user's own parts.
    """
    inputs = Inputs.fit(store, parts.train, scaling=config.scaling, degree=config.degree, walk=config.walk)
    store, custom = store.with_inputs(inputs), custom or Custom()
    method = custom.method or make_method(config)
    tasks, model = _build(config, store, custom, method)
    first = method.first_phase(config)
    weighable = dict.fromkeys(config.tasks if first is None else config.tasks + first.tasks)
    if unknown := set(config.weights) - set(weighable):
        raise InputError(f"weights: {', '.join(sorted(unknown))}: not among the tasks {', '.join(weighable)}")
    if first is not None:
        make_tasks(first.tasks, store)  # A set that lacks a task of the first phase is refused now.
    weighting = copy.deepcopy(custom.weighting) or make_weighting(config.weighting, config.tasks, config.weights)
    return Experiment(config, store, parts, tasks, model, method, weighting, custom)


def _build(config: Config, store: GraphStore, custom: Custom, method: Method) -> tuple[list[GraphTask], Model]:
    """Build tasks and a new model. The initialisation depends on seed and split alone."""
    kinds = {task.name: task for task in custom.tasks}
    wanted = [kinds.get(name, name) for name in config.tasks]
    tasks = make_tasks(wanted, store, pair=config.pair, linear_heads=config.linear_heads)
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
    batch, is_ours = store.cut([0]), isinstance(module, Encoder | PyGEncoder)
    module.eval()
    try:
        with torch.no_grad():
            h = module(batch) if is_ours else module(batch.x, batch.edge_index)
        width = h.shape[1]
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"encoder: fails on nodes with {store.num_features} input columns: {reason}") from error
    module.train()
    encoder = module if is_ours else PyGEncoder(module, width)
    if h.shape != (batch.num_nodes, encoder.width):
        raise InputError(f"encoder: returned {tuple(h.shape)}, expected one row for each of {batch.num_nodes} nodes")
    return encoder


def fit(
    config: Config,
    store: GraphStore,
    parts: Split,
    *,
    custom: Custom | None = None,
    device: torch.device | None = None,
    report: ReportFunction | None = None,
) -> Trained:
    """Train a model in memory.

    Args:
        config: configuration; its dataset and split are replaced by those given.
        store: set of graphs.
        parts: training and validation graphs.
        custom: the user's own parts.
        device: device to train on; the CPU by default.
        report: function that is called with the progress, see `same.training.Report`.
    """
    experiment = assemble(config, store, parts, custom)
    first = experiment.method.first_phase(config)
    if first is not None:
        begun = replace(experiment.custom, weighting=None, method=None)
        start = fit(first, store, parts, custom=begun, device=device, report=report)
        start_from(experiment.model, start.model.state_dict())
    training, steps = _train(experiment, device=device, report=report)
    return _trained(experiment, training, steps)


def run(
    config: Config,
    folder: Path,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    report: ReportFunction | None = None,
    stop: Callable[[], bool] = lambda: False,
    give_up: Callable[[Sequence[Record]], bool] = lambda history: False,
    ranks: Ranks = ALONE,
) -> dict[str, Any]:
    """Train a configuration in a folder, or continue an interrupted run; a finished run is not done again.

    Args:
        config: configuration of the run.
        folder: folder of the run; see `same.saved`.
        data: folder of local sets.
        device: `cpu`, `cuda`, `mps`, or `auto`: cuda if available, else cpu.
        report: function that is called with the progress, see `same.training.Report`.
        stop: polled after every step; if it returns True, the run is saved and `InterruptedTraining` is raised.
        give_up: function of the history, polled after every validation; see `same.training.EarlyStopping`.
        ranks: processes that train together; only the first one needs the folder.

    Returns:
        The summary of the training, as in `result.json`.
    """

    def resume() -> dict[str, Any] | None:
        saved.check_folder(folder, config)
        return saved.finished(folder)

    if (done := ranks.first(resume)) is not None:
        return done
    experiment, target = prepare(config, data), find_device(device)
    _sampler(experiment), _validation(experiment)  # Only now: a mistake in the configuration leaves nothing behind.
    with ExitStack() as stack:

        def begin() -> None:
            stack.enter_context(locked(folder))
            saved.check_folder(folder, config)
            clean(folder)
            saved.begin(folder, config, saved.describe(experiment.store))

        ranks.first(begin)
        first = experiment.method.first_phase(config)
        if first is not None:
            other = ranks.first(lambda: _first_folder(first, folder))
            run(first, other, data=data, device=device, report=report, stop=stop, ranks=ranks)
            if ranks.rank == 0:  # The others copy its parameters.
                start = saved.read(other).tensors
                start_from(experiment.model, {name.removeprefix("model."): value for name, value in start.items()})
        training, steps = _train(
            experiment, device=target, report=report, folder=folder, stop=stop, give_up=give_up, ranks=ranks
        )

        def finish() -> dict[str, Any]:
            trained = _trained(experiment, training, steps)
            return saved.finish(folder, trained.tensors(), trained.history, trained.training)

        return ranks.first(finish)


def _first_folder(first: Config, folder: Path) -> Path:
    """The folder of the first phase: a finished run beside this one, or else a folder within it."""
    beside = folder.parent / first.key
    return beside if saved.finished(beside) is not None else folder / "first"


def start_from(model: Model, state: Mapping[str, Tensor]) -> None:
    """Copy encoder and heads from the state of another model; heads that it lacks stay as they are."""
    shared = {name: state.get(name, value) for name, value in model.state_dict().items()}
    model.load_state_dict(shared)


def _sampler(experiment: Experiment) -> EpisodeSampler:
    config = experiment.config
    return EpisodeSampler(
        experiment.store,
        experiment.split.train,
        experiment.tasks,
        config.batch_size,
        experiment.method.draw,
        config.seed,
        config.split,
    )


def _validation(experiment: Experiment) -> list[Any]:
    """The validation episodes; every task must have examples in one of them."""
    config, method, store = experiment.config, experiment.method, experiment.store
    episodes = validation_episodes(
        method.draw_validation,
        store,
        experiment.tasks,
        experiment.split.validation,
        count=config.validation_episodes,
        seed=config.seed,
        split=config.split,
    )
    covered = {part.task.name for episode in episodes for part in method.parts(episode) if len(part.target.y)}
    for task in experiment.tasks:
        if method.has_heads and task.name not in covered:
            raise InputError(
                f"{store.name}: the validation graphs of split {config.split} have no examples of {task.name}"
            )
    return episodes


def _train(
    experiment: Experiment,
    *,
    device: torch.device | None,
    report: ReportFunction | None,
    folder: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
    give_up: Callable[[Sequence[Record]], bool] = lambda history: False,
    ranks: Ranks = ALONE,
) -> tuple[Training, int]:
    """Train an experiment; return the training and the number of steps per epoch."""
    config, method = experiment.config, experiment.method
    sampler, validation = _sampler(experiment), _validation(experiment)
    training = Training(
        experiment.model.to(device or torch.device("cpu")),
        config.outer_lr,
        config.weight_decay,
        experiment.weighting.to(device or torch.device("cpu")),
        config.clip,
        seeds=lambda number: stream_seed(config.seed, "dropout", config.split, number),
        ranks=ranks,
        isolate=experiment.custom != Custom(),
    )
    rules: list[Rule] = [Averaging(config.average)] if config.average else []
    rules.append(Validation(method, validation, on=config.stop_on, weights=experiment.weighting.weights))
    rules += [Report(report)] if report is not None else []
    rules += [Checkpoint(folder, config.key, stop=stop)] if folder is not None else []
    rules.append(EarlyStopping(config.patience, give_up))
    schedule = Schedule(method.epochs(config), sampler.steps, config.validate_every, config.episodes_per_step)
    restore(training, folder if ranks.rank == 0 else None, config.key)
    return train(training, method, sampler, schedule, rules), sampler.steps


def _trained(experiment: Experiment, training: Training, steps: int) -> Trained:
    config, store = experiment.config, experiment.store
    assert store.inputs is not None
    assert training.best_record is not None
    inputs = replace(store.inputs, cache=None)
    summary = {
        "key": config.key,
        "steps": training.step,
        "epochs": training.step * config.episodes_per_step // steps,
        "cap": experiment.method.epochs(config),
        "examples": training.examples,
        "best": training.best_record,
        "untrained": training.history[0]["tasks"],
        "seconds": round(training.seconds, 3),
        "cpu_seconds": round(training.cpu_seconds, 3),
        "versions": {
            "same": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy")},
        },
    }
    like = saved.stand_in(saved.describe(store)).with_inputs(inputs)
    adapted = adapted_heads(experiment)
    return Trained(
        config, experiment.custom, experiment.tasks, experiment.model, adapted, inputs, like, training.history, summary
    )


def adapted_heads(experiment: Experiment) -> dict[str, Params]:
    """Return θ′ for each task that has a head, adapted to the training graphs if the method adapts.

    Args:
        experiment: trained experiment; its model is left in evaluation mode.
    """
    config, store, ids = experiment.config, experiment.store, experiment.split.train
    sizes = store.node_ptr[ids + 1] - store.node_ptr[ids]
    if int(sizes.sum()) > ADAPT_NODES:
        order = stream(config.seed, "probes", config.split).permutation(len(ids))
        ids = np.sort(ids[order[: int(np.searchsorted(np.cumsum(sizes[order]), ADAPT_NODES))]])
        log.info("heads are adapted to %d of %d training graphs", len(ids), len(sizes))
    model = experiment.model.eval()
    tasks = [task for task in experiment.tasks if task.name in model.heads]
    batch = part_examples(store, ids, tasks, "train", seed=config.seed, split=config.split)
    batch = to_device(batch, next(model.parameters()).device)
    adapted = {task.name: experiment.method.adapted(model, batch, task) for task in tasks}
    return {task: {name: value.detach() for name, value in params.items()} for task, params in adapted.items()}


def _with_adapted(model: Model, task: str, params: Params) -> Model:
    """A model for one task with adapted parameters. Not a functional call, which is not safe among threads."""
    is_adapted = any(name.startswith("encoder.") for name in params)
    encoder = copy.deepcopy(model.encoder) if is_adapted else model.encoder
    one = Model(encoder, {task: copy.deepcopy(model.heads[task])}).eval()
    one.load_state_dict({name: value for name, value in params.items() if name in one.state_dict()}, strict=False)
    return one


def save(trained: Trained, folder: Path, options: Mapping[str, Any] | None = None) -> None:
    """Write a trained model to a new folder.

    Args:
        trained: model to write; of the user's own parts, only their weights are written.
        folder: folder that does not exist yet or is empty.
        options: further values to keep.
    """
    with atomic(folder, folder=True) as temporary:
        about = {**dict(options or {}), "fitted": True}
        saved.begin(
            temporary, trained.config, saved.describe(trained.like), custom=trained.custom.names(), options=about
        )
        saved.finish(temporary, trained.tensors(), trained.history, trained.training)


def load_trained(folder: Path, *, custom: Custom | None = None, device: str = "cpu") -> Trained:
    """Load the trained model in a folder: a finished run, or a model that was saved.

    Args:
        folder: folder of the model; nothing in it is executed.
        custom: the user's own parts that it was trained with.
        device: device of the model.
    """
    content, custom = saved.read(folder), custom or Custom()
    config, target = content.config, find_device(device)
    _check_custom(folder, content.custom, custom)
    try:
        inputs = _inputs(config, content.tensors)
        if not len(inputs.mean) == len(inputs.scale) == content.graphs["attributes"]:
            raise ValueError(f"inputs of {len(inputs.mean)} attributes, expected {content.graphs['attributes']}")
        like = saved.stand_in(content.graphs).with_inputs(inputs)
        if content.has_heads:
            tasks, model = _build(config, like, custom, custom.method or make_method(config))
        else:
            tasks, model = [], Model(make_encoder(config, like.num_features), {})
        model.load_state_dict(_matching(_below("model.", content.tensors), model.state_dict()))
        adapted = {name: _below(f"adapted.{name}.", content.tensors) for name in model.heads}
        for params in adapted.values():
            _matching(params, {name: value for name, value in model.state_dict().items() if name in params})
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        raise InputError(f"{folder}: does not fit its configuration ({reason}); train or save it again") from error
    model.to(target)
    adapted = {task: {name: p.to(target) for name, p in params.items()} for task, params in adapted.items()}
    return Trained(
        config, custom, tasks, model, adapted, inputs, like, content.history, content.training, content.options
    )


def embed_set(folder: Path, dataset: str, out: Path, *, data: str | Path | None = None, kind: str = "npz") -> int:
    """Write the node embeddings of a set by the encoder of a trained model, and return the number of nodes.

    Args:
        folder: folder of the model; its training graphs are not needed.
        dataset: name, folder or zip of a set whose nodes have the attributes of the training graphs.
        out: file, or for `npy` the folder, to write.
        data: folder of local sets.
        kind: format of the output, see `same.nn.embedding.write_embeddings`.
    """
    trained = load_trained(folder)
    store = load(dataset, data).with_inputs(trained.inputs)
    write_embeddings(trained.encoder, store, out, kind)
    return store.num_nodes


def _inputs(config: Config, tensors: Mapping[str, Tensor]) -> Inputs:
    mean, scale = (tensors[f"inputs.{name}"].numpy() for name in ("mean", "scale"))
    degree = config.degree if len(mean) else config.degree or DEGREE_WITHOUT_ATTRIBUTES
    return Inputs(config.scaling, degree, config.walk, mean, scale)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _matching(tensors: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors if their names, shapes and types are those expected."""
    if odd := sorted(tensors.keys() ^ expected.keys()):
        raise ValueError(f"{odd[0]} {'is missing' if odd[0] in expected else 'is not expected'}")
    for name, value in expected.items():
        shape, dtype = tuple(tensors[name].shape), tensors[name].dtype
        if (shape, dtype) != (tuple(value.shape), value.dtype):
            raise ValueError(f"{name} is {shape}, {dtype}, expected {tuple(value.shape)}, {value.dtype}")
    return tensors


def _check_custom(folder: Path, needed: Mapping[str, Any], custom: Custom) -> None:
    """Refuse to guess what the user's own parts of a model were."""
    for part in ("encoder", "weighting"):
        name, given = needed.get(part), getattr(custom, part)
        if name is not None and given is None and part == "encoder":
            raise InputError(f"{folder}: has an encoder of your own, {name}; pass it as load(…, {part}=…)")
        if name is None and given is not None:
            raise InputError(f"{folder}: has no {part} of your own; load it without one")
    wanted: Mapping[str, str] = needed.get("tasks") or {}
    given_tasks = {task.name for task in custom.tasks}
    if missing := [f"{task} ({name})" for task, name in wanted.items() if task not in given_tasks]:
        raise InputError(f"{folder}: has tasks of your own, {', '.join(missing)}; pass them as load(…, tasks=[…])")
    if odd := given_tasks - set(wanted):
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
