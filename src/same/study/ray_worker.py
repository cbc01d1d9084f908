"""A worker of the Ray engine: does one run in a scratch folder, and sends its files back."""

import hashlib
import io
import logging
import os
import secrets
import socket
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from same import __version__
from same.errors import InputError
from same.files import atomic
from same.graphs.io.download import ALIASES, cache_folder, find
from same.graphs.io.sources import is_path
from same.study.engine import Job, execute
from same.study.shelf import Shelf

log = logging.getLogger("same")

Files = dict[str, bytes]
"""The files of a run's folder, by their names within it."""

MARK = ".seen-by-ray"
"""A file in the folder of runs. A machine that reads in it what it was told sees this very folder."""

_LAST = ("evaluation.json", "result.json")  # What says that a run is done is written when the rest is there.
_SHELVE_SECONDS, _SHELVE_SHARE = 5.0, 0.02  # Between two checkpoints on the shelf; and of the time, at most.


def read_files(folder: Path) -> Files:
    """What a run's folder holds already."""
    found = [path for path in folder.rglob("*") if path.is_file() and not _hidden(path.relative_to(folder))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def write_files(folder: Path, files: Files) -> None:
    """Writes the files of a run into its folder, each as a whole."""
    for name in sorted(files, key=lambda name: (name in _LAST, name)):
        with atomic(folder / name) as temporary:
            temporary.write_bytes(files[name])


def make_mark(runs: Path) -> str:
    """A word in a file: a machine that reads it sees this very folder."""
    path = runs / MARK
    if not path.is_file():
        with atomic(path) as temporary:
            temporary.write_text(secrets.token_hex(8), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def pack_set(dataset: str, data: Path | None) -> tuple[str, bytes] | None:
    """A named set as a zip, to be sent along; what is named by its path must be there on every machine."""
    if dataset == "planted" or is_path(dataset):
        return None
    place = find(dataset, data)
    if place is None:
        return None  # Each machine downloads it.
    if place.is_file():
        return ALIASES.get(dataset, dataset), place.read_bytes()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([*place.glob("*.txt"), *place.glob("raw/*.txt")]):
            archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes())
    return ALIASES.get(dataset, dataset), memory.getvalue()


def unpack_set(sent: tuple[str, bytes]) -> Path:
    """The folder of a set that was sent along, the same for all runs of a machine, so that it is parsed once."""
    name, content = sent
    folder = cache_folder() / "sent" / hashlib.sha256(content).hexdigest()[:16]
    if not (folder / f"{name}.zip").is_file():
        with atomic(folder / f"{name}.zip") as temporary:
            temporary.write_bytes(content)
    return folder


def work(
    job: Job,
    known: Files,
    beside: Files,
    sent: tuple[str, bytes] | None,
    checkpoints: str | None,
    about: dict[str, Any],
) -> tuple[Files, str]:
    """A worker: does one run; its files, and what went wrong if it is the run's own fault."""
    from same.machine import settle

    if __version__ != about["version"]:
        raise InputError(f"{socket.gethostname()}: has same {__version__}, the driver has {about['version']}")
    if not about["gpus"]:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray shows them all to whoever asks for none.
    settle(max(1, int(about["cpus"])))
    if Path(about["cwd"]).is_dir():
        os.chdir(about["cwd"])  # Sets may be named by relative paths.
    data = job.data if sent is None else unpack_set(sent)
    shelf = None
    if checkpoints is not None:
        shelf = Shelf(f"{checkpoints.rstrip('/')}/{job.config.key}")
    elif (mark := job.folder.parent / MARK).is_file() and mark.read_text(encoding="utf-8") == about["mark"]:
        shelf = Shelf(str(job.folder))
    with tempfile.TemporaryDirectory(prefix="same-run-") as scratch:
        folder = Path(scratch, "runs", job.config.key)
        write_files(folder, known)
        if job.after and beside:
            write_files(folder.parent / job.after, beside)
        if shelf is not None:
            shelf.take(folder)
        due = time.monotonic() + _SHELVE_SECONDS

        def shelve() -> None:
            """A store that does not answer costs a checkpoint, not the run."""
            if shelf is not None:
                try:
                    shelf.put(folder)
                except Exception as error:  # Every kind of store has errors of its own.
                    log.warning("%s: cannot be written (%s: %s)", shelf.address, type(error).__name__, error)

        def report(step: int, steps: int, news: dict[str, Any]) -> None:
            nonlocal due
            if (start := time.monotonic()) > due:
                shelve()
                now = time.monotonic()
                due = now + max(_SHELVE_SECONDS, (now - start) / _SHELVE_SHARE)

        try:
            execute(replace(job, folder=folder, data=data), report, lambda: False)
        except InputError as error:
            return read_files(folder), f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:  # It is cancelled.
            shelve()
            raise
        shelve()
        files = read_files(folder)
        if "result.json" in files:  # What it takes to go on is no longer needed.
            files = {name: content for name, content in files.items() if "checkpoint" not in name}
        return files, ""
