"""Files and folders that are either wholly there or not there at all."""

import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from same.errors import InputError

_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG)


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
        if folder and target.is_dir() and any(target.iterdir()):
            raise InputError(f"{target}: exists already; choose a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not with tempfile: what it makes is private to the user, and the target should have ordinary permissions.
        path = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        if folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
        temporary, mode = path, path.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # Some libraries make what they write private.
        temporary.replace(target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(f"{target}: the disk is full; free some space or choose another folder") from error
        if error.errno == errno.ENOTEMPTY:
            raise InputError(f"{target}: exists already; choose a new folder") from error
        if error.errno in _DENIED:
            raise InputError(f"{target}: cannot be written ({error.strerror}); choose another folder") from error
        raise
    finally:
        if temporary is not None:
            if temporary.is_dir():
                shutil.rmtree(temporary)
            else:
                temporary.unlink(missing_ok=True)
