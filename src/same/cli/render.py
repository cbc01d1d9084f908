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
    labels = {"edges": "edges (undirected)", "duplicate_columns": "equal columns", "as_known": "as published"}

    def show(name: str, value: Any) -> str:
        if name == "as_known":
            return {None: "unknown dataset", True: "yes", False: "NO"}[value]
        if isinstance(value, dict) and set(value) == {"min", "mean", "max"}:
            return f"{value['mean']:g} ({value['min']}–{value['max']})"
        if isinstance(value, dict):
            counts, more = [f"{label}: {count}" for label, count in value.items()], f", … ({len(value)} classes)"
            return ", ".join(counts[:12]) + (more if len(counts) > 12 else "")
        if isinstance(value, list):
            items = (" = ".join(map(str, item)) if isinstance(item, list) else str(item) for item in value)
            return ("; " if name == "notes" else ", ").join(items) or "none"
        return "none" if value is None else f"{value:,}"

    table = Table("", *(escape(each["name"]) for each in summaries))
    for name in list(summaries[0])[1:]:
        label = labels.get(name, name.replace("_", " "))
        table.add_row(label, *(Text(show(name, each[name])) for each in summaries))
    return table


def datasets_text(rows: list[dict[str, Any]]) -> str:
    """Datasets that are built in, part of the paper or available locally, then the names of others."""
    lines = []
    for row in [row for row in rows if row["paper"] or row["place"]]:
        alias = f" (in the paper: {row['alias']})" if row["alias"] else ""
        lines.append(f"{row['name'] + alias:<40} {row['place'] or 'not downloaded'}")
    others = ", ".join(row["name"] for row in rows if not row["paper"] and not row["place"])
    return "\n".join([*lines, f"Also in the TU collection, among others: {others}"])


_SHORT = {"accuracy": "acc", "macro_f1": "F1", "roc_auc": "AUC", "average_precision": "AP", "r2": "R²", "mae": "MAE"}


def scores_table(rows: Iterable[Score], title: str) -> Table:
    """Scores of a run: one line per model and probe, one column per task and metric."""
    rows = list(rows)
    columns = dict.fromkeys((row.task, row.protocol, row.metric) for row in rows)
    several = len({row.protocol for row in rows}) > 1
    names = (f"{task} {_SHORT.get(m, m)}{f' ({protocol})' if several else ''}" for task, protocol, m in columns)
    table = Table("model", "probe", *names, title=Text(title), title_justify="left")
    lines: dict[tuple[str, str], dict[tuple[str, str, str], str]] = {}
    for row in rows:
        # Fractions as percentages; R² and errors unchanged.
        text = f"{row.score:.3f}" if row.metric in ("r2", "mae") else f"{100 * row.score:.1f}"
        lines.setdefault((row.model, row.probe), {})[row.task, row.protocol, row.metric] = text
    for labels, cells in lines.items():
        table.add_row(*labels, *(cells.get(column, "") for column in columns))
    return table


def training_text(folder: Path, result: dict[str, Any], was_finished: bool) -> str:
    """Outcome of one training run, with validation losses and scores before and after."""
    best, note = result["best"], " (already finished)" if was_finished else ""
    cap = f"at the cap of {result.get('cap')} epochs"
    ends = {"patience": "by early stopping", "cap": cap, "seconds": "at max_seconds"}
    end = f"; ended {ends[result['ended']]}" if result["steps"] and result.get("ended") else ""
    lines = [
        f"{folder}: done{note}, best validation at epoch {best['epoch']} (step {best['step']} of {result['steps']}), "
        f"{result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU time{end}"
    ]
    for task, row in best["tasks"].items():
        changes = (f"{name} {result['untrained'][task][name]:.4f} → {row[name]:.4f}" for name in ("loss", "score"))
        lines.append(f"{task}: validation {', '.join(changes)}")
    return "\n".join(lines)


def tuning_table(tuning: Tuning) -> Table:
    """The default trial and the four best trials, one column each."""
    default = tuning.default
    trials = [*([default] if default else []), *[trial for trial in tuning.done if trial != default][:4]]
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
