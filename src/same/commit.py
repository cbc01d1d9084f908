"""The commit that this copy of the package comes from."""

import subprocess
from functools import cache
from pathlib import Path

_BUILT = Path(__file__).with_name("_commit.txt")
"""Written into wheels and source archives by `hatch_build.py`."""


@cache
def commit() -> str:
    """Commit that a wheel was built from, or that a source checkout is at; empty if neither can be told.

    A checkout with uncommitted changes ends in `-dirty`.
    """
    if _BUILT.is_file():
        return _BUILT.read_text(encoding="ascii").strip()
    root = Path(__file__).parents[2]
    return describe(root) if (root / ".git").exists() else ""


def describe(root: Path) -> str:
    """Commit of a git checkout; empty if git cannot tell."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
