"""Verbs about datasets: data list, check, fetch, make."""

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from same.cli import options as opt
from same.errors import InputError

app = typer.Typer(no_args_is_help=True, help="List, check, download and generate datasets.")


@app.command("list")
def list_datasets(data: opt.Data = None, as_json: opt.Json = False) -> None:
    """List the available datasets and where they are stored.

    Example: same data list --data ~/sets
    """
    from same.graphs.sources import ALIASES, KNOWN, NAMES, find

    aliases = {full: alias for alias, full in ALIASES.items()}
    rows: list[dict[str, Any]] = [{"name": "planted", "alias": None, "paper": False, "place": "built in"}]
    for name in sorted(NAMES, key=lambda name: (name not in KNOWN, name.lower())):
        place = find(name, data)
        row = {"name": name, "alias": aliases.get(name), "paper": name in KNOWN}
        rows.append({**row, "place": None if place is None else str(place)})
    if as_json:
        opt.print_json(rows)
        return
    from same.cli.render import print_datasets

    print_datasets(rows)


@app.command()
def check(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME|PATH]...", help="Datasets; by default, those of the paper that are available."),
    ] = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Summarise datasets: counts, degrees, class balance, anomalies and supported tasks.

    Example: same data check ENZYMES ./my-graphs.zip
    """
    from same.check import check
    from same.cli.render import print_summaries
    from same.graphs import load
    from same.graphs.sources import KNOWN, find

    sources = sources or [name for name in KNOWN if find(name, data) is not None]
    if not sources:
        raise InputError(
            "none of the paper's datasets is available: name a dataset or a path, or run `same data fetch ENZYMES`"
        )
    logging.getLogger("same").setLevel(logging.WARNING)  # The summary includes the notes.
    summaries = [check(load(source, data)) for source in sources]
    if as_json:
        opt.print_json(summaries)
    else:
        print_summaries(summaries)
    if wrong := [summary["name"] for summary in summaries if summary["as_known"] is False]:
        raise InputError(f"{', '.join(wrong)}: the contents differ from the published dataset of that name")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names in the TU collection.")],
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Download datasets of the TU collection that are not yet available.

    Example: same data fetch ENZYMES DHFR
    """
    from same.graphs.sources import fetch

    rows = []
    for name in names:
        rows.append({"name": name, "place": "built in" if name == "planted" else str(fetch(name, data))})
        if not as_json:
            typer.echo(f"{name}: {rows[-1]['place']}")
    if as_json:
        opt.print_json(rows)


@app.command()
def make(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output folder; other verbs accept it as a dataset.")],
    graphs: Annotated[int, typer.Option(min=10, help="Number of graphs.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    as_json: opt.Json = False,
) -> None:
    """Generate a dataset like `planted` of any size on disk; a million graphs take 3 GB and a minute.

    Example: same data make --graphs 100000 --out large
    """
    from same.graphs import GraphStore
    from same.graphs.planted import planted_parts

    GraphStore.write(out, planted_parts(graphs, seed))
    store = GraphStore.open(out)
    if as_json:
        sizes = {"graphs": store.num_graphs, "nodes": store.num_nodes, "edges": store.num_edges}
        opt.print_json({"place": str(out), **sizes})
    else:
        typer.echo(f"{out}: {store}")
