"""Build hook: puts the id of the current commit into wheels and source archives, see `same.commit`."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Adds `same/_commit.txt`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, unless a source archive brings it or the install is editable."""
        source = Path(self.root) / "src" / "same"
        if version == "editable" or (source / "_commit.txt").is_file():
            return
        if not (text := runpy.run_path(str(source / "commit.py"))["commit"]()):
            return
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "_commit.txt"
        path.write_text(text + "\n", encoding="ascii")
        place = "same/_commit.txt" if self.target_name == "wheel" else "src/same/_commit.txt"
        build_data["force_include"][str(path)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
