"""The verb tune."""

from pathlib import Path
from typing import Annotated

import typer

from same.cli import options as opt
from same.cli.signals import interruptible
from same.errors import InputError
from same.machine import settle


def tune(
    dataset: opt.Dataset = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the search; an existing search is continued.")
    ] = None,
    method: opt.Method = "esame",
    tasks: Annotated[str, typer.Option("--tasks", "-t", help="Comma-separated, for example gc,nc,lp.")] = "gc,nc,lp",
    trials: Annotated[
        int, typer.Option(min=1, help="Number of configurations to try; the default is the first.")
    ] = 100,
    splits: Annotated[str, typer.Option(help="Splits whose validation scores count, for example 0 or 0-2.")] = "0",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    settings: opt.Settings = None,
    show_space: Annotated[bool, typer.Option("--space", help="Only print the search space.")] = False,
    space_file: Annotated[
        Path | None, typer.Option("--space-file", metavar="FILE", help="Use the search space in a TOML file.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="auto, ax or random; auto is Ax if it is installed.")] = "auto",
    stop_early: Annotated[bool, typer.Option(help="Stop trials that score below the median of earlier ones.")] = True,
    round_: Annotated[
        int, typer.Option("--round", min=1, help="Number of trials proposed at once; increase it for a cluster.")
    ] = 4,
    save_config: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also save the best configuration for `same study --tuned DIR`.")
    ] = None,
    engine: opt.EngineName = "local",
    workers: opt.Workers = None,
    address: opt.Address = None,
    cpus_per_run: opt.Cpus = 1,
    gpus_per_run: opt.Gpus = 0,
    retries: opt.Retries = 3,
    checkpoints: opt.Checkpoints = None,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Find the configuration of a method with the best validation score; test graphs are never used.

    Example: same tune ENZYMES -m esame -t gc,nc,lp --trials 100 --out tuned/enzymes
    """
    from same.tuning.space import DEFAULT, read_space

    space = read_space(space_file or DEFAULT)
    if show_space:
        typer.echo((space_file or DEFAULT).read_text(encoding="utf-8").rstrip())
        return
    if dataset is None or out is None:
        raise InputError("tune needs a DATASET and --out DIR; `same tune --space` prints the search space")
    chosen = opt.make_engine(engine, address, cpus_per_run, gpus_per_run, retries, checkpoints)
    settle()
    from same.cli.render import print_tuning
    from same.graphs import load
    from same.study.plan import config_name, parse_splits
    from same.tasks import make_tasks
    from same.tuning import tune as tuning
    from same.tuning.report import summary, write_tuning_report
    from same.tuning.search import Search
    from same.tuning.tuned import BEST, write_best

    names, fixed, method = opt.parse_names(tasks), opt.parse_settings(settings), opt.resolve_method(method or "esame")
    search = Search(
        dataset,
        method,
        names,
        space.restrict(method, names, fixed),
        splits=parse_splits(splits),
        seed=seed,
        settings=tuple(sorted(fixed.items())),
        sampler=sampler,
        stop_early=stop_early,
        round=round_,
    )
    make_tasks(names, load(dataset, data))
    with interruptible():
        result = tuning.tune(
            search,
            trials,
            out,
            engine=chosen,
            workers=opt.count_workers(engine, workers),
            data=data,
            quiet=opt.is_quiet(),
        )
    page = write_tuning_report(result)
    if result.done:
        write_best(result, out / BEST)
        if save_config:
            write_best(result, save_config / f"{config_name(dataset, method, names)}.toml")
    if as_json:
        opt.print_json({"report": str(page), **summary(result)})
    else:
        print_tuning(result)
        typer.echo(f"best configuration: {out / BEST}\nreport: {page}")
