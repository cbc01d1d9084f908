"""The command `same`. Heavy imports wait inside the verbs, so that help is instant."""

import io
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from same import __version__
from same.errors import InputError
from same.machine import settle
from same.names import METHODS

if TYPE_CHECKING:
    from same.study import Study
    from same.study.engines import Engine

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One graph encoder for many tasks (SAME: single-task adaptation for multi-task embeddings).",
    epilog="Example: same demo. Every verb's --help shows one. Exit codes: 0 done, 1 failed, 2 a mistake in what was "
    "asked, 130 stopped and saved.",
)
data_app = typer.Typer(no_args_is_help=True, help="What sets of graphs are known; get them; look into them.")
app.add_typer(data_app, name="data")

DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Where local sets lie; SAME_DATA by default.")
]
ChooseCOption = Annotated[
    str | None,
    typer.Option(help="Choose the C of linear probes on validation graphs, by score or (steadier) loss; 1 otherwise."),
]
EngineOption = Annotated[str, typer.Option(help="local: processes on this machine; ray: a cluster.")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Runs at once; one a core by default.")]
AddressOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Of a Ray cluster; without one, Ray is started here.")
]
CpusOption = Annotated[float, typer.Option(min=0.1, help="Cores (and threads) a run gets, with --engine ray.")]
GpusOption = Annotated[float, typer.Option(min=0, help="GPUs a run gets, with --engine ray.")]
RetriesOption = Annotated[int, typer.Option(min=0, help="How often Ray tries a run again whose worker is lost.")]
CheckpointsOption = Annotated[
    str | None,
    typer.Option(metavar="PATH|URL", help="Seen by all machines of Ray, any fsspec address; --out by default."),
]


def _methods(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Runs the command; a user's mistake is one line and exit code 2."""
    for standard in (sys.stdout, sys.stderr):
        if isinstance(standard, io.TextIOWrapper):
            standard.reconfigure(errors="replace")
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("same").setLevel(logging.INFO)
    try:
        app()
    except InputError as error:
        typer.echo(f"same: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        # torch has no error of its own for it.
        if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
            raise
        typer.echo("same: out of memory; lower width, layers or batch_size, or use fewer workers", err=True)
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        typer.echo(f"same: {error.filename}: {error.strerror}", err=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"same {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors.")] = False,
) -> None:
    if quiet:
        logging.getLogger("same").setLevel(logging.ERROR)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")] = Path("same-demo"),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The main job on the embedded set, in about a minute: train, probe, print the table, write a report.

    Example: same demo --out demo
    """
    from same.graphs import planted
    from same.show import console
    from same.study.demo import DEMO, demo_table
    from same.study.report import write_report
    from same.study.report.figures import draw_graphs
    from same.study.run import run_study

    draw_graphs(planted(), out / "planted.png")
    with _interruptible():
        study = run_study(DEMO, out / "study", workers=workers or os.cpu_count() or 1, quiet=_is_quiet())
    if as_json:
        _print_study(study, write_report(study))
        return
    _finish(study, failures_only=True)
    console().print(demo_table(study), highlight=False, markup=False)
    typer.echo(f"picture: {out / 'planted.png'}")
    typer.echo(f"report: {write_report(study)}")


@app.command()
def study(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The study's folder; the same command goes on with it.")],
    questions: Annotated[
        str | None, typer.Option(help="Of floors, overview, fig1, Q1, Q2, Q3, Q4, appendix, weighting; all by default.")
    ] = None,
    datasets: Annotated[str | None, typer.Option(help="ENZYMES,PROTEINS,DHFR,COX2 by default.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these; all that the questions need by default.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Only these sets of tasks, like gc,gc+nc; all by default.")] = None,
    splits: Annotated[str | None, typer.Option(help="Splits, such as 0-3,7; by default 0-9.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="paper (default); short: 40 epochs; small: minutes, for trying out.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any key of the configuration, for all runs.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Pair features: concat (the paper's, default) or symmetric.")] = None,
    choose_c: ChooseCOption = None,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="Keep the folders of finished runs.")] = False,
    tuned: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Configurations that `same tune` found; --set wins over them.")
    ] = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    cpus_per_run: CpusOption = 1,
    gpus_per_run: GpusOption = 0,
    retries: RetriesOption = 3,
    checkpoints: CheckpointsOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and what they will take; do nothing.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the paper's experiments, all or some; go on with a study that was interrupted; write its report.

    Example: same study --out study --datasets ENZYMES --splits 0-1 --budget small
    """
    from same.config import parse_setting
    from same.study.plan import make_plan, overruled, parse_splits, parse_task_sets
    from same.study.plan import names as parse_names

    asked = dict(map(parse_setting, settings or [])) | ({"pair": pair} if pair else {})
    configurations = None if tuned is None else _read_tuned(tuned)
    plan = make_plan(
        out,
        questions=parse_names(questions, ()) or None,
        datasets=parse_names(datasets, ()) or None,
        methods=parse_names(methods, ()) or None,
        tasks=parse_task_sets(tasks) if tasks else None,
        splits=parse_splits(splits) if splits else None,
        budget=budget,
        settings=asked,
        tuned=configurations,
        choose=choose_c,
        keep_models=keep_models or None,
    )
    plan.runs()  # A mistake in the settings is said before anything is written.
    if configurations is not None:
        missing = [f"no tuned configuration of {name}: the default is used" for name in plan.untuned()]
        for line in [*missing, *overruled(asked, configurations)]:
            typer.echo(line, err=True)
    crew = workers or os.cpu_count() or 1
    if dry_run:
        from same.show import plan_rows, print_plan

        if as_json:
            typer.echo(json.dumps(plan_rows(plan, out), indent=1))
        else:
            print_plan(plan, out, crew)
        return
    doer = _engine(engine, address, cpus_per_run, gpus_per_run, retries, checkpoints)
    from same.graphs import load
    from same.study.report import write_report
    from same.study.run import check_dataset, run_study

    for dataset in plan.datasets:
        check_dataset(plan, dataset, load(dataset, data))
    with _interruptible():
        found = run_study(plan, out, engine=doer, workers=_crew(engine, workers), data=data, quiet=_is_quiet())
    page = write_report(found, data=data)
    if as_json:
        _print_study(found, page)
        return
    typer.echo(f"report: {page}")
    _finish(found)


def _engine(
    name: str, address: str | None, cpus: float, gpus: float, retries: int, checkpoints: str | None
) -> "Engine":
    if name == "local":
        if address or checkpoints or gpus:
            option = "--address" if address else "--checkpoints" if checkpoints else "--gpus-per-run"
            raise InputError(f"{option}: goes with --engine ray")
        from same.study.engines import local

        return local
    if name != "ray":
        raise InputError(f"--engine: {name!r} is not one of local, ray")
    from same.study.engines.ray import RayEngine, connect

    connect(address)  # What is wrong with it is said before anything is written.
    return RayEngine(address, cpus, gpus, retries, checkpoints)


def _crew(engine: str, workers: int | None) -> int:
    """How many runs at once; 0 lets Ray fill the cluster."""
    return workers or (0 if engine == "ray" else os.cpu_count() or 1)


def _read_tuned(folder: Path) -> dict[str, dict[str, Any]]:
    from same.study.tuned import read_tuned

    return read_tuned(folder)


@app.command()
def tune(
    dataset: Annotated[str | None, typer.Argument(help="Name, folder or zip of a set, or `planted`.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The search's folder; the same command goes on with it.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="What to tune; see `same train --help`.", autocompletion=_methods)
    ] = "esame",
    tasks: Annotated[str, typer.Option("--tasks", "-t", help="For example gc,nc,lp.")] = "gc,nc,lp",
    trials: Annotated[int, typer.Option(min=1, help="How many configurations to try, the default first.")] = 100,
    splits: Annotated[str, typer.Option(help="On whose validation graphs, like 0 or 0-2.")] = "0",
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Fix any key of the configuration.")
    ] = None,
    show_space: Annotated[bool, typer.Option("--space", help="Print the search space, and do nothing else.")] = False,
    space_file: Annotated[
        Path | None, typer.Option("--space-file", metavar="FILE", help="A search space of your own, in TOML.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="auto, ax or random; auto is Ax where it is installed.")] = "auto",
    stop_early: Annotated[bool, typer.Option(help="Give up trials below the median of those before.")] = True,
    round_: Annotated[
        int, typer.Option("--round", min=1, help="Trials proposed at once, to run side by side; more for a cluster.")
    ] = 4,
    save_config: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also put the best one here, for `same study --tuned DIR`.")
    ] = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    cpus_per_run: CpusOption = 1,
    gpus_per_run: GpusOption = 0,
    retries: RetriesOption = 3,
    checkpoints: CheckpointsOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the configuration with which a method validates best; test graphs are not looked at.

    Example: same tune ENZYMES -m esame -t gc,nc,lp --trials 100 --out tuned/enzymes
    """
    from same.config import parse_setting
    from same.study.plan import names, parse_splits
    from same.study.space import DEFAULT, read_space

    space = read_space(space_file or DEFAULT)
    if show_space:
        typer.echo((space_file or DEFAULT).read_text(encoding="utf-8").rstrip())
        return
    if dataset is None or out is None:
        raise InputError("tune needs a DATASET and --out DIR; `same tune --space` prints what is searched")
    doer = _engine(engine, address, cpus_per_run, gpus_per_run, retries, checkpoints)
    settle()
    from same.graphs import load
    from same.show import print_tuning
    from same.study.search import Question
    from same.study.tune import tune as search
    from same.study.tuned import BEST, config_name, write_best
    from same.study.tuning_report import summary, write_tuning_report
    from same.tasks import make_tasks

    wanted, fixed = names(tasks, ()), dict(map(parse_setting, settings or []))
    question = Question(
        dataset,
        method,
        wanted,
        space.matter(method, wanted, fixed),
        splits=parse_splits(splits),
        seed=seed,
        settings=tuple(sorted(fixed.items())),
        sampler=sampler,
        stop_early=stop_early,
        round=round_,
    )
    make_tasks(wanted, load(dataset, data))
    with _interruptible():
        found = search(question, trials, out, engine=doer, workers=_crew(engine, workers), data=data, quiet=_is_quiet())
    page = write_tuning_report(found)
    if found.done:
        write_best(found, out / BEST)
        if save_config:
            write_best(found, save_config / f"{config_name(dataset, method, wanted)}.toml")
    if as_json:
        typer.echo(json.dumps({"report": str(page), **summary(found)}, indent=1))
        return
    print_tuning(found)
    typer.echo(f"best configuration: {out / BEST}\nreport: {page}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM end a study in order: its workers save where they stand."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        logging.getLogger("same").warning("stopped; the same command goes on from here")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_study(study: "Study", page: Path) -> None:
    """The study as JSON; the exit code says whether a run failed."""
    from same.study.report import summary

    typer.echo(json.dumps({"report": str(page), **summary(study)}, indent=1))
    if study.failed:
        raise typer.Exit(1)


def _finish(study: "Study", failures_only: bool = False) -> None:
    """The last line, and the exit code, say what failed."""
    planned = len(study.plan.runs())
    if study.failed:
        first = next(iter(study.failed.values())).splitlines()[0]
        typer.echo(f"{len(study.failed)} of {planned} runs failed, the first with: {first}", err=True)
        raise typer.Exit(1)
    if not failures_only:
        typer.echo(f"{len(study.runs)} of {planned} runs are done, none failed")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study or search, finished or not.")],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report of a study (Markdown, CSV, LaTeX, figures, one page beside the published numbers) or a search.

    Example: same report study
    """
    from same.study.report import summary, write_report
    from same.study.results import Study
    from same.study.search import QUESTION, Tuning
    from same.study.tuning_report import summary as tuning_summary
    from same.study.tuning_report import write_tuning_report

    if (folder / QUESTION).is_file():
        search = Tuning.open(folder)
        page, found = write_tuning_report(search), tuning_summary(search)
    else:
        study = Study.open(folder)
        page, found = write_report(study, data=data), summary(study)
    typer.echo(json.dumps({"report": str(page), **found}, indent=1) if as_json else f"report: {page}")


def _is_quiet() -> bool:
    return logging.getLogger("same").level > logging.INFO


@app.command(epilog="Methods: " + "; ".join(f"{name} {what}" for name, what in METHODS.items()) + ".")
def train(
    dataset: Annotated[str | None, typer.Argument(help="Name, folder or zip of a set, or `planted`.")] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="One of " + ", ".join(METHODS) + ".", autocompletion=_methods),
    ] = None,
    tasks: Annotated[str | None, typer.Option("--tasks", "-t", help="For example gc,nc,lp.")] = None,
    split: Annotated[int | None, typer.Option(help="Which of the ten splits, 0 to 9.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run's folder; runs/HASH by default.")] = None,
    config_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML, JSON or `sage-walk`, a preset; flags win over it."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any key of the configuration.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, typer.Option(min=1, help="More than one seldom pays for graphs of this size.")] = 1,
    rank_timeout: Annotated[
        float, typer.Option(min=1, help="Under torchrun: how many seconds a rank waits for the others.")
    ] = 300,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Log losses and scores for TensorBoard in the run's folder.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train one encoder; go on with a run that was interrupted.

    Example: same train ENZYMES -m esame -t gc,nc,lp --split 0 --out runs/first
    """
    from same.config import make_config, parse_setting, read_settings

    values = {} if config_file is None else read_settings(config_file)
    values |= dict(map(parse_setting, settings or []))
    flags = {"dataset": dataset, "method": method, "tasks": tasks, "split": split, "seed": seed}
    if (size := int(os.environ.get("WORLD_SIZE", "1"))) > 1:
        values = {"episodes_per_step": size, **values}
    config = make_config(values | {name: value for name, value in flags.items() if value is not None})

    settle(threads)
    from same.parallel import LostRankError, join, leave
    from same.progress import Progress, TensorBoard
    from same.runs import RESULT, run
    from same.training import InterruptedTraining

    folder = out or Path("runs") / config.key
    log = logging.getLogger("same")
    try:
        ranks = join(device, rank_timeout)
        if ranks.rank:  # The first one speaks for all.
            log.setLevel(logging.CRITICAL)
        board = TensorBoard(folder / ".tensorboard") if tensorboard and not ranks.rank else None
        known = (folder / RESULT).is_file()
        log.info("%s: %s", folder, json.dumps(config.model_dump(mode="json", exclude_defaults=True)))
        with _stop_signals() as stop, Progress(quiet=_is_quiet(), board=board) as progress:
            result = run(config, folder, data=data, device=device, report=progress, stop=stop, ranks=ranks)
        if ranks.rank:
            # It has nothing left to do, and a clean end, while the others end, now and then aborts in a thread of gloo.
            os._exit(0)
        leave()
    except LostRankError as error:
        typer.echo(f"same: {error}; the checkpoint is kept, and the same command goes on from it", err=True)
        # Not in order: a clean end would wait for the rank that is gone.
        os._exit(1)
    except InterruptedTraining:
        log.warning("stopped and saved; the same command goes on from here")
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        log.warning("stopped before training began")
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    best = result["best"]
    again = " (it was done already)" if known else ""
    typer.echo(
        f"{folder}: done{again}, best validation at epoch {best['epoch']} (step {best['step']} of {result['steps']}), "
        f"{result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU"
    )
    for task, row in best["tasks"].items():
        moves = (f"{what} {result['untrained'][task][what]:.4f} → {row[what]:.4f}" for what in ("loss", "score"))
        typer.echo(f"{task}: validation {', '.join(moves)}")


@app.command("config")
def show_config(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="TOML, JSON or a preset; defaults without one.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print all keys, with what they mean, as TOML.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a configuration file, and say what it changes; or show all there is to configure.

    Example: same config --show > my.toml
    """
    from same.config import as_toml, make_config, read_settings

    found = make_config({} if file is None else read_settings(file), "configuration" if file is None else str(file))
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=1))
    elif show or file is None:
        typer.echo(as_toml(found), nl=False)
    else:
        changed = found.model_dump(mode="json", exclude_defaults=True)
        typer.echo(f"{file}: sound; beside the defaults: {json.dumps(changed) if changed else 'nothing'}")


@app.command()
def bench(
    data: DataOption = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the table as JSON.")] = Path("bench.json"),
    only: Annotated[
        str | None, typer.Option(help="Of steps, probe, loading, processes, growth, workers; all by default.")
    ] = None,
) -> None:
    """How fast training, probing and loading are beside plain PyG, scikit-learn and the machine; ten minutes.

    Example: same bench --data ~/sets --only steps
    """
    import subprocess

    from same.graphs.io.download import KNOWN, find

    script = Path(__file__).parents[2] / "benchmarks" / "bench.py"
    if not script.is_file():
        raise InputError("bench: the benchmarks are part of the source, not of the installed package; clone it")
    places = {name: find(name, data) for name in KNOWN}
    missing = [name for name, place in places.items() if place is None]
    if missing:
        raise InputError(f"bench: needs {', '.join(missing)}; name their folder with --data, or `same data fetch` them")
    folder = next(place.parent for place in places.values() if place is not None)
    wanted = [] if only is None else ["--only", only]
    raise typer.Exit(subprocess.run([sys.executable, script, folder, "--json", out, *wanted], check=False).returncode)


RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")]


@app.command()
def evaluate(
    folder: RunArgument,
    protocol: Annotated[
        str, typer.Option(help="How link prediction is evaluated: paper, or released (as the authors' code did).")
    ] = "paper",
    pair: Annotated[
        str | None, typer.Option(help="What probes see of two nodes: concat or symmetric; as trained by default.")
    ] = None,
    probes: Annotated[str, typer.Option(help="Any of linear, paper, network, own.")] = "linear,network,own",
    tasks: Annotated[str | None, typer.Option("--tasks", "-t", help="All that the set offers by default.")] = None,
    choose_c: ChooseCOption = None,
    floors: Annotated[bool, typer.Option(help="Also majority, raw features and the untrained encoder.")] = True,
    most_graphs: Annotated[
        int | None, typer.Option(min=10, help="Of a large set: graphs of each part to probe; all by default.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Scores of a run's embeddings on its test graphs, for every task, beside the floors.

    Example: same evaluate runs/first --protocol paper --pair symmetric
    """
    settle()
    from same.probes.evaluate import evaluate_run
    from same.runs import open_run
    from same.show import print_rows

    wanted = probes.split(",")
    names = None if tasks is None else tasks.split(",")
    how: Any = {"protocols": (protocol,), "tasks": names, "pair": pair, "choose": choose_c}
    rows = evaluate_run(folder, probes=wanted, floors=floors, data=data, most_graphs=most_graphs, **how)
    config = open_run(folder).config
    if as_json:
        about = {"protocol": protocol, "pair": pair or config.pair, "seed": config.seed, "split": config.split}
        typer.echo(json.dumps({**about, "choose_c": choose_c, "rows": [row._asdict() for row in rows]}, indent=1))
        return
    print_rows(
        rows,
        f"{config.dataset}, split {config.split}, seed {config.seed}: protocol {protocol}, "
        f"pair features {pair or config.pair}, C {f'chosen by {choose_c}' if choose_c else '= 1'}; "
        "scores on test graphs, %",
    )


@app.command()
def embed(
    folder: RunArgument,
    dataset: Annotated[str, typer.Argument(help="Name, folder or zip of a set, or `planted`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    kind: Annotated[
        str, typer.Option("--format", help="npz; npy: a folder of files to be memory-mapped; parquet, with pyarrow.")
    ] = "npz",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Node embeddings of a set, with graph ids and the mean of each graph.

    Example: same embed runs/first ENZYMES --out enzymes.npz
    """
    settle()
    from same.embedding import embed_set

    nodes = embed_set(folder, dataset, out, data=data, kind=kind)
    if as_json:
        typer.echo(json.dumps({"file": str(out), "format": kind, "nodes": nodes}, indent=1))
    else:
        typer.echo(f"{out}: embeddings of {nodes:,} nodes")


@contextmanager
def _stop_signals() -> "Iterator[Callable[[], bool]]":
    """A function that says whether SIGINT or SIGTERM has come; until it is first asked, and the second time, they
    interrupt at once."""
    came: list[int] = []
    asked = False

    def note(number: int, frame: object) -> None:
        if came or not asked:
            raise KeyboardInterrupt
        came.append(number)

    def stop() -> bool:
        nonlocal asked
        asked = True
        return bool(came)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@data_app.command("list")
def data_list(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Sets that are known, and where those that are on this machine lie.

    Example: same data list --data ~/sets
    """
    from same.graphs.io.download import ALIASES, KNOWN, NAMES, find
    from same.show import console

    rows: list[dict[str, Any]] = [{"name": "planted", "paper": False, "place": "built in"}]
    short = {full: alias for alias, full in ALIASES.items()}
    for name in sorted(NAMES, key=lambda name: (name not in KNOWN, name.lower())):
        place = find(name, data)
        alias = short.get(name)
        rows.append(
            {"name": name, "alias": alias, "paper": name in KNOWN, "place": None if place is None else str(place)}
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        if row["paper"] or row["place"]:
            called = f" (in the paper: {row['alias']})" if row.get("alias") else ""
            where = row["place"] or "to be downloaded"
            typer.echo(f"{row['name'] + called:<40} {where}")
    others = [row["name"] for row in rows if not row["paper"] and not row["place"]]
    console().print("Also in the TU collection, among others:", ", ".join(others), style="dim", highlight=False)


@data_app.command("check")
def data_check(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME|PATH]...", help="By default the paper's sets that are here.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Counts, degrees, class balance, oddities and possible tasks of sets of graphs.

    Example: same data check ENZYMES ./my-graphs.zip
    """
    from same.graphs import load, summarise
    from same.graphs.io.download import KNOWN, find
    from same.show import print_checks
    from same.tasks import offered

    sources = sources or [name for name in KNOWN if find(name, data) is not None]
    if not sources:
        raise InputError("none of the paper's sets is here: name a set or a path, or `same data fetch ENZYMES`")
    logging.getLogger("same").setLevel(logging.WARNING)  # Notes are part of the summary.
    stores = [load(source, data) for source in sources]
    checks = [{**summarise(store), "tasks": offered(store)} for store in stores]
    if as_json:
        typer.echo(json.dumps(checks, indent=1))
    else:
        print_checks(checks)
    wrong = [entry["name"] for entry in checks if entry["as_known"] is False]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not the contents that the set of that name is known to have")


@data_app.command("fetch")
def data_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the TU collection.")],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Get sets of the TU collection, unless they are here already.

    Example: same data fetch ENZYMES DHFR
    """
    from same.graphs.io.download import fetch

    places = {}
    for name in names:
        places[name] = "built in" if name == "planted" else str(fetch(name, data))
        if not as_json:
            typer.echo(f"{name}: {places[name]}")
    if as_json:
        typer.echo(json.dumps([{"name": name, "place": place} for name, place in places.items()], indent=1))


@data_app.command("make")
def data_make(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; it is a DATASET of other verbs.")],
    graphs: Annotated[int, typer.Option(min=10, help="How many.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another set.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """A set like `planted` of any size, on disk, to try how things grow: a million graphs are 3 GB and a minute.

    Example: same data make --graphs 100000 --out large
    """
    from same.graphs import open_store, write_store
    from same.graphs.planted import planted_parts

    write_store(out, planted_parts(graphs, seed))
    made = open_store(out)
    if as_json:
        sizes = {"graphs": made.num_graphs, "nodes": made.num_nodes, "edges": made.num_edges}
        typer.echo(json.dumps({"place": str(out), **sizes}, indent=1))
    else:
        typer.echo(f"{out}: {made}")


# In the order in which they are needed, which is that of the help.
_ORDER = ("demo", "train", "evaluate", "embed", "study", "tune", "report", "config", "bench")
app.registered_commands.sort(
    key=lambda command: _ORDER.index(command.name or getattr(command.callback, "__name__", ""))
)
