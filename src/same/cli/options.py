"""Options that several verbs share, and their parsing."""

import json
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from same.errors import InputError
from same.methods.registry import METHODS, load


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


_METHODS = f"One of {', '.join(METHODS)}"
_CUSTOM = f"{_METHODS}, or FILE.py:CLASS or package.module:CLASS."
_OF_RUN = "Method of the run, if it is not built in."

Dataset = Annotated[str | None, Argument(metavar="DATASET", help="`planted`, a name of the TU collection, or a path.")]
Run = Annotated[Path, Argument(metavar="DIR", help="Folder of a finished run.")]
Method = Annotated[str, Option("--method", "-m", help=f"{_METHODS}.", autocompletion=_complete_method)]
CustomMethod = Annotated[str | None, Option("--method", "-m", help=_CUSTOM, autocompletion=_complete_method)]
MethodOfRun = Annotated[str | None, Option("--method", "-m", metavar="FILE.py:CLASS", help=_OF_RUN)]
Tasks = Annotated[str | None, Option("--tasks", "-t", help="Names of tasks, for example gc,nc,lp.")]
Settings = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="Set a configuration key; repeatable.")
]
EngineName = Annotated[str, Option(help="local (processes on this machine) or ray (a cluster).")]
Workers = Annotated[int | None, Option(min=1, help="Number of parallel runs; one per core by default.")]
Address = Annotated[str | None, Option(metavar="HOST:PORT", help="Ray cluster; without one, Ray starts locally.")]
Cpus = Annotated[float, Option(min=0.1, help="Cores (and threads) per run, with --engine ray.")]
Gpus = Annotated[float, Option(min=0, help="GPUs per run, with --engine ray.")]
Checkpoints = Annotated[str | None, Option(metavar="PATH|URL", help="Where Ray keeps checkpoints; else --out.")]
Data = Annotated[Path | None, Option("--data", metavar="DIR", help="Folder of datasets; SAME_DATA by default.")]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]


def make_engine(
    name: str, workers: int | None, address: str | None, cpus: float, gpus: float, checkpoints: str | None
) -> tuple[Any, int]:
    """The engine that the options describe, and its number of parallel runs; invalid options raise here."""
    if name == "local":
        for option, value in (("--address", address), ("--checkpoints", checkpoints), ("--gpus-per-run", gpus)):
            if value:
                raise InputError(f"{option}: needs --engine ray")
        from same.study.engines import local

        return local, workers or os.cpu_count() or 1
    if name != "ray":
        raise InputError(f"--engine: {name!r} is not one of local, ray")
    from same.study.engines.ray import RayEngine, connect

    connect(address)
    return RayEngine(address, cpus, gpus, checkpoints=checkpoints), workers or 0  # 0: the whole cluster.


def resolve_method(text: str | None) -> str | None:
    """The name of a method; `FILE.py:CLASS` and `package.module:CLASS` are imported and registered first."""
    return load(text) if text and ":" in text else text


def parse_names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def parse_settings(settings: Iterable[str] | None) -> dict[str, Any]:
    """Values given as KEY=VALUE."""
    from same.config import parse_setting

    return dict(map(parse_setting, settings or ()))


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return logging.getLogger("same").level > logging.INFO


def echo(view: Any, values: Any, as_json: bool) -> None:
    """Print a result: its view, a text or a table of rich, or its values as JSON."""
    if as_json or isinstance(view, str):
        typer.echo(json.dumps(values, indent=1) if as_json else view)
    else:
        from rich.console import Console

        Console(soft_wrap=not sys.stdout.isatty()).print(view, highlight=False, markup=False)
