"""The report of a study, finished or not: Markdown, CSV, LaTeX, figures, and one self-contained page."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from same.files import atomic
from same.study.report.claims import CHANCE, COLUMNS, check_claims
from same.study.report.figures import make_figures
from same.study.report.tables import Cell, Table, caption, make_tables
from same.study.results import Run, Study

PAGE = "report.html"
MARKS = (
    "The published number follows ours, with ≈ within the published standard deviation (one point if there is none), "
    "▲ better, ▼ worse. * differs from single-task classical training (in Table 4: from classical training on the same "
    "two tasks) beyond noise, each cell by itself (corrected resampled paired t-test, p < 0.05)."
)


def write_report(study: Study) -> Path:
    """Write the report of a study into its folder and return the path of the page."""
    tables, claims = make_tables(study), check_claims(study)
    figures = make_figures(study, tables)
    folder = study.folder
    for table in tables:
        _write(folder / "tables" / f"{table.key}.csv", to_csv(table))
        _write(folder / "tables" / f"{table.key}.tex", to_latex(table))
    for name, svg in figures.items():
        # The name of a dataset may be a path.
        _write(folder / "figures" / (re.sub(r"[^\w.-]+", "_", name) + ".svg"), svg)
    parts = ["# Study", caption(study), MARKS.replace("*", r"\*")]
    parts += ["## Claims", CHANCE, _grid(COLUMNS, [claim[: len(COLUMNS)] for claim in claims])] if claims else []
    _write(folder / "report.md", "\n\n".join([*parts, *map(to_markdown, tables)]))
    environment = Environment(loader=PackageLoader("same.study", "."), autoescape=True, trim_blocks=True)
    page = environment.get_template("report/report.html.j2").render(
        title=f"SAME: {', '.join(study.plan.datasets)}",
        about=caption(study),
        marks=MARKS,
        done=len(study.runs),
        planned=len(study.configs),
        claims=claims,
        columns=COLUMNS,
        chance=CHANCE.replace("*", ""),
        tables=tables,
        figures={name: Markup(svg) for name, svg in figures.items()},
        runs=[_run_row(study, run) for run in study.runs.values()],
        failed=_errors(study),
    )
    _write(folder / PAGE, page)
    return folder / PAGE


def _write(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _errors(study: Study) -> dict[str, str]:
    return {key: error.splitlines()[0] for key, error in study.failed.items()}


def _run_row(study: Study, run: Run) -> dict[str, Any]:
    settings = {name: value for name, value in run.settings.items() if value != study.plan.settings.get(name)}
    changes = {"tasks": "+".join(run.tasks), "settings": json.dumps(settings), "examples": json.dumps(run.examples)}
    return run._asdict() | changes


def summary(study: Study) -> dict[str, Any]:
    """A study as plain values: its plan, its progress, its tables and the checked claims."""
    return {
        "plan": study.plan.to_json(),
        "planned": len(study.configs),
        "done": len(study.runs),
        "failed": _errors(study),
        "claims": [claim._asdict() for claim in check_claims(study)],
        "tables": [
            {"key": t.key, "title": t.title, "caption": t.caption, "rows": list(_rows(t))} for t in make_tables(study)
        ],
    }


def _rows(table: Table) -> Iterator[dict[str, Any]]:
    """The cells of a table as plain values."""
    for label, model, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            if not cell.blank:
                place = {table.first: label, "model": model, "column": column}
                ours = {"mean": cell.mean, "std": cell.std} if cell.values else {"mean": None, "std": None}
                paper, test = cell.published, cell.against
                reference = {"published": paper and paper.value, "published_std": paper and paper.std}
                tests = {"p": test and test.t_test, "wilcoxon": test and test.wilcoxon}
                yield {**place, **ours, "splits": cell.values, **reference, "mark": cell.mark, **tests}


def to_markdown(table: Table) -> str:
    """A table as Markdown, with the published numbers."""
    rows = [[label, model, *map(_with_reference, cells)] for label, model, cells in table.rows]
    return f"## {table.title}\n\n{table.caption}\n\n{_grid([table.first, 'model', *table.columns], rows)}\n"


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in lines)


def _with_reference(cell: Cell) -> str:
    return f"{cell.text} ({cell.reference})" if cell.reference else cell.text


def to_csv(table: Table) -> str:
    """A table as CSV, one line per cell."""
    out, rows = io.StringIO(), []
    for row in _rows(table):
        numbers = {name: f"{row[name]:.4f}" for name in ("mean", "std") if row["splits"]}
        tests = {name: f"{row[name]:.4g}" for name in ("p", "wilcoxon") if row[name] is not None}
        rows.append({**row, "mean": "not run", **numbers, **tests, "splits": len(row["splits"])})
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


_TEX = {special: f"\\{special}" for special in "&%$#_{}"} | {"\\": r"\textbackslash{}"}
_TEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
_TEX |= {"±": r"$\pm$", "→": r"$\to$", "≈": r"$\approx$", "▲": r"$\uparrow$", "▼": r"$\downarrow$", "Δ": r"$\Delta$"}


def to_latex(table: Table) -> str:
    """A table as LaTeX (booktabs)."""

    def tex(text: str) -> str:
        return "".join(_TEX.get(sign, sign) for sign in text)

    lines = [f"% {table.title}", f"% {table.caption}", f"% {MARKS}"]
    lines += [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines += [" & ".join([table.first, "model", *map(tex, table.columns)]) + r" \\", r"\midrule"]
    before = None
    for label, model, cells in table.rows:
        if before not in (None, label):
            lines.append(r"\midrule")
        lines.append(" & ".join(map(tex, [label, model, *map(_with_reference, cells)])) + r" \\")
        before = label
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
