"""The one format of a trained model on disk. The folder of a run is the folder of a model, with checkpoints beside.

`config.json` holds the settings, `model.safetensors` the weights, `history.jsonl` the validations, and `result.json`
the summary of the training with checksums of the other three. A folder with a valid result is finished.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from same import __version__
from same.config import Config, make_config, read_config
from same.errors import DamagedError, InputError
from same.files import (
    CONFIG,
    HISTORY,
    MODEL,
    PREVIOUS,
    RESULT,
    atomic,
    check_digests,
    digests,
    is_free,
    load_tensors,
    read_json,
    save_tensors,
    seal,
    unseal,
    write_json,
)
from same.graphs.labels import Labels
from same.graphs.store import GraphStore
from same.training.checkpoint import read_state, write_history
from same.training.loop import Record

log = logging.getLogger("same")

FORMAT = 2
"""Number of the format; it changes when a version can no longer read what another one wrote."""

_FILES = (CONFIG, MODEL, HISTORY, RESULT)


@dataclass(frozen=True)
class Saved:
    """The contents of a model's folder.

    Attributes:
        config: configuration of the training.
        custom: names of the user's own parts, for messages.
        graphs: attributes and label columns of the training graphs, see `describe`.
        options: further values of whoever saved the model.
        tensors: weights by name: `model.…`, `adapted.TASK.…` and `inputs.…`.
        history: record of each validation.
        training: summary of the training.
        has_heads: whether the weights of heads can be used; version 0.1 did not save those of runs in full.
    """

    config: Config
    custom: dict[str, Any]
    graphs: dict[str, Any]
    options: dict[str, Any]
    tensors: dict[str, Tensor]
    history: list[Record]
    training: dict[str, Any]
    has_heads: bool = True


def begin(
    folder: Path,
    config: Config,
    graphs: Mapping[str, Any],
    *,
    custom: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write the settings of a model into its folder, before it is trained.

    Args:
        folder: folder of the model.
        config: configuration of the training.
        graphs: description of the training graphs, see `describe`.
        custom: names of the user's own parts.
        options: further values to keep.
    """
    header = {"format": FORMAT, "same": __version__, "config": config.model_dump(mode="json")}
    text = seal({**header, "graphs": dict(graphs), "custom": dict(custom or {}), "options": dict(options or {})})
    with atomic(folder / CONFIG) as temporary:
        temporary.write_text(text, encoding="utf-8")


def finish(
    folder: Path, tensors: Mapping[str, Tensor], history: Sequence[Record], training: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a trained model into its folder, and mark the folder as finished.

    Args:
        folder: folder that `begin` has written to.
        tensors: weights by name.
        history: record of each validation.
        training: summary of the training.

    Returns:
        The summary with checksums of the other files.
    """
    with atomic(folder / MODEL) as temporary:
        # Copies, because safetensors refuses tensors that share memory, as tied weights do.
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        save_tensors(copies, temporary)
    write_history(folder, history)
    (folder / PREVIOUS).unlink(missing_ok=True)
    result = {**training, "files": digests(folder, (CONFIG, HISTORY, MODEL))}
    write_json(folder / RESULT, result)
    return result


def finished(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a finished model, or None.

    A damaged file is reported, and its model is not finished: training again from the checkpoint takes seconds.
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


def check_folder(folder: Path, config: Config) -> None:
    """Refuse a folder that holds another run, or anything else.

    Args:
        folder: folder of a run, which may not exist yet.
        config: configuration of the run.
    """
    if is_free(folder):
        return
    try:
        if not (folder / CONFIG).is_file():
            raise InputError(f"{folder}: holds other files; choose another folder")
        current, _ = _read_config(folder)
        if current != config:
            raise InputError(f"{folder}: holds another run ({config.differences(current)}); choose another folder")
    except InputError:
        if _key(folder) != config.key:
            raise
        log.warning("%s: is missing or damaged; it is written again", folder / CONFIG)


def _key(folder: Path) -> str | None:
    """The key of the run in a folder, from its result or its checkpoint."""
    try:
        return str(read_json(folder / RESULT)["key"])
    except (FileNotFoundError, DamagedError, KeyError):
        return read_state(folder).get("key")


def read(folder: Path) -> Saved:
    """Read the model in a folder; nothing in it is executed.

    Args:
        folder: folder of a finished run or of a saved model, of this version or of 0.1.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: holds no model (no {CONFIG})")
    config, about = _read_config(folder)
    if about["format"] == FORMAT and not (folder / RESULT).is_file():
        raise InputError(f"{folder}: the run is not finished; `same train` with the same --out continues it")
    try:
        if about["format"] == 1:
            return _read_model_1(folder, config, about)
        result = read_json(folder / RESULT)
        check_digests(folder, result.get("files", {}))
        tensors, _ = load_tensors(folder / MODEL)
        history = [json.loads(line) for line in (folder / HISTORY).read_text(encoding="utf-8").splitlines()]
        if about["format"] == 0:
            return _migrate_run_0(config, tensors, history, result)
        return Saved(config, about["custom"], about["graphs"], about["options"], tensors, history, result)
    except DamagedError as error:
        raise InputError(f"{error}; `same train` with the same --out repairs a run") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: is damaged ({type(error).__name__}: {error}); train or save it again") from error


def read_history(folder: Path) -> list[Record]:
    """Return the history of a run, finished or not; a damaged file is replaced by the copy in the checkpoint."""
    try:
        check_digests(folder, {HISTORY: read_json(folder / RESULT)["files"][HISTORY]})
        return [json.loads(line) for line in (folder / HISTORY).read_text(encoding="utf-8").splitlines()]
    except (FileNotFoundError, KeyError):
        pass
    except DamagedError as error:
        log.warning("%s; using the checkpoint", error)
    return list(read_state(folder).get("history", []))


def _read_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The configuration in a folder, and everything else in its file; format 0 is a run of version 0.1."""
    path = folder / CONFIG
    try:
        about = unseal(json.dumps(read_config(path)))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise DamagedError(f"{path}: is damaged ({error})") from None
    if "format" not in about:
        about = {"format": 0, "config": about}
    if about["format"] not in (0, 1, FORMAT):
        raise InputError(f"{folder}: is in format {about['format']}, this version reads up to {FORMAT}; update same")
    values = dict(about.get("config", {}))
    if about["format"] < FORMAT:
        if values.pop("learn_inner_lr", False):
            raise InputError(f"{folder}: was trained with learn_inner_lr, which is gone; train it again")
        values["adapts"] = {"heads": "head"}.get(values.get("adapts", "all"), values.get("adapts", "all"))
    return make_config(values, str(path)), about


def _migrate_run_0(config: Config, tensors: dict[str, Tensor], history: list[Record], result: dict[str, Any]) -> Saved:
    """A run of version 0.1: it has neither adapted heads nor the classes, so only its encoder can be used."""
    prefixes = ("encoder.", "inputs.")
    kept = {name if name.startswith("inputs.") else f"model.{name}": value for name, value in tensors.items()}
    kept = {name: value for name, value in kept.items() if name.removeprefix("model.").startswith(prefixes)}
    graphs = {"attributes": len(tensors["inputs.mean"]), "labels": {}}
    return Saved(config, {}, graphs, {}, kept, history, result, has_heads=False)


def _read_model_1(folder: Path, config: Config, about: dict[str, Any]) -> Saved:
    """A model that `SAME.save` of version 0.1 wrote."""
    tensors, _ = load_tensors(folder / MODEL)
    tensors = {name: value for name, value in tensors.items() if not name.startswith("model.weighting.")}
    old, labels = about["graphs"], {}
    for level, column in (("graph", "y"), ("node", "node_y")):
        classes = old[f"{level}_classes"]
        if level == "graph" and classes is not None:
            # Classes were predicted as the values given to `fit`, or else as codes.
            classes = list(range(len(classes))) if about["classes"] is None else about["classes"]
        elif classes is not None:
            classes = list(range(len(classes)))
        if classes is not None or old[f"{level}_targets"] is not None:
            labels[column] = {"level": level, "classes": classes, "shape": old[f"{level}_targets"] or []}
    custom = {name: about["own"].get(name) for name in ("encoder", "tasks", "weighting")}
    graphs = {"attributes": old["attributes"], "labels": labels}
    history = list(about["history"])
    training = {"best": min(history, key=lambda record: record["objective"]), "versions": {"same": about["same"]}}
    return Saved(config, custom, graphs, dict(about["further"]), tensors, history, training)


def describe(store: GraphStore) -> dict[str, Any]:
    """Describe what a model must know of its training graphs: the number of attributes, and the label columns."""
    labels = {
        name: {
            "level": column.level,
            "classes": None if column.classes is None else list(column.classes),
            "shape": list(column.y.shape[1:]),
        }
        for name, column in store.labels.items()
    }
    return {"attributes": store.x.shape[1], "labels": labels}


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


def upload(folder: Path, repo_id: str, *, private: bool | None = None) -> None:
    """Upload the model in a folder to a repository of the Hugging Face Hub, which is created if needed.

    Args:
        folder: folder of the model.
        repo_id: `user/name`.
        private: whether a new repository is private; the account's default by default.
    """
    hub = _hub("push_to_hub")
    hub.create_repo(repo_id, private=private, exist_ok=True)
    hub.upload_folder(repo_id=repo_id, folder_path=str(folder), allow_patterns=list(_FILES))


def download(source: str | Path, *, revision: str | None = None) -> Path:
    """Return a folder as it is, or the folder that a repository of the Hugging Face Hub is downloaded to.

    Args:
        source: a folder, or `user/name`.
        revision: revision of the repository.
    """
    if Path(source).is_dir():
        return Path(source)
    text = str(source)
    if isinstance(source, Path) or text.count("/") != 1 or text.startswith(("/", ".", "~")):
        raise InputError(f"from_pretrained: {text!r} is neither an existing folder nor a repository user/name")
    hub = _hub("from_pretrained")
    return Path(hub.snapshot_download(text, revision=revision, allow_patterns=list(_FILES)))


def _hub(caller: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(f"{caller}: needs huggingface_hub: pip install 'same-gnn[hub]'") from None
    return huggingface_hub
