"""Figures of a study: the tables of the overview, of transfer and of Δm as bars."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from same.study.plan import TASKS
from same.study.report.tables import LABELS, Table
from same.study.results import Study

_FIGURES = {
    "overview": ("overview", "One encoder for three tasks"),
    "figure1": ("figure1", "Figure 1: transfer of single-task embeddings"),
    "table4": ("figure2", "Figure 2: tasks that two-task models were not trained on"),
    "table3": ("delta", "Δm"),
}
"""Name and title of the figure of a table."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # Text stays text.
    "text.parse_math": False,  # Names of datasets may contain dollar signs.
    "font.size": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), "#888888"),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), "black"),
}
_NOTE = "note: "  # Start of the id of an artist that has a tooltip.


def make_figures(study: Study, tables: list[Table]) -> dict[str, str]:
    """All figures of a study as SVG, by name, one per dataset."""
    figures, datasets = {}, study.plan.datasets
    for table in [table for table in tables if table.key in _FIGURES]:
        name, title = _FIGURES[table.key]
        width = len(table.columns) // len(datasets)
        for number, dataset in enumerate(datasets):
            groups: dict[str, list[tuple[str, float, float]]] = {}
            for label, model, cells in table.rows:
                for task, cell in zip(TASKS, cells[number * width : (number + 1) * width], strict=False):
                    group, bar = label, model
                    if table.key == "overview":
                        group, bar = task.upper(), ", ".join(filter(None, [model, label]))
                    elif table.key == "figure1":  # Grouped by the measured task.
                        source, arrow, target = label.partition("→")
                        group, bar = arrow + target, source + arrow if source else model
                    if cell.values and not model.startswith((LABELS["majority"], LABELS["raw"])):
                        groups.setdefault(group, []).append((bar, cell.mean, cell.std))
            if groups:
                figures[f"{name}-{dataset}"] = bars(f"{title}, {dataset}", list(groups.items()))
    return figures


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, float]]]]) -> str:
    """SVG of groups (label, bars) of bars (label in the legend, mean, standard deviation); tooltips show values."""
    legend = list(dict.fromkeys(label for _, members in groups for label, _, _ in members))
    width = max(5, sum(0.25 * len(members) + 0.3 for _, members in groups), 0.6 + 0.09 * len(title))
    start, centres, text = 0, [], io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": title}):  # Equal charts are equal strings.
        figure = Figure((width, 3), layout="constrained", facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        axes.set_title(title)
        for group, members in groups:
            for place, (label, mean, std) in enumerate(members, start):
                (bar,) = axes.bar(place, mean, yerr=std, color=f"C{legend.index(label)}", ecolor="#888888")
                bar.set_gid(f"{_NOTE}{group}, {label}: {mean:.1f} ± {std:.1f} %")
            centres.append(start + (len(members) - 1) / 2)
            start += len(members) + 1
        axes.set_xticks(centres, [group for group, _ in groups])
        handles = [Patch(color=f"C{number}", label=label) for number, label in enumerate(legend)]
        columns = int(width / (0.55 + 0.08 * max(map(len, legend), default=0)))
        figure.legend(handles=handles, loc="outside lower left", ncols=max(columns, 1), frameon=False)
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = text.getvalue()
    return re.sub(rf"<g id=(['\"]){_NOTE}(.*?)\1>", r"<g><title>\2</title>", svg[svg.index("<svg") :])
