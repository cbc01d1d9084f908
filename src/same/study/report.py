"""The report of a study, finished or not: Markdown, CSV, LaTeX, figures, and one page that holds everything."""

import csv
import io
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from same.errors import InputError
from same.files import atomic
from same.study.claims import CHANCE, COLUMNS, Claim, check_claims
from same.study.figures import bars, lines, scatter
from same.study.plan import TASKS
from same.study.published import NAMES
from same.study.results import RUNS, Study
from same.study.run import describe
from same.study.tables import LABELS, Cell, Table, caption, make_tables

log = logging.getLogger("same")

PAGE = "report.html"
MARKS = (
    "Behind or below ours: what was published, with ≈ within the published spread (a point where none is given), "
    "▲ better, ▼ worse. * differs from single-task classical training (in Table 4: from classical training on the same "
    "two tasks) beyond noise, each cell for itself (corrected resampled paired t-test, p < 0.05)."
)
_DRAWN = 600


def write_report(study: Study, *, data: Path | None = None) -> Path:
    """Writes the report of a study into its folder.

    Args:
        study: what to report.
        data: where local sets lie, for the picture of embeddings.

    Returns:
        The page.
    """
    tables, claims = make_tables(study), check_claims(study)
    figures = {**_bar_figures(study, tables), **_learning_curves(study), **_embedding_pictures(study, data)}
    folder = study.folder
    for table in tables:
        _write(folder / "tables" / f"{table.key}.csv", to_csv(table))
        _write(folder / "tables" / f"{table.key}.tex", to_latex(table))
    for name, svg in figures.items():
        # A set may be called by its path. On its own a figure has no page whose colour it could take.
        file = re.sub(r"[^\w.-]+", "_", name) + ".svg"
        _write(folder / "figures" / file, svg.replace("<svg ", '<svg color="#222" ', 1))
    lines_ = ["# Study", "", caption(study), "", MARKS.replace("*", r"\*"), ""]
    lines_ += ["## Claims", "", claims_to_markdown(claims), ""] if claims else []
    _write(folder / "report.md", "\n".join([*lines_, *(to_markdown(table) for table in tables)]))

    environment = Environment(loader=PackageLoader("same.study", "."), autoescape=True, trim_blocks=True)
    page = environment.get_template("report.html.j2").render(
        title=f"SAME: {', '.join(study.plan.datasets)}",
        about=caption(study),
        marks=MARKS,
        done=len(study.runs),
        planned=len(study.plan.runs()),
        claims=claims,
        columns=COLUMNS,
        chance=CHANCE.replace("*", ""),
        tables=tables,
        figures={name: Markup(svg) for name, svg in figures.items()},
        runs=[_run_row(study, run.config.key) for run in study.runs.values()],
        failed={key: error.splitlines()[0] for key, error in study.failed.items()},
    )
    _write(folder / PAGE, page)
    return folder / PAGE


def _write(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _run_row(study: Study, key: str) -> dict[str, Any]:
    run = study.runs[key]
    best = run.training["best"]
    return {
        "key": key,
        "what": describe(run.config),
        "epochs": run.training["epochs"],
        "best_epoch": best["epoch"],
        "seconds": run.training["seconds"],
        "cpu_seconds": run.training["cpu_seconds"],
        "versions": ", ".join(f"{name} {version}" for name, version in run.training.get("versions", {}).items()),
        "config": json.dumps(run.config.model_dump(mode="json", exclude_defaults=True)),
    }


def summary(study: Study) -> dict[str, Any]:
    """The study as plain values: its plan, how far it is, its tables and the paper's claims."""
    return {
        "plan": study.plan.to_json(),
        "planned": len(study.plan.runs()),
        "done": len(study.runs),
        "failed": {key: error.splitlines()[0] for key, error in study.failed.items()},
        "claims": [
            {**asdict(claim), "holds": None if claim.holds is None else bool(claim.holds)}
            for claim in check_claims(study)
        ],
        "tables": [
            {
                "key": table.key,
                "title": table.title,
                "caption": table.caption,
                "rows": [
                    {table.first: label, "model": model, "column": column, **_values(cell)}
                    for label, model, cells in table.rows
                    for column, cell in zip(table.columns, cells, strict=True)
                    if not cell.blank
                ],
            }
            for table in make_tables(study)
        ],
    }


def _values(cell: Cell) -> dict[str, Any]:
    return {
        "mean": cell.mean if cell.values else None,
        "std": cell.std if cell.values else None,
        "splits": cell.values,
        "published": None if cell.published is None else cell.published.value,
    }


def to_markdown(table: Table) -> str:
    """A table as Markdown, ours first and what was published behind it."""
    rows = [[label, model, *(_both(c) for c in cells)] for label, model, cells in table.rows]
    return f"## {table.title}\n\n{table.caption}\n\n{_grid([table.first, 'model', *table.columns], rows)}\n"


def claims_to_markdown(claims: list[Claim]) -> str:
    """The claims and their verdicts as Markdown."""
    return f"{CHANCE}\n\n{_grid(COLUMNS, [claim.row for claim in claims])}"


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines_ = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in lines_)


def _both(cell: Cell) -> str:
    return f"{cell.text} ({cell.beside})" if cell.beside else cell.text


def to_csv(table: Table) -> str:
    """A table as CSV, a line a cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = (
        table.first,
        "model",
        "column",
        "mean",
        "std",
        "splits",
        "published",
        "published_std",
        "mark",
        "p",
        "wilcoxon",
    )
    writer.writerow(head)
    for label, model, cells in table.rows:
        for column, c in zip(table.columns, cells, strict=True):
            if c.blank:
                continue
            ours = (f"{c.mean:.4f}", f"{c.std:.4f}", len(c.values)) if c.values else ("not run", "", 0)
            paper = c.published or ("", "")
            tests = ("", "") if c.against is None else (f"{c.against.t_test:.4g}", f"{c.against.wilcoxon:.4g}")
            writer.writerow((label, model, column, *ours, *paper, c.mark, *tests))
    return out.getvalue()


_TEX = {special: f"\\{special}" for special in "&%$#_{}"} | {"\\": r"\textbackslash{}"}
_TEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
_TEX |= {"±": r"$\pm$", "→": r"$\to$", "≈": r"$\approx$", "▲": r"$\uparrow$", "▼": r"$\downarrow$", "Δ": r"$\Delta$"}


def to_latex(table: Table) -> str:
    """A table as LaTeX (booktabs)."""

    def tex(text: str) -> str:
        return "".join(_TEX.get(sign, sign) for sign in text)

    lines_ = [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines_ += [" & ".join([table.first, "model", *map(tex, table.columns)]) + r" \\", r"\midrule"]
    before = None
    for label, model, cells in table.rows:
        if before not in (None, label):
            lines_.append(r"\midrule")
        lines_.append(" & ".join([tex(label), tex(model), *(tex(_both(c)) for c in cells)]) + r" \\")
        before = label
    return "\n".join(
        [f"% {table.title}", f"% {table.caption}", f"% {MARKS}", *lines_, r"\bottomrule", r"\end{tabular}", ""]
    )


def _bar_figures(study: Study, tables: list[Table]) -> dict[str, str]:
    """Figure 1, Figure 2 and Δm."""
    figures = {}
    by_key = {table.key: table for table in tables}
    for key, name, title in (
        ("figure1", "figure1", "Figure 1: transfer of single-task embeddings"),
        ("table4", "figure2", "Figure 2: tasks that two-task models were not trained on"),
        ("table3", "delta", "Δm"),
    ):
        for number, dataset in enumerate(study.plan.datasets if key in by_key else ()):
            groups: dict[str, list[tuple[str, float, float]]] = {}
            for label, model, cells in by_key[key].rows:
                c = cells[number]
                source, _, target = label.partition("→")
                group = {"figure1": f"→{target}", "delta": label.lower()}.get(name, label)
                bar = f"{source}→" if name == "figure1" and source else model
                if c.values and (bar == LABELS["untrained"] or model in NAMES.values()):
                    groups.setdefault(group, []).append((bar, c.mean, c.std))
            if groups:
                figures[f"{name}-{dataset}"] = bars(f"{title}, {dataset}", list(groups.items()))
    return figures


def _learning_curves(study: Study) -> dict[str, str]:
    """The validation losses of the three-task runs of the first split."""
    from same.training import read_history

    figures = {}
    for dataset in study.plan.datasets:
        series = []
        for run in study.runs.values():
            c = run.config
            plain = (c.weighting, c.adapts) == ("fixed", "all") and c.method != "untrained"
            if (c.dataset, c.tasks, c.split) == (dataset, TASKS, study.plan.splits[0]) and plain:
                records = read_history(study.folder / RUNS / c.key)
                if not records:
                    log.warning("no learning curve: %s has no history", study.folder / RUNS / c.key)
                    continue
                # Not what it stops on, which may be scores, or have weights.
                curve = [(r["epoch"], sum(row["loss"] for row in r["tasks"].values())) for r in records]
                series.append((LABELS.get(c.method, c.method), curve))
        if series:
            title = f"Validation loss, summed over three tasks, {dataset}, split {study.plan.splits[0]}"
            figures[f"curves-{dataset}"] = lines(title, series, "epoch")
    return figures


def _embedding_pictures(study: Study, data: Path | None) -> dict[str, str]:
    """Node and graph embeddings of a three-task SAME run in two dimensions: UMAP where it is installed, else PCA."""
    import torch

    from same.graphs import load, split
    from same.runs import open_run

    figures = {}
    for dataset in study.plan.datasets:
        of = [run.config for run in study.runs.values() if run.config.dataset == dataset and run.config.tasks == TASKS]
        config = next((c for method in ("esame", "isame") for c in of if c.method == method), None)
        if config is None:
            continue
        try:
            run = open_run(study.folder / RUNS / config.key)
            store = load(dataset, data).with_inputs(run.inputs)
        except InputError as error:
            log.warning("no picture of embeddings: %s", error)
            continue
        batch = store.cut(split(store, config.split, config.seed).test)
        with torch.no_grad():
            h = run.encoder(batch)
        for what, rows, y, names in (
            ("nodes", h.numpy(), batch.node_y, store.node_classes),
            ("graphs", batch.mean(h).numpy(), batch.graph_y, store.graph_classes),
        ):
            if y is None or names is None:
                continue
            chosen = np.random.default_rng(0).permutation(len(rows))[:_DRAWN]
            method, points = _two_dimensions(rows[chosen])
            title = f"{LABELS[config.method]} embeddings of test {what}, {dataset} ({method})"
            figures[f"embeddings-{what}-{dataset}"] = scatter(title, points, [str(names[c]) for c in y.numpy()[chosen]])
    return figures


def _two_dimensions(rows: np.ndarray) -> tuple[str, np.ndarray]:
    try:
        from umap import UMAP
    except ImportError:
        centred = rows - rows.mean(axis=0)
        u, s, _ = np.linalg.svd(centred, full_matrices=False)
        return "PCA", u[:, :2] * s[:2]
    return "UMAP", np.asarray(UMAP(random_state=0).fit_transform(rows))
