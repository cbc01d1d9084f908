"""A run: from a configuration to a trained model in a folder."""

import copy
import json
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from same import __version__
from same.config import FIRST_TASKS, Config, first_config, make_config, read_config
from same.episodes import (
    Build,
    EpisodeSampler,
    concurrent_batch,
    concurrent_episode,
    count_targets,
    fixed,
    multi_task_episode,
    whole_episode,
)
from same.errors import DamagedError, InputError
from same.files import atomic, check_digests, clean, digests, is_free, locked, read_json, write_json
from same.graphs import GraphStore, Inputs, Split, load, split
from same.graphs.inputs import DEGREE_WITHOUT_ATTRIBUTES
from same.graphs.splits import rare_classes
from same.methods import SAME, Classical, Infomax, Traditional, learn_inner_rates
from same.methods.infomax import add_infomax, infomax_batch
from same.nn import Encoder, Model, PyGEncoder
from same.parallel import ALONE, Ranks
from same.streams import stream
from same.tasks import GraphTask, make_tasks
from same.tensors import load_tensors, save_tensors
from same.training import HISTORY, PREVIOUS, Method, Record, State, read_state, train
from same.training import RESULT as RESULT
from same.weighting import Weighting, make_weighting

log = logging.getLogger("same")

_LEARNED = ("encoder.", "heads.")
CONFIG, MODEL = "config.json", "model.safetensors"


@dataclass(frozen=True)
class Setting:
    """What a configuration amounts to: the graphs, their split, the tasks and a model at its initialisation."""

    store: GraphStore
    split: Split
    tasks: list[GraphTask]
    model: Model


@dataclass(frozen=True)
class Own:
    """Parts of one's own, each in the place of what a configuration names.

    Attributes:
        encoder: a module, of which a copy is trained, or a function from the number of columns to one. What is not one
            of `same.nn`'s encoders is called as `module(x, edge_index)`, as PyG's are.
        tasks: classes, called with the set, or objects; used where the configuration has their names.
        weighting: of which a copy is trained.
    """

    encoder: nn.Module | Callable[[int], nn.Module] | None = None
    tasks: tuple[type[GraphTask] | GraphTask, ...] = ()
    weighting: Weighting | None = None


_NOTHING = Own()


def prepare(config: Config, data: str | Path | None = None) -> Setting:
    """The graphs, tasks and untrained model of a configuration.

    >>> prepare(Config(width=8)).model.encoder.width
    8
    """
    store = load(config.dataset, data)
    if rare := rare_classes(store):
        log.info(
            "%s: graph classes with fewer than ten graphs, absent from some splits: %s", store.name, ", ".join(rare)
        )
    return arrange(config, store, split(store, config.split, config.seed))


def arrange(config: Config, store: GraphStore, parts: Split, own: Own = _NOTHING) -> Setting:
    """What a configuration amounts to for these graphs: inputs fitted to the training graphs, tasks and a model.

    Args:
        config: what to do; its set and split are those given.
        store: the graphs.
        parts: which of them are for training, validation and testing.
        own: parts that the configuration does not name.
    """
    inputs = Inputs.fit(store, parts.train, scaling=config.scaling, degree=config.degree, walk=config.walk)
    store = store.with_inputs(inputs)
    return Setting(store, parts, *assemble(config, store, own))


def assemble(config: Config, store: GraphStore, own: Own = _NOTHING) -> tuple[list[GraphTask], Model]:
    """The tasks of a configuration, and its model at its initialisation, for graphs whose inputs are known."""
    kinds = {task.name: task for task in own.tasks}
    wanted = [kinds.get(name, name) for name in config.tasks]
    tasks = make_tasks(wanted, store, pair=config.pair, linear_heads=config.linear_heads)
    unknown = set(config.weights) - set(config.weighable)
    if unknown:
        raise InputError(f"weights: {', '.join(sorted(unknown))}: not among the tasks {', '.join(config.weighable)}")
    torch.manual_seed(int(stream(config.seed, "init", config.split).integers(2**63)))
    encoder: Any = make_encoder(config, store.num_features)
    if own.encoder is not None:
        encoder = _own_encoder(own.encoder, store)
    width = encoder.width
    heads = {} if config.method == "infomax" else {task.name: task.head(width) for task in tasks}
    weighting = copy.deepcopy(own.weighting) or make_weighting(config.weighting, config.tasks, config.weights)
    model = Model(encoder, heads, weighting)
    if config.method == "infomax":
        add_infomax(model, width)
    if config.learn_inner_lr:
        learn_inner_rates(model, config.inner_lr)
    return tasks, model


def make_encoder(config: Config, columns: int) -> Encoder:
    """The encoder of a configuration, at an initialisation that torch's generator decides."""
    return Encoder(
        columns,
        kind=config.encoder,
        layers=config.layers,
        width=config.width,
        residual=config.residual,
        unit_norm=config.unit_norm,
        batch_norm=config.batch_norm,
        dropout=config.dropout,
    )


def _own_encoder(given: Any, store: GraphStore) -> nn.Module:
    """An encoder from a module of one's own; how wide its rows are is seen from one graph."""
    module = copy.deepcopy(given) if isinstance(given, nn.Module) else given(store.num_features)
    if not isinstance(module, nn.Module):
        raise InputError(f"encoder: gave {type(module).__name__}, expected a torch module")
    batch, ours = store.cut([0]), isinstance(module, Encoder | PyGEncoder)
    module.eval()
    try:
        with torch.no_grad():
            h = module(batch) if ours else module(batch.x, batch.edge_index)
        width = h.shape[1]
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"encoder: fails on graphs whose nodes show {store.num_features} columns: {reason}") from error
    module.train()
    encoder = module if ours else PyGEncoder(module, width)
    if h.shape != (batch.num_nodes, encoder.width):
        raise InputError(f"encoder: gave {tuple(h.shape)}, expected a row for each of {batch.num_nodes} nodes")
    return encoder


def make_method(config: Config) -> tuple[Method, Build, Build]:
    """The method of a configuration, what it learns from, and what it is validated on."""
    inner = (config.inner_lr, config.inner_steps, config.first_order)
    if config.method in ("isame", "esame"):
        return SAME(config.method == "isame", *inner), multi_task_episode, whole_episode
    if config.method == "traditional":
        return Traditional(config.adapts == "all", *inner), concurrent_episode, concurrent_episode
    if config.method == "infomax":
        return Infomax(), infomax_batch, infomax_batch
    return Classical(), concurrent_batch, concurrent_batch


def lessons(config: Config, setting: Setting) -> tuple[Method, EpisodeSampler, list[Any]]:
    """The method of a configuration, the episodes it learns from, and those it is validated on."""
    store, parts, tasks = setting.store, setting.split, setting.tasks
    method, build, build_fixed = make_method(config)
    sampler = EpisodeSampler(store, parts.train, tasks, config.batch_size, build, config.seed, config.split)
    validation = fixed(
        build_fixed,
        store,
        tasks,
        parts.validation,
        count=config.validation_episodes,
        seed=config.seed,
        split=config.split,
    )
    for task in tasks:
        if config.method != "infomax" and not any(count_targets(episode).get(task.name) for episode in validation):
            raise InputError(
                f"{store.name}: the validation graphs of split {config.split} have no examples of {task.name}"
            )
    if config.method == "finetuned":
        make_tasks(FIRST_TASKS, store)
    return method, sampler, validation


def run(
    config: Config,
    folder: Path,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    report: Callable[[int, int, dict[str, Any]], None] = lambda step, steps, news: None,
    stop: Callable[[], bool] = lambda: False,
    give_up: Callable[[Sequence[Record]], bool] = lambda history: False,
    ranks: Ranks = ALONE,
) -> dict[str, Any]:
    """Trains what a configuration says in a folder, or goes on with it; a finished run is not done again.

    Args:
        config: what to do.
        folder: holds `config.json`, `history.jsonl`, `checkpoint.safetensors` and, in the end, `model.safetensors` (the
            best state) and `result.json`.
        data: where local sets lie.
        device: `cpu`, `cuda`, `mps`, or `auto`: cuda where there is one, else cpu.
        report: is told how training goes, see `same.training.train`.
        stop: asked after every step whether to stop.
        give_up: asked with the history after every validation whether to leave the run unfinished.
        ranks: the processes that do it together; only the first one needs the folder.

    Returns:
        The contents of `result.json`.
    """
    if (done := ranks.first(lambda: _done(folder, config))) is not None:
        return done
    setting = prepare(config, data)
    where = find_device(device)
    method, sampler, validation = lessons(config, setting)
    # Only now: a mistake in the configuration leaves nothing behind.
    with ExitStack() as held:

        def begin() -> None:
            held.enter_context(locked(folder))
            _check_folder(folder, config)
            clean(folder)
            with atomic(folder / CONFIG) as temporary:
                temporary.write_text(json.dumps(config.model_dump(mode="json"), indent=1), encoding="utf-8")

        ranks.first(begin)
        if config.method == "finetuned":
            first, beside = ranks.first(lambda: _first_run(config, folder))
            run(first, beside, data=data, device=device, report=report, stop=stop, ranks=ranks)
            if ranks.rank == 0:  # The others begin where it does.
                start_from(setting.model, load_tensors(beside / MODEL)[0])
        setting.model.to(where)
        state = train(
            setting.model,
            method,
            sampler,
            validation,
            config,
            folder=folder,
            report=report,
            stop=stop,
            give_up=give_up,
            ranks=ranks,
        )

        def finish() -> dict[str, Any]:
            with atomic(folder / MODEL) as temporary:
                save_tensors(setting.model.state_dict() | inputs_state(setting.store.inputs), temporary)
            (folder / PREVIOUS).unlink(missing_ok=True)
            result = _result(config, state, sampler.steps)
            result["files"] = digests(folder, (CONFIG, HISTORY, MODEL))  # The result vouches for what it came with.
            write_json(folder / RESULT, result)
            return result

        return ranks.first(finish)


def _done(folder: Path, config: Config) -> dict[str, Any] | None:
    """What came of a run that is finished; refuses a folder that is not its own."""
    _check_folder(folder, config)
    return finished(folder)


def finished(folder: Path) -> dict[str, Any] | None:
    """The result of a finished run, None where there is none; a run with a damaged file is said, and is not finished.

    What is left of it tells how to finish it again: from its checkpoint that takes seconds.
    """
    try:
        result = read_json(folder / RESULT)
        check_digests(folder, result.get("files", {}))
        return result if (folder / MODEL).is_file() else None
    except FileNotFoundError:
        return None
    except DamagedError as error:
        log.warning("%s; the run is finished again", error)
        return None


def _first_run(config: Config, folder: Path) -> tuple[Config, Path]:
    """The run that fine-tuning starts from: the one beside this run if it is done, otherwise one within this run."""
    first = first_config(config)
    beside = folder.parent / first.key
    return first, beside if finished(beside) is not None else folder / "first"


def start_from(model: Model, there: Mapping[str, Tensor]) -> None:
    """Puts a model where another training ended."""
    # What a weighting has learned of three tasks says nothing of one or two.
    own = {name: there.get(name, value) for name, value in model.state_dict().items() if name.startswith(_LEARNED)}
    model.load_state_dict(model.state_dict() | own)


def inputs_state(inputs: Inputs | None) -> dict[str, Tensor]:
    """What the inputs were fitted to, so that a model can be used where its training graphs are not."""
    assert inputs is not None
    return {f"inputs.{name}": torch.from_numpy(getattr(inputs, name)) for name in ("mean", "scale")}


def inputs_from(config: Config, state: Mapping[str, Tensor]) -> Inputs:
    """The inputs of a configuration that were fitted before, from what `inputs_state` kept of them."""
    mean, scale = (state[f"inputs.{name}"].numpy() for name in ("mean", "scale"))
    degree = config.degree if len(mean) else config.degree or DEGREE_WITHOUT_ATTRIBUTES
    return Inputs(config.scaling, degree, config.walk, mean, scale)


@dataclass(frozen=True)
class TrainedRun:
    """A finished run: its configuration, the inputs it was fitted to, and its encoder."""

    config: Config
    inputs: Inputs
    encoder: Encoder
    state: dict[str, torch.Tensor]


def open_run(folder: Path) -> TrainedRun:
    """The finished run in a folder; neither its training graphs nor any pickle is needed."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: holds no run (no {CONFIG})")
    if not (folder / RESULT).is_file():
        if "format" in read_config(folder / CONFIG):
            raise InputError(f"{folder}: holds a model of SAME.save, not a run; open it in Python with SAME.load")
        raise InputError(f"{folder}: the run is not finished; `same train` with the same --out goes on with it")
    config = make_config(read_config(folder / CONFIG), str(folder / CONFIG))
    try:
        known = read_json(folder / RESULT).get("files", {})
        check_digests(folder, {name: known[name] for name in (CONFIG, MODEL) if name in known})
        state, _ = load_tensors(folder / MODEL)
        inputs = inputs_from(config, state)
        encoder = make_encoder(config, inputs.num_features)
        own = {name.removeprefix("encoder."): value for name, value in state.items() if name.startswith("encoder.")}
        encoder.load_state_dict(own)
    except DamagedError as error:
        raise InputError(f"{error}; `same train` with the same --out mends it") from None
    except (OSError, KeyError, RuntimeError) as error:
        raise InputError(
            f"{folder / MODEL}: is damaged or of another version ({error}); delete {RESULT} there and train again"
        ) from error
    encoder.eval()
    return TrainedRun(config, inputs, encoder, state)


def find_device(name: str) -> torch.device:
    """The device of this name; `auto` is cuda where there is one, else cpu.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name not in there:
        raise InputError(f"device: {name!r} is not one of auto, {', '.join(there)}")
    if not there[name]:
        raise InputError(f"device: {name} is not available on this machine; choose cpu or auto")
    return torch.device(name)


def _check_folder(folder: Path, config: Config) -> None:
    """Refuses a folder that holds another run, or anything else."""
    if is_free(folder):
        return
    try:
        if not (folder / CONFIG).is_file():
            raise InputError(f"{folder}: holds other files; choose another folder")
        there = make_config(read_config(folder / CONFIG), str(folder / CONFIG))
        if there != config:
            raise InputError(f"{folder}: holds another run ({config.differences(there)}); choose another folder")
    except InputError:
        if _key(folder) != config.key:
            raise
        log.warning("%s: is gone or damaged; it is written again", folder / CONFIG)


def _key(folder: Path) -> str | None:
    """The key of the configuration of the run in a folder, from what else it left."""
    try:
        return str(read_json(folder / RESULT)["key"])
    except (FileNotFoundError, DamagedError, KeyError):
        return read_state(folder).get("key")


def _result(config: Config, state: State, steps: int) -> dict[str, Any]:
    best, first = state.best_record, state.history[0]
    assert best is not None
    return {
        "key": config.key,
        "steps": state.step,
        "epochs": state.step * config.episodes_per_step // steps,
        "best": best,
        "untrained": first["tasks"],
        "seconds": round(state.seconds, 3),
        "cpu_seconds": round(state.cpu_seconds, 3),
        "versions": {
            "same": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy")},
        },
    }
