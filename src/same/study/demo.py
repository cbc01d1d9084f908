"""The demo: a small study of the embedded dataset, and the table that it shows."""

from rich.table import Table

from same.study.plan import Plan
from same.study.report import make_tables
from same.study.results import Study

DEMO = Plan(
    questions=("overview",),
    datasets=("planted",),
    splits=(0, 1),
    settings={"max_epochs": 60, "pair": "symmetric", "patience": 60, "width": 128},
)
"""Untrained, classical, iSAME and eSAME on three tasks and two splits."""


def demo_table(study: Study) -> Table:
    """Overview of the study, for a terminal."""
    overview = make_tables(study)[0]
    title = f"planted, three tasks, {len(study.plan.splits)} splits: test graphs, % (protocol paper, symmetric pairs)"
    table = Table("model", "measured by", "GC accuracy", "NC accuracy", "LP ROC AUC", title=title, title_justify="left")
    for measured, model, cells in overview.rows:
        table.add_row(model, measured, *(cell.text for cell in cells))
    return table
