"""Verbs about datasets: data list, check, fetch, make."""

import logging
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from same.cli import options as opt
from same.errors import InputError

app = typer.Typer(no_args_is_help=True, help="List, check, download and generate datasets.")


@app.command("list")
def list_datasets(data: opt.Data = None, as_json: opt.Json = False) -> None:
    """List datasets by name, and where those on this machine are.

    Example: same data list --data ~/sets
    """
    from same.cli.render import datasets_text
    from same.graphs.io.sources import catalogue

    rows = catalogue(data)
    opt.echo(datasets_text(rows), rows, as_json)


@app.command()
def check(
    sources: Annotated[list[str] | None, Argument(metavar="DATASET", help="By default, those of the paper.")] = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Summarise datasets: counts, degrees, class balance, anomalies and supported tasks.

    Example: same data check ENZYMES ./my-graphs.zip
    """
    from same.cli.render import summaries_table
    from same.graphs import load, summarise
    from same.graphs.io.sources import KNOWN, find
    from same.tasks import offered

    sources = sources or [name for name in KNOWN if find(name, data) is not None]
    if not sources:
        raise InputError("none of the paper's datasets is available: name one, or run `same data fetch ENZYMES`")
    logging.getLogger("same").setLevel(logging.WARNING)  # The summary includes the notes.
    stores = [load(source, data) for source in sources]
    summaries = [{**summarise(store), "tasks": offered(store)} for store in stores]
    opt.echo(summaries_table(summaries), summaries, as_json)
    if wrong := [summary["name"] for summary in summaries if summary["as_known"] is False]:
        raise InputError(f"{', '.join(wrong)}: the contents differ from the published dataset of that name")


@app.command()
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME", help="Names in the TU collection.")],
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Download datasets of the TU collection that are not yet available.

    Example: same data fetch ENZYMES DHFR
    """
    from same.graphs.io.sources import fetch

    rows = [{"name": n, "place": "built in" if n == "planted" else str(fetch(n, data))} for n in names]
    opt.echo("\n".join(f"{row['name']}: {row['place']}" for row in rows), rows, as_json)


@app.command()
def make(
    out: Annotated[Path, Option(metavar="DIR", help="Output folder; other verbs accept it as a dataset.")],
    graphs: Annotated[int, Option(min=10, help="Number of graphs.")] = 1_000_000,
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0,
    as_json: opt.Json = False,
) -> None:
    """Generate a dataset like `planted` of any size on disk; a million graphs take 3 GB and a minute.

    Example: same data make --graphs 100000 --out large
    """
    from same.graphs import open_store, write_store
    from same.graphs.planted import planted_parts

    write_store(out, planted_parts(graphs, seed))
    store = open_store(out)
    sizes = {"graphs": store.num_graphs, "nodes": store.num_nodes, "edges": store.num_edges}
    opt.echo(f"{out}: {store}", {"place": str(out), **sizes}, as_json)
