"""Build hook: puts the id of the current commit into wheels and source archives, see `same.commit`."""

import importlib.util
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
        spec = importlib.util.spec_from_file_location("same_commit", source / "commit.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not (text := module.commit()):
            return
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "_commit.txt"
        path.write_text(text + "\n", encoding="ascii")
        place = "same/_commit.txt" if self.target_name == "wheel" else "src/same/_commit.txt"
        build_data["force_include"][str(path)] = place
