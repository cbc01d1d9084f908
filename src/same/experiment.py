"""The one path from a configuration and graphs to a trained model: the estimator, the commands and studies take it."""

import copy
import logging
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from same import __version__, saved
from same.config import Config
from same.episodes import EpisodeSampler, part_examples, to_device, validation_episodes
from same.errors import InputError
from same.files import clean, locked
from same.graphs import GraphStore, Inputs, Split, load, split
from same.graphs.splits import rare_classes
from same.methods.adapt import Params
from same.methods.base import Method, make_method
from same.nn import Model
from same.nn.embedding import write_embeddings
from same.nn.encoders import check_encoder
from same.saved.trained import Custom, Trained, build, describe, find_device, load_trained, stand_in
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

    def sampler(self) -> EpisodeSampler:
        """Return the source of training episodes."""
        config = self.config
        return EpisodeSampler(
            self.store, self.split.train, self.tasks, config.batch_size, self.method.draw, config.seed, config.split
        )

    def validation(self) -> list[Any]:
        """Return the validation episodes; every task must have examples in one of them."""
        config, method, graphs = self.config, self.method, self.split.validation
        episodes = validation_episodes(
            method.draw_validation or method.draw,
            self.store,
            self.tasks,
            graphs,
            count=config.validation_episodes,
            seed=config.seed,
            split=config.split,
        )
        covered = {part.task.name for episode in episodes for part in method.parts(episode) if len(part.target.y)}
        for task in self.tasks:
            if method.has_heads and task.name not in covered:
                where = f"{self.store.name}: the validation graphs of split {config.split}"
                raise InputError(f"{where} have no examples of {task.name}")
        return episodes


def prepare(config: Config, data: str | Path | None = None) -> Experiment:
    """Load the graphs of a configuration, and build its tasks, method and new model.

    >>> prepare(Config(width=8)).model.encoder.width
    8
    """
    make_method(config)  # A mistake in the settings is reported before a set is downloaded.
    store = load(config.dataset, data)
    if rare := rare_classes(store):
        names = ", ".join(rare)
        log.info("%s: graph classes with fewer than ten graphs are absent from some splits: %s", store.name, names)
    return assemble(config, store, split(store, config.split, config.seed))


def assemble(config: Config, store: GraphStore, parts: Split, custom: Custom | None = None) -> Experiment:
    """Fit the inputs to the training graphs, and build tasks, method, weighting and a new model."""
    chosen = {name: getattr(config, name) for name in ("scaling", "degree", "walk", "node_labels")}
    inputs = Inputs.fit(store, parts.train, **chosen)
    store, custom = store.with_inputs(inputs), custom or Custom()
    method = custom.method or make_method(config)
    tasks, model = build(config, store, custom, method)
    if custom.encoder is not None and len(store) > 1:
        with forked_torch(config.seed):
            check_encoder(model.encoder, store.cut([0]), store.cut([1]), second_order=method.second_order)
    first = method.first_phase(config)
    weighable = dict.fromkeys(config.tasks if first is None else config.tasks + first.tasks)
    if unknown := set(config.weights) - set(weighable):
        raise InputError(f"weights: {', '.join(sorted(unknown))}: not among the tasks {', '.join(weighable)}")
    if first is not None:
        make_tasks(first.tasks, store)  # A set that lacks a task of the first phase is refused now.
    weighting = copy.deepcopy(custom.weighting) or make_weighting(config.weighting, config.tasks, config.weights)
    return Experiment(config, store, parts, tasks, model, method, weighting, custom)


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
    _log_unused_labels(experiment, logging.WARNING)
    first = experiment.method.first_phase(config)
    if first is not None:
        begun = replace(experiment.custom, weighting=None, method=None)
        start_from(experiment.model, fit(first, store, parts, custom=begun, device=device, report=report).tensors())
    return _trained(experiment, _train(experiment, device, report))


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
    _log_unused_labels(experiment, logging.INFO)
    experiment.sampler(), experiment.validation()  # A mistake in the configuration leaves no folder behind.
    with ExitStack() as stack:

        def begin() -> None:
            stack.enter_context(locked(folder))
            saved.check_folder(folder, config)
            clean(folder)
            saved.begin(folder, config, {"graphs": describe(experiment.store), "custom": {}, "options": {}})

        ranks.first(begin)
        first = experiment.method.first_phase(config)
        if first is not None:
            other = ranks.first(lambda: _first_folder(first, folder))
            run(first, other, data=data, device=device, report=report, stop=stop, ranks=ranks)
            if ranks.rank == 0:  # The others copy its parameters.
                start_from(experiment.model, saved.read(other).tensors)
        training = _train(experiment, target, report, folder=folder, stop=stop, give_up=give_up, ranks=ranks)

        def finish() -> dict[str, Any]:
            trained = _trained(experiment, training)
            return saved.finish(folder, trained.tensors(), trained.history, trained.training)

        return ranks.first(finish)


def _log_unused_labels(experiment: Experiment, level: int) -> None:
    """Log that node classes are neither predicted nor shown to the encoder."""
    store, first = experiment.store, experiment.method.first_phase(experiment.config)
    column = store.column_name("node")
    if column is None or len(store.labels[column].classes or ()) < 2 or experiment.config.node_labels == "input":
        return
    tasks = experiment.tasks + (make_tasks(first.tasks, store) if first is not None else [])
    if all(task.reads(store) != column for task in tasks):
        hint = "train nc as well, or show them to the encoder with node_labels='input'"
        log.log(level, "%s: has node labels, which are not used; %s", store.name, hint)


def _first_folder(first: Config, folder: Path) -> Path:
    """The folder of the first phase: a finished run in the same parent folder, or else a folder within this one."""
    sibling = folder.parent / first.key
    return sibling if saved.finished(sibling) is not None else folder / "first"


def start_from(model: Model, tensors: dict[str, torch.Tensor]) -> None:
    """Copy encoder and heads from the saved weights of another model; heads that it lacks stay as they are."""
    model.load_state_dict({name: tensors.get(f"model.{name}", value) for name, value in model.state_dict().items()})


def _train(
    experiment: Experiment,
    device: torch.device | None,
    report: ReportFunction | None,
    *,
    folder: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
    give_up: Callable[[Sequence[Record]], bool] = lambda history: False,
    ranks: Ranks = ALONE,
) -> Training:
    config, method, device = experiment.config, experiment.method, device or torch.device("cpu")
    sampler, weighting = experiment.sampler(), experiment.weighting.to(device)
    training = Training(
        experiment.model.to(device),
        config.outer_lr,
        config.weight_decay,
        weighting,
        config.clip,
        seeds=lambda number: stream_seed(config.seed, "dropout", config.split, number),
        ranks=ranks,
        isolate=experiment.custom != Custom(),
    )
    rules: list[Rule] = [Averaging(config.average)] if config.average else []
    rules.append(Validation(method, experiment.validation(), on=config.stop_on, weights=weighting.weights))
    rules += [Report(report)] if report is not None else []
    rules += [Checkpoint(folder, config.key, stop=stop)] if folder is not None else []
    rules.append(EarlyStopping(config.patience, give_up))
    schedule = Schedule(method.epochs(config), sampler.steps, config.validate_every, config.episodes_per_step)
    restore(training, folder if ranks.rank == 0 else None, config.key)
    return train(training, method, sampler, schedule, rules)


def _trained(experiment: Experiment, training: Training) -> Trained:
    config, store = experiment.config, experiment.store
    assert store.inputs is not None
    assert training.best_record is not None
    inputs = replace(store.inputs, cache=None)
    summary = {
        "key": config.key,
        "steps": training.step,
        "epochs": training.step * config.episodes_per_step // experiment.sampler().steps,
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
    like, adapted = stand_in(describe(store)).with_inputs(inputs), adapted_heads(experiment)
    rest = (adapted, inputs, like, training.history, summary)
    return Trained(config, experiment.custom, experiment.tasks, experiment.model, *rest)


def adapted_heads(experiment: Experiment) -> dict[str, Params]:
    """Return θ′ for each task that has a head, adapted to the training graphs if the method adapts."""
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


def embed_set(folder: Path, dataset: str, out: Path, *, data: str | Path | None = None, kind: str = "npz") -> int:
    """Write the node embeddings of a set by the encoder of a trained model, and return the number of nodes."""
    trained = load_trained(folder)
    store = load(dataset, data).with_inputs(trained.inputs)
    write_embeddings(trained.encoder, store, out, kind)
    return store.num_nodes
