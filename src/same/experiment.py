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

import torch

from same import __version__, saved
from same.config import Config
from same.episodes import (
    HEAD_NODES,
    VALIDATION_NODES,
    EpisodeSampler,
    part_examples,
    sample_graphs,
    to_device,
    validation_episodes,
)
from same.errors import InputError
from same.files import clean, locked
from same.graphs import GraphStore, Inputs, Split, load, split
from same.graphs.batch import Examples
from same.graphs.flat import Array
from same.graphs.splits import rare_classes
from same.linear import LinearHead, fit_head
from same.methods.adapt import Params
from same.methods.base import Method, make_method
from same.nn import Model
from same.nn.embedding import encode_once, in_pieces, write_embeddings
from same.nn.encoders import check_encoder
from same.saved.trained import Custom, Trained, build, describe, find_device, load_trained, stand_in
from same.seeding import forked_torch, stream_seed
from same.tasks import GraphTask, Task, make_tasks
from same.tasks.task import features
from same.training.averaging import Averaging
from same.training.checkpoint import Checkpoint, restore
from same.training.distributed import ALONE, Ranks
from same.training.loop import Record, Rule, Schedule, Training, train
from same.training.progress import Estimate, Report, ReportFunction
from same.training.ridge import RidgeValidation
from same.training.stopping import EarlyStopping, TimeLimit, Validation
from same.weighting import Weighting, make_weighting

log = logging.getLogger("same")

MAX_EPOCHS, MAX_STEPS = 200, 20_000
"""Training ends by default after so many epochs, or before them after about so many steps."""
VALIDATION_GRAPHS = 200
"""Most training graphs that the ridge classifiers of a validation are fitted to."""

TaskExamples = list[tuple[GraphTask, Examples]]


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

    def schedule(self) -> Schedule:
        """Return how long to train and how often to validate."""
        config, steps, every = self.config, self.sampler().steps, float(self.config.validate_every)
        epochs = config.max_epochs or min(MAX_EPOCHS, max(1, MAX_STEPS * config.episodes_per_step // steps))
        if config.max_epochs is None and epochs < MAX_EPOCHS:  # A large set: ten validations in these few epochs.
            every = min(every, epochs / 10)
        return Schedule(epochs if self.method.trains else 0, steps, every, config.episodes_per_step, config.max_seconds)

    def validation(self) -> Validation:
        """Return the rule that validates the model; every task must have examples to validate it on."""
        config, method, graphs = self.config, self.method, self.split.validation
        if not len(graphs):
            return Validation(method)
        own = config.stop_on == "loss" or not method.has_heads  # Without heads, no labels choose the model.
        draw = method.draw_validation or method.draw
        keys = {"seed": config.seed, "split": config.split}
        count = config.validation_episodes if own else 0
        episodes = validation_episodes(draw, self.store, self.tasks, graphs, count=count, **keys)
        some = self._some(self.split.train, max(2, min(VALIDATION_GRAPHS, len(self.split.train) // 2)))
        # Edges are few, and drawn: a second draw shows other ones.
        links = [task for task in self.tasks if task.kind == "links"]
        train = self.examples("train", some) + self.examples("again", some, links)
        shown = self.examples("validation", self._some(graphs))
        targets = [(part.task, part.target) for episode in episodes for part in method.parts(episode)]
        given: dict[str, list[Sequence[tuple[Task, Examples]]]] = {"training": [train], "validation": [shown, targets]}
        for name, sets in given.items():
            for examples, task in [(each, task) for each in sets for task in dict.fromkeys(t.name for t, _ in each)]:
                if not sum(len(each.y) for other, each in examples if other.name == task):
                    where = f"{self.store.name}: the {name} graphs of split {config.split}"
                    raise InputError(f"{where} have no examples of {task}")
        return Validation(method, episodes, probe=RidgeValidation(train, shown), weights=self.weighting.weights)

    def examples(self, part: str, ids: Array, tasks: Sequence[GraphTask] | None = None) -> TaskExamples:
        """Return the examples of tasks, by default all, on some graphs, or on a sample of very many."""
        tasks, keys = self.tasks if tasks is None else tasks, {"seed": self.config.seed, "split": self.config.split}
        batch = part_examples(self.store, self._some(ids, nodes=HEAD_NODES), tasks, part, **keys)
        return to_device(batch, next(self.model.parameters()).device)

    def _some(self, ids: Array, most: int | None = None, nodes: int = VALIDATION_NODES) -> Array:
        """Return the given graphs, or a random sample of at most so many graphs and about so many nodes."""
        return sample_graphs(self.store, ids, nodes, most=most, seed=self.config.seed, split=self.config.split)


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
    rules += [TimeLimit(), experiment.validation()]
    rules += [Report(report)] if report is not None else []
    # What trains in a folder shows its progress by `report`.
    rules += [Checkpoint(folder, config.key, stop=stop)] if folder is not None else [Estimate()]
    rules.append(EarlyStopping(config.patience, give_up))
    restore(training, folder if ranks.rank == 0 else None, config.key)
    return train(training, method, sampler, experiment.schedule(), rules)


def _trained(experiment: Experiment, training: Training) -> Trained:
    config, store, schedule = experiment.config, experiment.store, experiment.schedule()
    assert store.inputs is not None
    assert training.best_record is not None
    inputs = replace(store.inputs, cache=None)
    summary: dict[str, Any] = {
        "key": config.key,
        "steps": training.step,
        "epochs": training.step * config.episodes_per_step // schedule.steps_per_epoch,
        "cap": schedule.epochs,
        "ended": training.ended,
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
    adapted, linear = fit_heads(experiment)
    summary["linear"] = {task: head.to_tensors()[1] for task, head in linear.items()}
    like = stand_in(describe(store)).with_inputs(inputs)
    rest = (adapted, linear, inputs, like, training.history, summary)
    return Trained(config, experiment.custom, experiment.tasks, experiment.model, *rest)


def fit_heads(experiment: Experiment) -> tuple[dict[str, Params], dict[str, LinearHead]]:
    """Fit what predicts each task: θ′, adapted to the training graphs if the method adapts, and a linear head."""
    split, model, tasks = experiment.split, experiment.model.eval(), experiment.tasks
    train = experiment.examples("train", split.train)
    own = [(task, each) for task, each in train if task.name in model.heads]
    adapted = {task.name: experiment.method.adapted(model, own, task) for task, _ in own}
    adapted = {task: {name: value.detach() for name, value in params.items()} for task, params in adapted.items()}
    parts = [train, experiment.examples("validation", split.validation)] if len(split.validation) else [train]
    if len(parts) < 2:
        log.warning("%s: no validation graphs: linear heads have C = 1 and are not calibrated", experiment.store.name)
    with torch.no_grad():
        embedded = [encode_once(in_pieces(model.encoder), [each for _, each in part]) for part in parts]
    sets = [[features(task, e) for e in each] for task, *each in zip(tasks, *embedded, strict=True)]
    return adapted, {task.name: fit_head(task.kind, *each) for task, each in zip(tasks, sets, strict=True)}


def embed_set(folder: Path, dataset: str, out: Path, *, data: str | Path | None = None, kind: str = "npz") -> int:
    """Write the node embeddings of a set by the encoder of a trained model, and return the number of nodes."""
    trained = load_trained(folder)
    store = load(dataset, data).with_inputs(trained.inputs)
    write_embeddings(trained.encoder, store, out, kind)
    return store.num_nodes
