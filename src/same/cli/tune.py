"""The verb tune."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from same.cli import options as opt
from same.cli.signals import interruptible
from same.errors import InputError
from same.threads import limit_threads


def tune(
    dataset: opt.Dataset = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Folder of the search, new or to continue.")] = None,
    method: opt.Method = "esame",
    tasks: Annotated[str, Option("--tasks", "-t", help="For example gc,nc,lp.")] = "gc,nc,lp",
    trials: Annotated[int, Option(min=1, help="Number of configurations to try; the default is the first.")] = 100,
    splits: Annotated[str, Option(help="Splits whose validation scores count, for example 0 or 0-2.")] = "0",
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0,
    settings: opt.Settings = None,
    show_space: Annotated[bool, Option("--space", help="Only print the search space.")] = False,
    space_file: Annotated[
        Path | None, Option("--space-file", metavar="FILE", help="TOML file of a search space.")
    ] = None,
    sampler: Annotated[str, Option(help="auto, ax or random; auto is Ax if it is installed.")] = "auto",
    stop_early: Annotated[bool, Option(help="Stop trials that score below the median of earlier ones.")] = True,
    round_: Annotated[int, Option("--round", min=1, help="Trials proposed at once; more for a cluster.")] = 4,
    save_config: Annotated[
        Path | None, Option(metavar="DIR", help="Save the best for `same study --tuned DIR`.")
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
    chosen, count = opt.make_engine(engine, workers, address, cpus_per_run, gpus_per_run, retries, checkpoints)
    limit_threads()
    from same.cli.render import tuning_table
    from same.graphs import load
    from same.study.plan import config_name, parse_splits
    from same.tasks import make_tasks
    from same.tuning import tune as tuning
    from same.tuning.report import savings, summary, write_tuning_report
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
        settings=fixed,
        sampler=sampler,
        stop_early=stop_early,
        round=round_,
    )
    make_tasks(names, load(dataset, data))
    with interruptible():
        result = tuning.tune(search, trials, out, engine=chosen, workers=count, data=data, quiet=opt.is_quiet())
    page = write_tuning_report(result)
    if result.done:
        write_best(result, out / BEST)
        if save_config:
            write_best(result, save_config / f"{config_name(dataset, method, names)}.toml")
    opt.echo(tuning_table(result), {"report": str(page), **summary(result)}, as_json)
    if not as_json:
        typer.echo(f"{savings(result)}\nbest configuration: {out / BEST}\nreport: {page}")
