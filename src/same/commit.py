"""The commit that this copy of the package comes from."""

import subprocess
from functools import cache
from pathlib import Path

_BUILT = Path(__file__).with_name("_commit.txt")  # In wheels and source archives, from `hatch_build.py`.


@cache
def commit() -> str:
    """Commit of a wheel or a source checkout, with `-dirty` if there are uncommitted changes; empty if unknown."""
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
