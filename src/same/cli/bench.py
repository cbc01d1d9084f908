"""The verb bench."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from same.cli import options as opt
from same.errors import InputError


def bench(
    data: opt.Data = None,
    out: Annotated[Path, Option(metavar="FILE", help="Output file (JSON).")] = Path("bench.json"),
    only: Annotated[str | None, Option(help="Of steps, probe, loading, processes, growth, workers.")] = None,
) -> None:
    """Benchmark training, probing and loading against plain PyG and scikit-learn; takes ten minutes.

    Example: same bench --data ~/sets --only steps
    """
    from same.graphs.io.download import KNOWN, find

    script = Path(__file__).parents[3] / "benchmarks" / "bench.py"
    if not script.is_file():
        raise InputError("bench: the benchmarks are not part of the installed package; clone the repository")
    places = [place for name in KNOWN if (place := find(name, data)) is not None]
    if len(places) < len(KNOWN):
        raise InputError(f"bench: needs {', '.join(KNOWN)}; pass their folder as --data, or run `same data fetch`")
    command = [sys.executable, str(script), str(places[0].parent), "--json", str(out)]
    raise typer.Exit(subprocess.run(command + (["--only", only] if only else []), check=False).returncode)
