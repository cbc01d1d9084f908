"""Verbs about one model: train, evaluate, embed, config."""

import json
import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from same.cli import options as opt
from same.cli.signals import stop_requests
from same.machine import settle


def train(
    dataset: opt.Dataset = None,
    method: opt.Method = None,
    tasks: Annotated[str | None, typer.Option("--tasks", "-t", help="Comma-separated, for example gc,nc,lp.")] = None,
    split: Annotated[int | None, typer.Option(help="Which of the ten splits, 0 to 9.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the run; runs/HASH by default.")] = None,
    config_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML or JSON file, or the preset `sage-walk`; options win."),
    ] = None,
    settings: opt.Settings = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, typer.Option(min=1, help="Number of threads; for small graphs, one is fastest.")] = 1,
    rank_timeout: Annotated[
        float, typer.Option(min=1, help="With torchrun: seconds that a rank waits for the others.")
    ] = 300,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Log losses and scores for TensorBoard in the folder of the run.")
    ] = False,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Train one encoder, or continue an interrupted run.

    Example: same train ENZYMES -m esame -t gc,nc,lp --split 0 --out runs/first
    """
    from same.config import make_config, read_settings

    values = {} if config_file is None else read_settings(config_file)
    values |= opt.parse_settings(settings)
    name = opt.resolve_method(method) if method else None
    given = {"dataset": dataset, "method": name, "tasks": tasks, "split": split, "seed": seed}
    if (size := int(os.environ.get("WORLD_SIZE", "1"))) > 1:
        values = {"episodes_per_step": size, **values}
    config = make_config(values | {name: value for name, value in given.items() if value is not None})

    settle(threads)
    from same.parallel import LostRankError, join, leave
    from same.progress import Progress, TensorBoard
    from same.runs import finished, run
    from same.training import InterruptedTraining

    folder = out or Path("runs") / config.key
    log = logging.getLogger("same")
    try:
        ranks = join(device, rank_timeout)
        if ranks.rank:  # Rank 0 prints for all.
            log.setLevel(logging.CRITICAL)
        board = TensorBoard(folder / ".tensorboard") if tensorboard and not ranks.rank else None
        was_finished = ranks.rank == 0 and finished(folder) is not None
        log.info("%s: %s", folder, json.dumps(config.model_dump(mode="json", exclude_defaults=True)))
        with stop_requests() as stop, Progress(quiet=opt.is_quiet(), board=board) as progress:
            result = run(config, folder, data=data, device=device, report=progress, stop=stop, ranks=ranks)
        if ranks.rank:
            # Nothing left to do, and a clean exit sometimes aborts in a gloo thread while the other ranks exit.
            os._exit(0)
        leave()
    except LostRankError as error:
        typer.echo(f"same: {error}; the checkpoint is kept, run the same command to continue", err=True)
        os._exit(1)  # A clean exit would wait for the lost rank.
    except InterruptedTraining:
        log.warning("interrupted and saved; run the same command to continue")
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        log.warning("interrupted before training started")
        raise typer.Exit(130) from None
    if as_json:
        opt.print_json(result)
        return
    from same.cli.render import print_training

    print_training(folder, result, was_finished)


def evaluate(
    folder: opt.Run,
    protocol: Annotated[
        str, typer.Option(help="Protocol of link prediction: paper, or released (as in the authors' code).")
    ] = "paper",
    pair: Annotated[
        str | None, typer.Option(help="Pair features of the probes: concat or symmetric; as trained by default.")
    ] = None,
    probes: Annotated[str, typer.Option(help="Any of linear, network, own.")] = "linear,network,own",
    tasks: Annotated[
        str | None, typer.Option("--tasks", "-t", help="All tasks that the dataset supports by default.")
    ] = None,
    choose: opt.Choose = None,
    floors: Annotated[
        bool, typer.Option(help="Add the majority class, raw features and the untrained encoder.")
    ] = True,
    most_graphs: Annotated[
        int | None, typer.Option(min=10, help="Large datasets: number of graphs per part to probe; all by default.")
    ] = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Score the embeddings of a run on its test graphs, for every task, next to the floors.

    Example: same evaluate runs/first --protocol paper --pair symmetric
    """
    settle()
    from dataclasses import asdict

    from same.cli.render import print_scores
    from same.probes.evaluate import evaluate_run
    from same.runs import open_run

    rows = evaluate_run(
        folder,
        probes=opt.parse_names(probes),
        floors=floors,
        data=data,
        most_graphs=most_graphs,
        tasks=opt.parse_names(tasks) or None,
        protocol=protocol,
        pair=pair,
        choose_c=choose,
    )
    config = open_run(folder).config
    if as_json:
        about = {"protocol": protocol, "pair": pair or config.pair, "seed": config.seed, "split": config.split}
        opt.print_json({**about, "choose": choose, "rows": list(map(asdict, rows))})
        return
    print_scores(
        rows,
        f"{config.dataset}, split {config.split}, seed {config.seed}: protocol {protocol}, "
        f"pair features {pair or config.pair}, C {f'chosen by {choose}' if choose else '= 1'}; test graphs, %",
    )


def embed(
    folder: opt.Run,
    dataset: Annotated[str, typer.Argument(help="Name, folder or zip file of a dataset, or `planted`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Output file; a folder for npy.")],
    kind: Annotated[
        str, typer.Option("--format", help="npz, npy (a folder of files for memory mapping) or parquet (pyarrow).")
    ] = "npz",
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Write the node embeddings of a dataset, with the graph of each node and the mean of each graph.

    Example: same embed runs/first ENZYMES --out enzymes.npz
    """
    settle()
    from same.embedding import embed_set

    nodes = embed_set(folder, dataset, out, data=data, kind=kind)
    if as_json:
        opt.print_json({"file": str(out), "format": kind, "nodes": nodes})
    else:
        typer.echo(f"{out}: embeddings of {nodes:,} nodes")


def config(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="TOML or JSON file, or a preset; the defaults without one.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print all keys with their descriptions, as TOML.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Check a configuration file and print its changes from the defaults, or print all keys.

    Example: same config --show > my.toml
    """
    from same.config import as_toml, make_config, read_settings

    checked = make_config({} if file is None else read_settings(file), "configuration" if file is None else str(file))
    changes = checked.model_dump(mode="json", exclude_defaults=True)
    if as_json:
        opt.print_json(checked.model_dump(mode="json"))
    elif show or file is None:
        typer.echo(as_toml(checked), nl=False)
    elif changes:
        typer.echo(f"{file}: valid; changes from the defaults: {json.dumps(changes)}")
    else:
        typer.echo(f"{file}: valid; no changes from the defaults")
