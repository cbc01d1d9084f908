"""What the command line shows."""

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from same.probes import Score
from same.study import Plan, Study
from same.study.plan import PLAN
from same.study.run import describe, expected_seconds, todo
from same.study.search import Tuning
from same.study.tuning_report import heading, savings


def console() -> Console:
    """Standard output; where it is no terminal, lines are as long as they are."""
    return Console(soft_wrap=not sys.stdout.isatty())


def print_checks(checks: list[dict[str, Any]]) -> None:
    """One column a set."""

    def spread(value: dict[str, float]) -> str:
        return f"{value['mean']:g} ({value['min']}–{value['max']})"

    def balance(value: dict[str, int] | None) -> str:
        if value is None:
            return "none"
        parts = [f"{name}: {count}" for name, count in value.items()]
        return ", ".join(parts[:12]) + (f", … ({len(parts)} classes)" if len(parts) > 12 else "")

    rows = {
        "graphs": lambda c: f"{c['graphs']:,}",
        "nodes": lambda c: f"{c['nodes']:,}",
        "edges (undirected)": lambda c: f"{c['edges']:,}",
        "attributes": lambda c: str(c["attributes"]),
        "nodes per graph": lambda c: spread(c["nodes_per_graph"]),
        "degree": lambda c: spread(c["degree"]),
        "isolated nodes": lambda c: f"{c['isolated_nodes']:,}",
        "graph classes": lambda c: balance(c["graph_classes"]),
        "node classes": lambda c: balance(c["node_classes"]),
        "constant columns": lambda c: ", ".join(map(str, c["constant_columns"])) or "none",
        "equal columns": lambda c: ", ".join(" = ".join(map(str, g)) for g in c["duplicate_columns"]) or "none",
        "tasks": lambda c: ", ".join(c["tasks"]) or "none",
        "as published": lambda c: {None: "unknown set", True: "yes", False: "NO"}[c["as_known"]],
        "notes": lambda c: "; ".join(c["notes"]) or "none",
    }
    table = Table("", *(escape(entry["name"]) for entry in checks))
    for label, show in rows.items():
        table.add_row(label, *(Text(show(entry)) for entry in checks))
    console().print(table, highlight=False, markup=False)


_SHORT = {"accuracy": "acc", "macro_f1": "F1", "roc_auc": "AUC", "average_precision": "AP", "r2": "R²", "mae": "MAE"}


def _number(name: str, value: float) -> str:
    """Shares in percent; R² and errors as they are."""
    return f"{value:.3f}" if name in ("r2", "mae") else f"{100 * value:.1f}"


def print_rows(rows: list[Score], title: str) -> None:
    """One line per model and probe, one column per task and metric."""
    columns = {(row.task, row.metric): None for row in rows}
    heads = (f"{task} {_SHORT.get(name, name)}" for task, name in columns)
    table = Table("model", "probe", *heads, title=Text(title), title_justify="left")
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rows:
        cells.setdefault((row.model, row.probe), {})[row.task, row.metric] = row.score
    for names, found in cells.items():
        table.add_row(*names, *(_number(c[1], found[c]) if c in found else "" for c in columns))
    console().print(table, highlight=False, markup=False)


def print_tuning(tuning: Tuning, shown: int = 4) -> None:
    """The default trial and the best ones, a column each, and what giving up saved."""
    trials = [trial for trial in tuning.done if trial != tuning.default][:shown]
    trials = [*([tuning.default] if tuning.default else []), *trials]
    heads = (f"{trial.number}{' (default)' if trial == tuning.default else ''}" for trial in trials)
    first = Column("trial", no_wrap=True)
    table = Table(first, *heads, title=Text(heading(tuning)), title_justify="left")
    scores = (t.state if t.score is None else _number("score", t.score) for t in trials)
    table.add_row("score", *scores, end_section=True)
    for name in tuning.question.space.names:
        table.add_row(name, *(str(trial.values[name]) for trial in trials))
    console().print(table, highlight=False, markup=False)
    print(savings(tuning))


def _about(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 120 else f"about {seconds / 60:.0f} min"


def plan_rows(plan: Plan, folder: Path) -> list[dict[str, Any]]:
    """The runs, and which are done, as plain values."""
    waiting = {config.key for config in todo(plan, folder)}
    return [{"run": c.key, "done": c.key not in waiting, "what": describe(c)} for c in plan.runs()]


def print_plan(plan: Plan, folder: Path, workers: int) -> None:
    """The runs, how many are done, and how long the others will take."""
    for row in plan_rows(plan, folder):
        print(f"{row['run']}  {'done ' if row['done'] else 'to do'}  {row['what']}")
    pending = todo(plan, folder)
    seconds = expected_seconds(pending, Study.open(folder) if (folder / PLAN).is_file() else None)
    total = len(plan.runs())
    time_left = "unknown, no run is done yet" if seconds is None else _about(seconds / workers)
    print(f"{total} runs, {total - len(pending)} done, {len(pending)} to do; with {workers} workers: {time_left}")
