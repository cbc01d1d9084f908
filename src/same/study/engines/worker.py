"""Worker of the Ray engine: executes one run in a scratch folder, with a copy where every machine can reach it."""

import hashlib
import io
import logging
import os
import secrets
import socket
import tempfile
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from same import __version__
from same.errors import InputError
from same.files import CONFIG, RESULT, atomic
from same.graphs.io.sources import ALIASES, cache_folder, find, is_path
from same.study.engines.base import Job, Outcome, execute
from same.threads import limit_threads

log = logging.getLogger("same")

Files = dict[str, bytes]  # Contents of the files of a run's folder, by name.

_UPLOAD_SECONDS, _UPLOAD_SHARE = 5.0, 0.02  # Least time between two uploads, and their largest share of the time.


def read_files(folder: Path) -> Files:
    """All files of a run's folder that are not hidden; none if there is no folder."""
    paths = [path for path in folder.rglob("[!.]*") if path.is_file()]
    return _sorted({str(path.relative_to(folder)): path.read_bytes() for path in paths})


def write_files(folder: Path, files: Files) -> None:
    """Write the files of a run into its folder."""
    for name, content in _sorted(files).items():
        with atomic(folder / name) as temporary:
            temporary.write_bytes(content)


def _sorted(files: Files) -> Files:
    """The configuration comes first, the file that marks a run as finished last."""
    return dict(sorted(files.items(), key=lambda item: (item[0] == RESULT, item[0] != CONFIG, item[0])))


class RemoteFolder:
    """A copy of a run's folder at a path or an fsspec address such as `s3://bucket/runs`."""

    def __init__(self, address: str) -> None:
        import fsspec

        self.address, self._uploaded = address, dict[str, int]()
        try:
            self.files, self.root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError, OSError) as error:
            raise InputError(f"--checkpoints: {address}: {str(error).splitlines()[0]}") from None

    def check(self) -> None:
        """Reject an address that cannot be written to."""
        try:
            self._write(".try", b"")
            self.files.rm_file(f"{self.root}/.try")
        except Exception as error:  # Every file system has its own errors.
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError(f"--checkpoints: {self.address}: cannot be written ({reason})") from None

    def upload(self, folder: Path) -> None:
        """Copy the files that have changed since the last upload; a reader always sees complete files."""
        for name, content in read_files(folder).items():
            if self._uploaded.get(name) != (stamp := hash(content)):
                self._write(name, content)
                self._uploaded[name] = stamp

    def download(self) -> Files:
        """All files that are not hidden."""
        places = self.files.find(self.root) if self.files.isdir(self.root) else []
        names = {str(place)[len(str(self.root).rstrip("/")) + 1 :]: place for place in places}
        return {n: self.files.cat_file(place) for n, place in names.items() if not Path(n).name.startswith(".")}

    def _write(self, name: str, content: bytes) -> None:
        folder, _, last = f"{self.root}/{name}".rpartition("/")
        temporary = f"{folder}/.{last}.{secrets.token_hex(4)}.part"
        self.files.makedirs(folder, exist_ok=True)
        self.files.pipe_file(temporary, content)
        self.files.mv(temporary, f"{folder}/{last}")


def pack_set(dataset: str, data: Path | None) -> tuple[str, bytes] | None:
    """A named dataset as a zip, to be sent to workers; a dataset named by its path must exist on every machine."""
    place = None if dataset == "planted" or is_path(dataset) else find(dataset, data)
    if place is None:
        return None  # Every machine downloads it.
    if place.is_file():
        return ALIASES.get(dataset, dataset), place.read_bytes()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([*place.glob("*.txt"), *place.glob("raw/*.txt")]):
            archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes())
    return ALIASES.get(dataset, dataset), memory.getvalue()


def unpack_set(packed: tuple[str, bytes]) -> Path:
    """Folder of a dataset that was sent, the same for all runs on a machine, so that it is parsed once."""
    name, content = packed
    folder = cache_folder() / "sent" / hashlib.sha256(content).hexdigest()[:16]
    if not (folder / f"{name}.zip").is_file():
        write_files(folder, {f"{name}.zip": content})
    return folder


@dataclass(frozen=True)
class Driver:
    """What a worker knows about its driver: working directory, remote folder of the run, options, and version."""

    cwd: str = "/"
    remote: str | None = None
    cpus: float = 1
    gpus: float = 0
    version: str = __version__


def work(
    job: Job, files: Files, first: Files, packed: tuple[str, bytes] | None, driver: Driver
) -> tuple[Outcome | None, Files, str]:
    """Execute one run, given the files that the driver has of it and of the run it starts from.

    Returns its outcome, its files if the job keeps them, and its error if it is at fault.
    """
    if __version__ != driver.version:
        raise InputError(f"{socket.gethostname()}: has same {__version__}, the driver has {driver.version}")
    if not driver.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray shows all of them to tasks that ask for none.
    limit_threads(max(1, int(driver.cpus)))
    if Path(driver.cwd).is_dir():
        os.chdir(driver.cwd)
    job = job if packed is None else replace(job, data=unpack_set(packed))
    remote = RemoteFolder(driver.remote) if driver.remote else None
    due = time.monotonic() + _UPLOAD_SECONDS

    def upload() -> None:
        nonlocal due
        start = time.monotonic()
        try:
            if remote is not None:
                remote.upload(folder)
        except Exception as error:  # A store that does not answer costs a checkpoint, not the run.
            log.warning("%s: cannot be written (%s: %s)", driver.remote, type(error).__name__, error)
        now = time.monotonic()
        due = now + max(_UPLOAD_SECONDS, (now - start) / _UPLOAD_SHARE)

    def report(step: int, steps: int, news: dict[str, Any]) -> None:
        if time.monotonic() > due:
            upload()

    with tempfile.TemporaryDirectory(prefix="same-run-") as scratch:
        folder = Path(scratch, "runs", job.config.key)
        write_files(folder, files | (remote.download() if remote else {}))  # Those are at least as new.
        if job.after:
            write_files(folder.parent / job.after, first)
        try:
            outcome = execute(replace(job, folder=folder), report, lambda: False, saved=upload)
        except InputError as error:
            return None, read_files(folder) if job.keep else {}, f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:  # Ray cancels the task.
            upload()
            raise
        upload()
        kept = read_files(folder) if job.keep else {}
        if outcome.training is not None:  # A finished run needs no checkpoint.
            kept = {name: content for name, content in kept.items() if "checkpoint" not in name}
        return outcome, kept, ""
