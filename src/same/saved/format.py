"""The one format of a trained model on disk; a folder with a valid result is finished."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from same import __version__, files
from same.config import Config, make_config, read_config
from same.errors import DamagedError, InputError
from same.files import CONFIG, HISTORY, MODEL, PREVIOUS, RESULT
from same.saved.migrate import FIRST_FORMATS, migrate, migrate_config
from same.training.checkpoint import read_state, write_history
from same.training.loop import Record

log = logging.getLogger("same")

FORMAT = 2
"""Number of the format; it changes when a version can no longer read what another one wrote."""


@dataclass(frozen=True)
class Saved:
    """The contents of a model's folder.

    `about` has `graphs` (attributes and label columns of the training graphs), `custom` (names of the user's own
    parts), `options` (further values of whoever saved the model) and, in saved models, `added` (kinds of added tasks).
    """

    config: Config
    about: dict[str, Any]
    tensors: dict[str, Tensor]  # `model.…`, `adapted.TASK.…` and `inputs.…`
    history: list[Record]
    training: dict[str, Any]  # summary


def begin(folder: Path, config: Config, about: Mapping[str, Any]) -> None:
    """Write the settings of a model into its folder, before it is trained."""
    header = {"format": FORMAT, "same": __version__, "config": config.model_dump(mode="json")}
    files.write_json(folder / CONFIG, {**header, **about})


def finish(
    folder: Path, tensors: Mapping[str, Tensor], history: Sequence[Record], training: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a trained model into its folder, mark it as finished, and return the summary with the checksums."""
    with files.atomic(folder / MODEL) as temporary:
        # Copies, because safetensors refuses tensors that share memory, as tied weights do.
        files.save_tensors({n: value.detach().cpu().contiguous().clone() for n, value in tensors.items()}, temporary)
    write_history(folder, history)
    (folder / PREVIOUS).unlink(missing_ok=True)
    result = {**training, "files": files.digests(folder, (CONFIG, HISTORY, MODEL))}
    files.write_json(folder / RESULT, result)
    return result


def finished(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a finished model, or None; damage is reported, and a damaged model is not finished."""
    try:
        result = files.read_json(folder / RESULT)
        files.check_digests(folder, result.get("files", {}))
        return result if (folder / MODEL).is_file() else None
    except FileNotFoundError:
        return None
    except DamagedError as error:
        log.warning("%s; the run is finished again", error)
        return None


def check_folder(folder: Path, config: Config) -> None:
    """Refuse a folder that holds another run, or anything else."""
    if files.is_free(folder):
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
        return str(files.read_json(folder / RESULT)["key"])
    except (FileNotFoundError, DamagedError, KeyError):
        return read_state(folder).get("key")


def read(folder: Path) -> Saved:
    """Read the model in a folder; nothing in it is executed."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: holds no model (no {CONFIG})")
    config, about = _read_config(folder)
    is_model_1 = about["format"] == 1  # It holds everything in two files.
    if not is_model_1 and not (folder / RESULT).is_file():
        raise InputError(f"{folder}: the run is not finished; `same train` with the same --out continues it")
    try:
        result = {} if is_model_1 else files.read_json(folder / RESULT)
        files.check_digests(folder, result.get("files", {}))
        tensors, _ = files.load_tensors(folder / MODEL)
        history = list(about["history"]) if is_model_1 else _history(folder)
        if about["format"] in FIRST_FORMATS:
            about, tensors, result = migrate(about, tensors, history, result)
        return Saved(config, about, tensors, history, result)
    except DamagedError as error:
        raise InputError(f"{error}; `same train` with the same --out repairs a run") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: is damaged ({type(error).__name__}: {error}); train or save it again") from error


def read_history(folder: Path) -> list[Record]:
    """Return the history of a run, finished or not; a damaged file is replaced by the copy in the checkpoint."""
    try:
        files.check_digests(folder, {HISTORY: files.read_json(folder / RESULT)["files"][HISTORY]})
        return _history(folder)
    except (FileNotFoundError, KeyError):
        pass
    except DamagedError as error:
        log.warning("%s; using the checkpoint", error)
    return list(read_state(folder).get("history", []))


def _history(folder: Path) -> list[Record]:
    return [json.loads(line) for line in (folder / HISTORY).read_text(encoding="utf-8").splitlines()]


def _read_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The configuration in a folder, and everything else in its file; format 0 is a run of version 0.1."""
    path = folder / CONFIG
    about = read_config(path)
    try:
        about = files.unseal(json.dumps(about)) if "format" in about else {"format": 0, "config": about}
    except ValueError as error:
        raise DamagedError(f"{path}: is damaged ({error})") from None
    if about["format"] not in (*FIRST_FORMATS, FORMAT):
        raise InputError(f"{folder}: is in format {about['format']}, this version reads up to {FORMAT}; update same")
    settings = dict(about.get("config", {}))
    if about["format"] in FIRST_FORMATS:
        settings = migrate_config(settings, folder)
    return make_config(settings, str(path)), about
