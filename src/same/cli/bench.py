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
    from same.graphs.io.sources import KNOWN, find

    script = Path(__file__).parents[3] / "benchmarks" / "bench.py"
    if not script.is_file():
        raise InputError("bench: the benchmarks are not part of the installed package; clone the repository")
    places = {name: find(name, data) for name in KNOWN}
    missing = [name for name, place in places.items() if place is None]
    if missing:
        raise InputError(f"bench: needs {', '.join(missing)}; pass their folder as --data, or run `same data fetch`")
    folder = next(place.parent for place in places.values() if place is not None)
    selected = [] if only is None else ["--only", only]
    raise typer.Exit(subprocess.run([sys.executable, script, folder, "--json", out, *selected], check=False).returncode)
