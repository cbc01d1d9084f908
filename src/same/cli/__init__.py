"""The command `same`. Verbs import what they need when they are called, so that `same --help` is instant."""

import io
import logging
import sys
from typing import Annotated

import typer

from same import __version__
from same.cli import data, study, train
from same.errors import InputError
from same.methods.registry import METHODS

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One graph encoder for many tasks (SAME: Single-task Adaptation for Multi-task Embeddings).",
    epilog="Example: same demo. The --help of every command shows an example. "
    "Exit codes: 0 success, 1 failure, 2 invalid input, 130 interrupted and saved.",
)
_methods = "; ".join(f"{name}: {', '.join(filter(None, entry[1:]))}" for name, entry in METHODS.items())
# In the order of `same --help`.
app.command()(study.demo)
app.command(epilog=f"Methods: {_methods}.")(train.train)
for _verb in (train.evaluate, train.embed, study.study, study.tune, study.report, train.config):
    app.command()(_verb)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command; an invalid input prints one line and exits with code 2."""
    for standard in (sys.stdout, sys.stderr):
        if isinstance(standard, io.TextIOWrapper):
            standard.reconfigure(errors="replace")
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("same").setLevel(logging.INFO)
    try:
        app()
        return
    except InputError as error:
        message = " ".join(str(error).split())
    except (MemoryError, RuntimeError) as error:
        # torch raises a plain RuntimeError.
        if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
            raise
        message = "out of memory; reduce width, layers or batch_size, or use fewer workers"
    except OSError as error:
        if error.filename is None:
            raise
        message = f"{error.filename}: {error.strerror}"
    typer.echo(f"same: {message}", err=True)
    sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"same {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")] = False,
) -> None:
    if quiet:
        logging.getLogger("same").setLevel(logging.ERROR)
