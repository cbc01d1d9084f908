"""Verbs about many runs: demo, study, tune, report."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from same.cli import options as opt
from same.cli.signals import interruptible
from same.errors import InputError
from same.threads import limit_threads


def demo(
    out: Annotated[Path, Option(metavar="DIR", help="Output folder.")] = Path("same-demo"),
    workers: opt.Workers = None,
    as_json: opt.Json = False,
) -> None:
    """Train and evaluate on the built-in dataset in about a minute; print a table and write a report.

    Example: same demo --out demo
    """
    from same.study.demo import DEMO, demo_table
    from same.study.report import write_report
    from same.study.run import run_study

    with interruptible():
        result = run_study(DEMO, out / "study", workers=workers or os.cpu_count() or 1, quiet=opt.is_quiet())
    page = write_report(result)
    if not as_json and not result.failed:
        opt.echo(demo_table(result), None, False)
    _print_outcome(result, page, as_json)


def study(
    out: Annotated[Path, Option(metavar="DIR", help="Folder of the study; an existing study is continued.")],
    questions: Annotated[str | None, Option(help="Any of Q1-Q4, fig1, appendix, weighting, overview, floors.")] = None,
    datasets: Annotated[str | None, Option(help="Names or paths; ENZYMES,PROTEINS,DHFR,COX2 by default.")] = None,
    methods: Annotated[str | None, Option(help="Methods to train; all that the questions need by default.")] = None,
    tasks: Annotated[str | None, Option(help="Sets of tasks, for example gc,gc+nc; all by default.")] = None,
    splits: Annotated[str | None, Option(help="Splits, for example 0-3,7; 0-9 by default.")] = None,
    budget: Annotated[str | None, Option(help="Epochs: paper (default), short (40) or small (for a try).")] = None,
    settings: opt.Settings = None,
    pair: Annotated[str | None, Option(help="Pair features: concat (as in the paper, default) or symmetric.")] = None,
    keep_models: Annotated[bool, Option("--keep-models", help="Keep the folders of finished runs.")] = False,
    tuned: Annotated[Path | None, Option(metavar="DIR", help="Configurations from `same tune`; --set wins.")] = None,
    engine: opt.EngineName = "local",
    workers: opt.Workers = None,
    address: opt.Address = None,
    cpus_per_run: opt.Cpus = 1,
    gpus_per_run: opt.Gpus = 0,
    checkpoints: opt.Checkpoints = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the runs and the expected time.")] = False,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Run the experiments of the paper, or continue an interrupted study, and write the report.

    Example: same study --out study --datasets ENZYMES --splits 0-1 --budget small
    """
    from same.study.plan import make_plan, parse_splits
    from same.tuning.tuned import read_tuned

    given = opt.parse_settings(settings) | ({"pair": pair} if pair else {})
    configurations = None if tuned is None else read_tuned(tuned)
    plan = make_plan(
        out,
        questions=opt.parse_names(questions) or None,
        datasets=opt.parse_names(datasets) or None,
        methods=opt.parse_names(methods) or None,
        tasks=tuple(tuple(each.split("+")) for each in opt.parse_names(tasks)) or None,
        splits=parse_splits(splits) if splits else None,
        budget=budget,
        settings=given,
        tuned=configurations,
        keep_models=keep_models or None,
    )
    plan.runs()  # Report invalid settings before anything is written.
    if configurations is not None:
        for name in plan.untuned():
            typer.echo(f"no tuned configuration of {name}: using the default", err=True)
    if dry_run:
        from same.cli.render import plan_rows, plan_text

        opt.echo(plan_text(plan, out, workers or os.cpu_count() or 1), plan_rows(plan, out), as_json)
        return
    chosen, count = opt.make_engine(engine, workers, address, cpus_per_run, gpus_per_run, checkpoints)
    from same.graphs import load
    from same.study.report import write_report
    from same.study.run import check_dataset, run_study

    for dataset in plan.datasets:
        check_dataset(plan, dataset, load(dataset, data))
    with interruptible():
        result = run_study(plan, out, engine=chosen, workers=count, data=data, quiet=opt.is_quiet())
    _print_outcome(result, write_report(result), as_json)


def _print_outcome(result: Any, page: Path, as_json: bool) -> None:
    """Print the outcome of a study; exits with code 1 if a run failed."""
    from same.study.report import summary

    opt.echo(f"report: {page}", {"report": str(page), **summary(result)} if as_json else None, as_json)
    planned, failed = len(result.plan.runs()), list(result.failed.values())
    if failed:
        typer.echo(f"{len(failed)} of {planned} runs failed, the first with: {failed[0]}", err=True)
        raise typer.Exit(1)
    if not as_json:
        typer.echo(f"{len(result.runs)} of {planned} runs are done, none failed")


def tune(
    dataset: opt.Dataset = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Folder of the search, new or to continue.")] = None,
    method: opt.Method = "esame",
    tasks: opt.Tasks = "gc,nc,lp",
    trials: Annotated[int, Option(min=1, help="Number of configurations to try, the default one first.")] = 100,
    split: Annotated[int, Option(help="Split whose validation graphs score the trials, 0 to 9.")] = 0,
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0,
    settings: opt.Settings = None,
    show_space: Annotated[bool, Option("--space", help="Only print the search space.")] = False,
    space_file: Annotated[Path | None, Option(metavar="FILE", help="Search space as TOML; see --space.")] = None,
    sampler: Annotated[str, Option(help="auto, ax or random; auto is Ax if it is installed.")] = "auto",
    stop_early: Annotated[bool, Option(help="Stop trials that score below the median of earlier ones.")] = True,
    round_: Annotated[int, Option("--round", min=1, help="Trials proposed at once; more for a cluster.")] = 4,
    engine: opt.EngineName = "local",
    workers: opt.Workers = None,
    address: opt.Address = None,
    cpus_per_run: opt.Cpus = 1,
    gpus_per_run: opt.Gpus = 0,
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
    if ":" in method:
        raise InputError("--method: a search needs a registered name: its runs are processes that do not load files")
    if dataset is None or out is None:
        raise InputError("tune needs a DATASET and --out DIR; `same tune --space` prints the search space")
    chosen, count = opt.make_engine(engine, workers, address, cpus_per_run, gpus_per_run, checkpoints)
    limit_threads()
    from same.cli.render import tuning_table
    from same.graphs import load
    from same.tasks import make_tasks
    from same.tuning import search as tuning
    from same.tuning.report import savings, summary, write_tuning_report
    from same.tuning.tuned import BEST, write_best

    names, fixed = opt.parse_names(tasks), opt.parse_settings(settings)
    space = space.restrict(method, names, fixed)
    search = tuning.Search(dataset, method, names, space, split, seed, fixed, sampler, stop_early, round_)
    make_tasks(names, load(dataset, data))
    with interruptible():
        result = tuning.tune(search, trials, out, engine=chosen, workers=count, data=data, quiet=opt.is_quiet())
    page = write_tuning_report(result)
    if result.done:
        write_best(result, out / BEST)
    opt.echo(tuning_table(result), {"report": str(page), **summary(result)}, as_json)
    if not as_json:
        typer.echo(f"{savings(result)}\nbest configuration: {out / BEST}\nreport: {page}")


def report(
    folder: Annotated[Path, Argument(metavar="DIR", help="Folder of a study or search, finished or not.")],
    as_json: opt.Json = False,
) -> None:
    """Write the report of a study (page, Markdown, CSV, LaTeX, figures) or of a search.

    Example: same report study
    """
    from same.study.report import summary, write_report
    from same.study.results import Study
    from same.tuning.report import summary as tuning_summary
    from same.tuning.report import write_tuning_report
    from same.tuning.search import FILE, Tuning

    if (folder / FILE).is_file():
        search = Tuning.open(folder)
        page, values = write_tuning_report(search), tuning_summary(search)
    else:
        results = Study.open(folder)
        page, values = write_report(results), summary(results)
    opt.echo(f"report: {page}", {"report": str(page), **values}, as_json)
