"""Verbs about studies: demo, study, report."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from same.cli import options as opt
from same.cli.signals import interruptible


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
    questions: Annotated[
        str | None, Option(help="Of floors, overview, fig1, Q1-Q4, appendix, weighting; all by default.")
    ] = None,
    datasets: Annotated[str | None, Option(help="ENZYMES,PROTEINS,DHFR,COX2 by default.")] = None,
    methods: Annotated[str | None, Option(help="All that the questions need by default.")] = None,
    tasks: Annotated[str | None, Option(help="Sets of tasks, for example gc,gc+nc; all by default.")] = None,
    splits: Annotated[str | None, Option(help="For example 0-3,7; 0-9 by default.")] = None,
    budget: Annotated[str | None, Option(help="paper (default), short (40 epochs) or small (minutes).")] = None,
    settings: opt.Settings = None,
    pair: Annotated[str | None, Option(help="Pair features: concat (as in the paper, default) or symmetric.")] = None,
    choose: opt.Choose = None,
    keep_models: Annotated[bool, Option("--keep-models", help="Keep the folders of finished runs.")] = False,
    tuned: Annotated[Path | None, Option(metavar="DIR", help="Configurations from `same tune`; --set wins.")] = None,
    engine: opt.EngineName = "local",
    workers: opt.Workers = None,
    address: opt.Address = None,
    cpus_per_run: opt.Cpus = 1,
    gpus_per_run: opt.Gpus = 0,
    retries: opt.Retries = 3,
    checkpoints: opt.Checkpoints = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the runs and the expected time.")] = False,
    data: opt.Data = None,
    as_json: opt.Json = False,
) -> None:
    """Run the experiments of the paper, or continue an interrupted study, and write the report.

    Example: same study --out study --datasets ENZYMES --splits 0-1 --budget small
    """
    from same.study.plan import make_plan, parse_splits, parse_task_sets
    from same.tuning.tuned import read_tuned

    given = opt.parse_settings(settings) | ({"pair": pair} if pair else {})
    configurations = None if tuned is None else read_tuned(tuned)
    plan = make_plan(
        out,
        questions=opt.parse_names(questions) or None,
        datasets=opt.parse_names(datasets) or None,
        methods=opt.parse_names(methods) or None,
        tasks=parse_task_sets(tasks) if tasks else None,
        splits=parse_splits(splits) if splits else None,
        budget=budget,
        settings=given,
        tuned=configurations,
        choose=choose,
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
    chosen, count = opt.make_engine(engine, workers, address, cpus_per_run, gpus_per_run, retries, checkpoints)
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
        typer.echo(f"{len(failed)} of {planned} runs failed, the first with: {failed[0].splitlines()[0]}", err=True)
        raise typer.Exit(1)
    if not as_json:
        typer.echo(f"{len(result.runs)} of {planned} runs are done, none failed")


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
