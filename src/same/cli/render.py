"""Views of results: functions that return a text, or a table of rich."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from same.probes import Score
from same.study import Plan, Study
from same.study.plan import PLAN
from same.study.run import describe, expected_seconds, todo
from same.tuning.report import heading
from same.tuning.search import Tuning


def summaries_table(summaries: list[dict[str, Any]]) -> Table:
    """Summaries of datasets, one column per dataset."""

    def spread(value: dict[str, float]) -> str:
        return f"{value['mean']:g} ({value['min']}–{value['max']})"

    def balance(value: dict[str, int] | None) -> str:
        if value is None:
            return "none"
        parts = [f"{name}: {count}" for name, count in value.items()]
        return ", ".join(parts[:12]) + (f", … ({len(parts)} classes)" if len(parts) > 12 else "")

    rows = {
        "graphs": lambda s: f"{s['graphs']:,}",
        "nodes": lambda s: f"{s['nodes']:,}",
        "edges (undirected)": lambda s: f"{s['edges']:,}",
        "attributes": lambda s: str(s["attributes"]),
        "nodes per graph": lambda s: spread(s["nodes_per_graph"]),
        "degree": lambda s: spread(s["degree"]),
        "isolated nodes": lambda s: f"{s['isolated_nodes']:,}",
        "graph classes": lambda s: balance(s["graph_classes"]),
        "node classes": lambda s: balance(s["node_classes"]),
        "constant columns": lambda s: ", ".join(map(str, s["constant_columns"])) or "none",
        "equal columns": lambda s: ", ".join(" = ".join(map(str, g)) for g in s["duplicate_columns"]) or "none",
        "tasks": lambda s: ", ".join(s["tasks"]) or "none",
        "as published": lambda s: {None: "unknown dataset", True: "yes", False: "NO"}[s["as_known"]],
        "notes": lambda s: "; ".join(s["notes"]) or "none",
    }
    table = Table("", *(escape(each["name"]) for each in summaries))
    for label, show in rows.items():
        table.add_row(label, *(Text(show(each)) for each in summaries))
    return table


def datasets_text(rows: list[dict[str, Any]]) -> str:
    """Datasets that are built in, part of the paper or available locally, then the names of others."""
    lines, others = [], []
    for row in rows:
        alias = f" (in the paper: {row['alias']})" if row["alias"] else ""
        if row["paper"] or row["place"]:
            lines.append(f"{row['name'] + alias:<40} {row['place'] or 'not downloaded'}")
        else:
            others.append(row["name"])
    return "\n".join([*lines, f"Also in the TU collection, among others: {', '.join(others)}"])


_SHORT = {"accuracy": "acc", "macro_f1": "F1", "roc_auc": "AUC", "average_precision": "AP", "r2": "R²", "mae": "MAE"}


def _number(metric: str, value: float) -> str:
    """Fractions as percentages; R² and errors unchanged."""
    return f"{value:.3f}" if metric in ("r2", "mae") else f"{100 * value:.1f}"


def scores_table(rows: Iterable[Score], title: str) -> Table:
    """Scores of a run: one line per model and probe, one column per task and metric."""
    rows = list(rows)
    columns = {(row.task, row.protocol, row.metric): None for row in rows}
    several = len({row.protocol for row in rows}) > 1
    names = (f"{task} {_SHORT.get(m, m)}{f' ({protocol})' if several else ''}" for task, protocol, m in columns)
    table = Table("model", "probe", *names, title=Text(title), title_justify="left")
    lines: dict[tuple[str, str], dict[tuple[str, str, str], float]] = {}
    for row in rows:
        lines.setdefault((row.model, row.probe), {})[row.task, row.protocol, row.metric] = row.score
    for labels, cells in lines.items():
        table.add_row(*labels, *(_number(c[2], cells[c]) if c in cells else "" for c in columns))
    return table


def training_text(folder: Path, result: dict[str, Any], was_finished: bool) -> str:
    """Outcome of one training run, with validation losses and scores before and after."""
    best, note = result["best"], " (already finished)" if was_finished else ""
    lines = [
        f"{folder}: done{note}, best validation at epoch {best['epoch']} (step {best['step']} of {result['steps']}), "
        f"{result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU time"
    ]
    for task, row in best["tasks"].items():
        changes = (f"{name} {result['untrained'][task][name]:.4f} → {row[name]:.4f}" for name in ("loss", "score"))
        lines.append(f"{task}: validation {', '.join(changes)}")
    return "\n".join(lines)


def tuning_table(tuning: Tuning, most: int = 4) -> Table:
    """The default trial and the best trials, one column each."""
    default = tuning.default
    trials = [*([default] if default else []), *[trial for trial in tuning.done if trial != default][:most]]
    names = (f"{trial.number}{' (default)' if trial == default else ''}" for trial in trials)
    table = Table(Column("trial", no_wrap=True), *names, title=Text(heading(tuning)), title_justify="left")
    scores = (trial.state if trial.score is None else f"{100 * trial.score:.1f}" for trial in trials)
    table.add_row("score", *scores, end_section=True)
    for name in tuning.search.space.names:
        table.add_row(name, *(str(trial.values[name]) for trial in trials))
    return table


def plan_rows(plan: Plan, folder: Path) -> list[dict[str, Any]]:
    """The planned runs as plain values."""
    pending = {config.key for config in todo(plan, folder)}
    return [{"run": c.key, "done": c.key not in pending, "what": describe(c)} for c in plan.runs()]


def plan_text(plan: Plan, folder: Path, workers: int) -> str:
    """The planned runs, which of them are done, and the expected time of the others."""
    rows, pending = plan_rows(plan, folder), todo(plan, folder)
    lines = [f"{row['run']}  {'done ' if row['done'] else 'to do'}  {row['what']}" for row in rows]
    seconds = expected_seconds(pending, Study.open(folder) if (folder / PLAN).is_file() else None)
    expected = "unknown, no run is done yet"
    if seconds is not None:
        seconds /= workers
        expected = f"about {seconds:.0f} s" if seconds < 120 else f"about {seconds / 60:.0f} min"
    counts = f"{len(rows)} runs, {len(rows) - len(pending)} done, {len(pending)} to do"
    return "\n".join([*lines, f"{counts}; expected time with {workers} workers: {expected}"])
