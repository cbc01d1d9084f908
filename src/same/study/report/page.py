"""The report of a study, finished or not: Markdown, CSV, LaTeX, figures, and one self-contained page."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from same.files import atomic
from same.study.report.claims import CHANCE, COLUMNS, check_claims
from same.study.report.figures import make_figures
from same.study.report.tables import Table, caption, make_tables
from same.study.results import Study, csv_text

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
    parts = ["# Study", caption(study), MARKS.replace("*", r"\*")]
    parts += ["## Claims", CHANCE, _grid([COLUMNS, *(claim[:-1] for claim in claims)])] if claims else []
    values = {"study": study, "tables": tables, "figures": figures, "claims": claims, "columns": COLUMNS}
    values |= {"title": f"SAME: {', '.join(study.plan.datasets)}", "about": caption(study), "marks": MARKS}
    environment = Environment(loader=PackageLoader("same", "."), autoescape=True, trim_blocks=True)
    page = environment.get_template("study/report/report.html.j2").render(values, chance=CHANCE.replace("*", ""))
    files = {"report.md": "\n\n".join([*parts, *map(to_markdown, tables)]), PAGE: page}
    for table in tables:
        files |= {f"tables/{table.key}.csv": to_csv(table), f"tables/{table.key}.tex": to_latex(table)}
    for name, svg in figures.items():
        safe = re.sub(r"[^\w.-]+", "_", name)  # The name of a dataset may be a path.
        files[f"figures/{safe}.svg"] = svg
    for name, text in files.items():
        with atomic(study.folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return study.folder / PAGE


def summary(study: Study) -> dict[str, Any]:
    """A study as plain values: its plan, its progress, its tables and the checked claims."""
    return {
        "plan": study.plan.to_json(),
        "planned": len(study.configs),
        "done": len(study.runs),
        "failed": study.failed,
        "claims": [claim._asdict() for claim in check_claims(study)],
        "tables": [
            {"key": t.key, "title": t.title, "caption": t.caption, "rows": list(_rows(t))} for t in make_tables(study)
        ],
    }


def _rows(table: Table) -> Iterator[dict[str, Any]]:
    for label, model, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            if not cell.blank:
                place = {table.first: label, "model": model, "column": column}
                ours = {"mean": cell.mean, "std": cell.std} if cell.values else {"mean": None, "std": None}
                paper, test = cell.published, cell.against
                reference = {"published": paper and paper.value, "published_std": paper and paper.std}
                tests = {"p": test and test.t_test, "wilcoxon": test and test.wilcoxon}
                yield {**place, **ours, "splits": cell.values, **reference, "mark": cell.mark, **tests}


def _texts(table: Table) -> list[list[str]]:
    """The table as texts, with the published numbers in brackets; its heading comes first."""
    rows = [[table.first, "model", *table.columns]]
    for label, model, cells in table.rows:
        rows.append([label, model, *(f"{c.text} ({c.reference})" if c.reference else c.text for c in cells)])
    return rows


def to_markdown(table: Table) -> str:
    """A table as Markdown."""
    return f"## {table.title}\n\n{table.caption}\n\n{_grid(_texts(table))}\n"


def _grid(rows: Sequence[Sequence[Any]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in lines)


def to_csv(table: Table) -> str:
    """A table as CSV, one line per cell."""
    rows = []
    for row in _rows(table):
        numbers = {name: f"{row[name]:.4f}" for name in ("mean", "std") if row["splits"]}
        tests = {name: f"{row[name]:.4g}" for name in ("p", "wilcoxon") if row[name] is not None}
        rows.append({**row, "mean": "not run", **numbers, **tests, "splits": len(row["splits"])})
    return csv_text([rows[0], *(row.values() for row in rows)])


_TEX = {special: f"\\{special}" for special in "&%$#_{}"} | {"\\": r"\textbackslash{}"}
_TEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
_TEX |= {"±": r"$\pm$", "→": r"$\to$", "≈": r"$\approx$", "▲": r"$\uparrow$", "▼": r"$\downarrow$", "Δ": r"$\Delta$"}


def to_latex(table: Table) -> str:
    """A table as LaTeX (booktabs)."""
    lines = [f"% {table.title}", f"% {table.caption}", f"% {MARKS}"]
    lines += [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    before = table.first
    for row in _texts(table):
        lines += [r"\midrule"] if row[0] != before else []
        lines.append(" & ".join("".join(_TEX.get(sign, sign) for sign in text) for text in row) + r" \\")
        before = row[0]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
