"""Verbs about one model: train, evaluate, embed, config."""

import json
import logging
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from same.cli import options as opt
from same.cli.signals import interruptible
from same.errors import InputError
from same.threads import limit_threads


def train(
    dataset: opt.Dataset = None,
    method: opt.CustomMethod = None,
    tasks: opt.Tasks = None,
    split: Annotated[int | None, Option(help="One of the ten splits, 0 to 9.")] = None,
    seed: Annotated[int | None, Option(help="Random seed.")] = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Folder of the run; runs/HASH by default.")] = None,
    config_file: Annotated[Path | None, Option("--config", metavar="FILE", help="TOML, JSON or preset.")] = None,
    settings: opt.Settings = None,
    device: Annotated[str, Option(help="Device: auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, Option(min=1, help="Number of threads; for small graphs, one is fastest.")] = 1,
    rank_timeout: Annotated[float, Option(min=1, help="Seconds to wait for other ranks of torchrun.")] = 300,
    tensorboard: Annotated[bool, Option("--tensorboard", help="Log for TensorBoard in the run's folder.")] = False,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Train one encoder, or continue an interrupted run.

    Example: same train ENZYMES -m esame -t gc,nc,lp --split 0 --out runs/first
    """
    from same.config import make_config, read_settings

    values = {} if config_file is None else read_settings(config_file)
    values |= opt.parse_settings(settings)
    given = {"dataset": dataset, "method": opt.resolve_method(method), "tasks": tasks, "split": split, "seed": seed}
    if (size := int(os.environ.get("WORLD_SIZE", "1"))) > 1:
        values = {"episodes_per_step": size, **values}
    config = make_config(values | {name: value for name, value in given.items() if value is not None})

    limit_threads(threads)
    from same.cli.render import training_text
    from same.experiment import run
    from same.saved import finished
    from same.training.distributed import LostRankError, join, leave
    from same.training.loop import InterruptedTraining
    from same.training.progress import Progress, TensorBoard

    folder = out or Path("runs") / config.key
    log = logging.getLogger("same")
    try:
        ranks = join(device, rank_timeout)
        if ranks.rank:  # Rank 0 prints for all.
            log.setLevel(logging.CRITICAL)
        board = TensorBoard(folder / ".tensorboard") if tensorboard and not ranks.rank else None
        was_finished = ranks.rank == 0 and finished(folder) is not None
        log.info("%s: %s", folder, json.dumps(config.model_dump(mode="json", exclude_defaults=True)))
        with interruptible() as stop, Progress(quiet=opt.is_quiet(), board=board) as progress:
            result = run(config, folder, data=data, device=device, report=progress, stop=stop, ranks=ranks)
        if ranks.rank:
            # Nothing left to do, and a clean exit sometimes aborts in a gloo thread while the other ranks exit.
            os._exit(0)
        leave()
    except LostRankError as error:
        typer.echo(f"same: {error}; the checkpoint is kept, run the same command to continue", err=True)
        os._exit(1)  # A clean exit would wait for the lost rank.
    except InputError as error:
        if size < 2:
            raise
        typer.echo(f"same: {' '.join(str(error).split())}", err=True)
        os._exit(2)  # As above: a clean exit of a rank can abort in a gloo thread.
    except InterruptedTraining:
        log.warning("interrupted and saved; run the same command to continue")
        raise typer.Exit(130) from None
    opt.echo(training_text(folder, result, was_finished), result, as_json)


def evaluate(
    folder: opt.Run,
    protocol: Annotated[str, Option(help="For link prediction: paper, or released (the authors' code).")] = "paper",
    pair: Annotated[str | None, Option(help="Pair features: concat or symmetric; as trained by default.")] = None,
    probes: Annotated[str, Option(help="Any of linear, network, own (heads), paper.")] = "linear,network,own",
    tasks: Annotated[str | None, Option("--tasks", "-t", help="Tasks to score; all by default.")] = None,
    floors: Annotated[bool, Option(help="Add the majority class, raw features and the untrained encoder.")] = True,
    most_graphs: Annotated[int | None, Option(min=10, help="Limit of graphs per part; none by default.")] = None,
    method: opt.MethodOfRun = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Score the embeddings of a run on its test graphs, for every task, next to the floors.

    Example: same evaluate runs/first --protocol paper --pair symmetric
    """
    limit_threads()
    from same.cli.render import scores_table
    from same.probes.evaluate import evaluate_run
    from same.saved import read

    opt.resolve_method(method)
    given: Any = {"protocols": opt.parse_names(protocol), "pair": pair, "data": data}
    given |= {"tasks": opt.parse_names(tasks) or None, "floors": floors, "most_graphs": most_graphs}
    rows = evaluate_run(folder, probes=opt.parse_names(probes), **given)
    config = read(folder).config
    about = {"split": config.split, "seed": config.seed, "protocol": protocol, "pair": pair or config.pair}
    title = f"{config.dataset}: {', '.join(f'{name} {value}' for name, value in about.items())}, "
    title += "C by the loss on validation graphs; test graphs, %"
    values = {**about, "rows": [row._asdict() for row in rows]}
    opt.echo(scores_table(rows, title), values, as_json)


def embed(
    folder: opt.Run,
    dataset: Annotated[str, Argument(metavar="DATASET", help="`planted`, a name of the TU collection, or a path.")],
    out: Annotated[Path, Option(metavar="FILE", help="Output file; a folder for npy.")],
    kind: Annotated[str, Option("--format", help="npz, or npy (a folder of arrays, to memory-map).")] = "npz",
    method: opt.MethodOfRun = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Write the node embeddings of a dataset, with the graph of each node and the mean of each graph.

    Example: same embed runs/first ENZYMES --out enzymes.npz
    """
    limit_threads()
    from same.experiment import embed_set

    opt.resolve_method(method)
    nodes = embed_set(folder, dataset, out, data=data, kind=kind)
    opt.echo(f"{out}: embeddings of {nodes:,} nodes", {"file": str(out), "format": kind, "nodes": nodes}, as_json)


def config(
    file: Annotated[Path | None, Argument(metavar="FILE", help="TOML, JSON or preset; else the defaults.")] = None,
    show: Annotated[bool, Option("--show", help="Print all keys with their descriptions, as TOML.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Check a configuration file and print its changes from the defaults, or print all keys.

    Example: same config --show > my.toml
    """
    from same.config import as_toml, make_config, read_settings

    checked = make_config({} if file is None else read_settings(file), "configuration" if file is None else str(file))
    changes = checked.model_dump(mode="json", exclude_defaults=True)
    text = f"changes from the defaults: {json.dumps(changes)}" if changes else "no changes from the defaults"
    text = as_toml(checked).rstrip() if show or file is None else f"{file}: valid; {text}"
    opt.echo(text, checked.model_dump(mode="json"), as_json)
