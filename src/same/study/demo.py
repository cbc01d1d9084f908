"""The main job on the embedded set: a small study, and the table that it shows."""

from rich.table import Table

from same.study.plan import TASKS, Plan
from same.study.results import Study
from same.study.tables import LABELS, cell, probe_of

DEMO = Plan(
    questions=("Q4",),
    datasets=("planted",),
    methods=("classical", "isame", "esame"),
    tasks=(TASKS,),
    splits=(0, 1),
    settings=(("max_epochs", 60), ("pair", "symmetric"), ("patience", 60), ("width", 128)),
)
"""Untrained, classical, iSAME and eSAME on three tasks and two splits."""


def demo_table(study: Study) -> Table:
    """Scores of linear probes on test graphs, and of the classical model's own heads."""
    table = Table("model", "measured by", "GC accuracy", "NC accuracy", "LP ROC AUC", title_justify="left")
    table.title = "planted, three tasks, 2 splits: mean ± std on test graphs, % (protocol paper, symmetric pairs)"
    (dataset,) = study.plan.datasets
    for floor, probe in (("majority", "none"), ("raw", "linear"), ("untrained", "linear")):
        found = [study.scores(dataset, "untrained", TASKS, task, probe, model=floor) for task in TASKS]
        table.add_row(LABELS[floor], probe.replace("linear", "linear probe"), *(cell(values).text for values in found))
    for method in ("classical", "isame", "esame"):
        for probe in dict.fromkeys((probe_of(method), "linear")):
            found = [study.scores(dataset, method, TASKS, task, probe) for task in TASKS]
            name = {"own": "own heads", "linear": "linear probe"}[probe]
            table.add_row(LABELS[method], name, *(cell(values).text for values in found))
    return table
