"""Remote folders: copies of a run's folder that every machine can reach, as a path or an fsspec address."""

import secrets
from pathlib import Path
from typing import Any

from same.errors import InputError
from same.files import CONFIG, RESULT


class RemoteFolder:
    """A copy of a run's folder at an address.

    Args:
        address: a path, or an fsspec address such as `s3://bucket/runs`, which may need another package.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    ...     _ = Path(one, "history.jsonl").write_text("{}")
    ...     remote = RemoteFolder("memory://doctest/run")
    ...     remote.upload(Path(one))
    ...     remote.download(Path(other))
    ...     Path(other, "history.jsonl").read_text()
    '{}'
    """

    def __init__(self, address: str) -> None:
        import fsspec

        self.address = address
        try:
            self.files, self.root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError, OSError) as error:
            raise InputError(f"--checkpoints: {address}: {str(error).splitlines()[0]}") from None
        self._uploaded: dict[str, int] = {}

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
        paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        # The configuration comes first, the file that marks a run as finished last.
        for path in sorted(paths, key=lambda path: (path.name == RESULT, path.name != CONFIG, path)):
            name, stamp = str(path.relative_to(folder)), path.stat().st_mtime_ns
            if self._uploaded.get(name) != stamp:
                self._write(name, path.read_bytes())
                self._uploaded[name] = stamp

    def download(self, folder: Path) -> None:
        """Copy all files into a folder; they are at least as new as those it holds."""
        if not self.files.isdir(self.root):
            return
        for place in self.files.find(self.root):
            name = str(place)[len(str(self.root).rstrip("/")) + 1 :]
            if any(part.startswith(".") for part in Path(name).parts):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            content: Any = self.files.cat_file(place)
            target.write_bytes(content)
            self._uploaded[name] = target.stat().st_mtime_ns

    def _write(self, name: str, content: bytes) -> None:
        place = f"{self.root}/{name}"
        folder, _, last = place.rpartition("/")
        temporary = f"{folder}/.{last}.{secrets.token_hex(4)}.part"
        self.files.makedirs(folder, exist_ok=True)
        self.files.pipe_file(temporary, content)
        self.files.mv(temporary, place)
