"""Files and folders that are either wholly there or not there at all, and that tell when they were damaged."""

import errno
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from same.errors import DamagedError, InputError

log = logging.getLogger("same")

_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SEAL = "sha256"
_LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.DOTALL)


@contextmanager
def atomic(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yields a temporary path beside `target` that takes its place if the block succeeds and vanishes if it fails.

    Args:
        target: the file or folder to write; its parents are made. A file is replaced, a folder that holds anything is
            refused.
        folder: whether to write a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     with atomic(Path(d, "a.txt")) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     Path(d, "a.txt").read_text()
    'whole'
    """
    temporary: Path | None = None
    try:
        with _told(target):
            if folder and target.is_dir() and any(target.iterdir()):
                raise InputError(f"{target}: exists already; choose a new folder")
            # A device, a pipe or the like would be replaced by a file.
            if not folder and target.exists() and not target.is_file():
                raise InputError(f"{target}: is {'a folder' if target.is_dir() else 'no file'}; choose another name")
            place = Path(os.path.realpath(target))  # A link stays a link.
            place.parent.mkdir(parents=True, exist_ok=True)
            # Not with tempfile: what it makes is private to the user, and the target should have ordinary permissions.
            path = place.parent / f".{place.name}.{secrets.token_hex(4)}.part"
            if folder:
                path.mkdir()
            else:
                path.touch(exist_ok=False)
            temporary = path
            yield temporary
            temporary.replace(place)
    finally:
        if temporary is not None:
            _remove(temporary)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """Says in a line what cannot be written, and why."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(f"{target}: the disk is full; free some space or choose another folder") from error
        if error.errno == errno.ENOTEMPTY:
            raise InputError(f"{target}: exists already; choose a new folder") from error
        if error.errno in _DENIED:
            raise InputError(f"{target}: cannot be written ({error.strerror}); choose another folder") from error
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def is_free(folder: Path) -> bool:
    """Whether a folder is not there or holds nothing, but for hidden files: what `atomic` left is hidden, too."""
    return not folder.is_dir() or all(path.name.startswith(".") for path in folder.iterdir())


def clean(folder: Path, *, seconds: float = 0.0) -> None:
    """Removes what `atomic` left half-written below a folder when a process died.

    Args:
        folder: where to look.
        seconds: how old it must be, where other processes may be at work.
    """
    for path in folder.rglob(".*.part"):
        with suppress(FileNotFoundError):
            if _LEFT_OVER.fullmatch(path.name) and time.time() - path.stat().st_mtime >= seconds:
                _remove(path)


@contextmanager
def locked(folder: Path, *, wait: float = 3.0) -> Iterator[None]:
    """A folder, made if need be, for one process alone.

    The lock is the kernel's, on the folder itself: it leaves no file, and it ends with its process, however that ends.

    Args:
        folder: where to work.
        wait: seconds, so that workers of a process that was killed have time to notice.
    """
    with _told(folder):
        made = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
    handle = _lock(folder, wait)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
        if made:
            with suppress(OSError):
                folder.rmdir()  # Only if nothing came of it.


def _lock(folder: Path, wait: float) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    handle, end = os.open(folder, os.O_RDONLY), time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(handle)
                raise InputError(
                    f"{folder}: another process is at work here; wait until it ends, or choose another folder"
                ) from None
            time.sleep(0.1)
        except OSError as error:
            log.warning("%s: cannot be locked (%s); let no other process work here", folder, error.strerror)
            return handle


def seal(values: Mapping[str, Any]) -> str:
    """Some values as JSON, with a checksum of them.

    >>> unseal(seal({"a": 1}))
    {'a': 1}
    >>> unseal(seal({"a": 1}).replace("1", "2"))
    Traceback (most recent call last):
    ValueError: the checksum is another
    """
    return json.dumps({**values, _SEAL: _digest(json.dumps(values).encode())}, indent=1)


def unseal(text: str) -> dict[str, Any]:
    """The values that `seal` wrote, if they are the same; what has no checksum is taken as it is."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("expected names and values")
    return unsealed(values)


def unsealed(values: dict[str, Any]) -> dict[str, Any]:
    """Values without their checksum, if it is right."""
    found = values.pop(_SEAL, None)
    if found is not None and found != _digest(json.dumps(values).encode()):
        raise ValueError("the checksum is another")
    return values


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes values to a file, with a checksum."""
    with atomic(path) as temporary:
        temporary.write_text(seal(values), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """The values that `write_json` wrote to a file; raises `DamagedError`, or `FileNotFoundError`."""
    try:
        return unseal(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path}: is damaged ({error})") from None


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Checksums of some files of a folder."""
    return {name: _digest((folder / name).read_bytes()) for name in names}


def check_digests(folder: Path, expected: Mapping[str, str]) -> None:
    """Raises `DamagedError` if a file of a folder is gone or has another checksum."""
    for name, digest in expected.items():
        try:
            found = digests(folder, [name])[name]
        except OSError as error:
            raise DamagedError(f"{folder / name}: is gone, or cannot be read ({error.strerror})") from None
        if found != digest:
            raise DamagedError(f"{folder / name}: is damaged (the checksum is another)")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
