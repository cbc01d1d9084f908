"""Figures of a study: the tables of the overview, of transfer and of Δm as bars."""

from same.study.plan import TASKS
from same.study.report.svg import bars
from same.study.report.tables import LABELS, Table
from same.study.results import Study

_FIGURES = {
    "overview": ("overview", "One encoder for three tasks"),
    "figure1": ("figure1", "Figure 1: transfer of single-task embeddings"),
    "table4": ("figure2", "Figure 2: tasks that two-task models were not trained on"),
    "table3": ("delta", "Δm"),
}
"""Name and title of the figure of a table."""


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
