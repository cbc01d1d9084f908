"""A shelf: where runs put their files so that any machine can go on with them. A folder, or any fsspec address."""

import secrets
from pathlib import Path
from typing import Any

from same.errors import InputError


class Shelf:
    """A copy of a run's folder at an address.

    Args:
        address: a path, or an fsspec address such as `s3://bucket/runs`, which may need a package of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    ...     _ = Path(one, "history.jsonl").write_text("{}")
    ...     shelf = Shelf("memory://doctest/run")
    ...     shelf.put(Path(one))
    ...     shelf.take(Path(other))
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
        self._known: dict[str, int] = {}

    def check(self) -> None:
        """Refuses an address that cannot be written to."""
        try:
            self._pipe(".try", b"")
            self.files.rm_file(f"{self.root}/.try")
        except Exception as error:  # Every kind of store has errors of its own.
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError(f"--checkpoints: {self.address}: cannot be written ({reason})") from None

    def put(self, folder: Path) -> None:
        """Copies what has changed since the last time; whoever reads meanwhile finds whole files."""
        paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        # What says that a run is done comes last, and what says whose it is first.
        for path in sorted(paths, key=lambda path: (path.name == "result.json", path.name != "config.json", path)):
            name, stamp = str(path.relative_to(folder)), path.stat().st_mtime_ns
            if self._known.get(name) != stamp:
                self._pipe(name, path.read_bytes())
                self._known[name] = stamp

    def take(self, folder: Path) -> None:
        """Copies what is there into a folder; it is at least as new as what the folder holds."""
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
            self._known[name] = target.stat().st_mtime_ns

    def _pipe(self, name: str, content: bytes) -> None:
        place = f"{self.root}/{name}"
        folder, _, last = place.rpartition("/")
        temporary = f"{folder}/.{last}.{secrets.token_hex(4)}.part"
        self.files.makedirs(folder, exist_ok=True)
        self.files.pipe_file(temporary, content)
        self.files.mv(temporary, place)
