"""Options that several verbs share, and their parsing."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from same.errors import InputError
from same.names import METHODS


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


_METHODS = f"One of {', '.join(METHODS)}, or FILE.py:CLASS or package.module:CLASS."

Dataset = Annotated[
    str | None, typer.Argument(metavar="DATASET", help="Name, folder or zip file of a dataset, or `planted`.")
]
Run = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")]
Method = Annotated[
    str | None, typer.Option("--method", "-m", help=_METHODS, show_default=False, autocompletion=_complete_method)
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set any key of the configuration; may be repeated."),
]
Choose = Annotated[
    str | None,
    typer.Option(metavar="loss", help="Choose C of the linear probes by the loss on validation graphs; else C = 1."),
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of local datasets; SAME_DATA by default.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

EngineName = Annotated[str, typer.Option(help="local (processes on this machine) or ray (a cluster).")]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of parallel runs; one per core by default.")]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Address of a Ray cluster; by default, start Ray locally.")
]
Cpus = Annotated[float, typer.Option(min=0.1, help="Cores (and threads) per run, with --engine ray.")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs per run, with --engine ray.")]
Retries = Annotated[int, typer.Option(min=0, help="Number of retries after a lost Ray worker.")]
Checkpoints = Annotated[
    str | None,
    typer.Option(metavar="PATH|URL", help="Checkpoints of Ray runs: any fsspec address; --out by default."),
]

Engine = Callable[[Any, int], Iterator[Any]]


def make_engine(
    name: str, address: str | None, cpus: float, gpus: float, retries: int, checkpoints: str | None
) -> Engine:
    """The engine that the options name; checks them before anything is written."""
    if name == "local":
        for option, value in (("--address", address), ("--checkpoints", checkpoints), ("--gpus-per-run", gpus)):
            if value:
                raise InputError(f"{option}: needs --engine ray")
        from same.study.engine import local

        return local
    if name != "ray":
        raise InputError(f"--engine: {name!r} is not one of local, ray")
    from same.study.ray_engine import RayEngine, connect

    connect(address)
    return RayEngine(address, cpus, gpus, retries, checkpoints)


def count_workers(engine: str, workers: int | None) -> int:
    """Number of parallel runs; 0 lets Ray use the whole cluster."""
    return workers or (0 if engine == "ray" else os.cpu_count() or 1)


def resolve_method(text: str) -> str:
    """The name of a method; `FILE.py:CLASS` and `package.module:CLASS` are imported and registered first."""
    if ":" not in text:
        return text
    from same.methods import registry

    return str(registry.load(text))


def parse_names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list.

    >>> parse_names("gc, nc")
    ('gc', 'nc')
    """
    return tuple(name.strip() for name in text.split(",")) if text else ()


def parse_settings(settings: Iterable[str] | None) -> dict[str, Any]:
    """Values given as KEY=VALUE."""
    from same.config import parse_setting

    return dict(map(parse_setting, settings or ()))


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return logging.getLogger("same").level > logging.INFO


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=1))
