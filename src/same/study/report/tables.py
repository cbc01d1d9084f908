"""The paper's tables: `TABLES` says what they show, and `make_tables` fills them from a study's scores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from same.metrics import Comparison, compare, delta_m, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS, Variant, default_settings
from same.study.published import NAMES, Published, published
from same.study.results import Source, Study

MEASURED = {"none": "", "linear": "linear probe", "network": "network probe", "own": "own heads"}
LABELS = {**NAMES, "traditional": "Trad", "untrained": "untrained", "raw": "raw features", "majority": "majority"}
FLOORS = {"majority": "none", "raw": "linear", "untrained": "linear"}
"""Models that need no training, with their probes; part of every table of scores."""
DELTA = "delta_m"  # In the place of a task: Δm over the tasks of a model.
UNSEEN = [(tasks, task) for tasks in PAIRS for task in TASKS if task not in tasks]
"""Pairs of tasks, each with the task that is not among them."""
_MAIN = ("classical", *SAMES)
_SHOWN = ("seed", "scaling", "degree", "walk", "encoder", "layers", "width", "pair", "max_epochs", "patience")


def label(source: Source) -> str:
    """Name of a model in tables."""
    extras = {"fixed": "", "all": "", "head": ", ANIL-like"}
    weighting = extras.get(source.weighting, f", {source.weighting}")
    return LABELS[source.model or source.method] + weighting + extras[source.adapts]


def scores(study: Study, dataset: str, source: Source, task: str) -> dict[int, float]:
    """Scores of a task by split, or Δm, in percent; Δm leaves out splits on which a single-task model scores 0."""
    if task != DELTA:
        return study.scores(dataset, source, task)
    ours = [study.scores(dataset, source, task) for task in source.tasks]
    bases = [study.scores(dataset, single_task(source, task), task) for task in source.tasks]
    shared = [k for k in set.intersection(*map(set, ours + bases)) if min(base[k] for base in bases) > 0]
    return {k: delta_m([o[k] for o in ours], [b[k] for b in bases]) for k in sorted(shared)}


def single_task(source: Source, task: str) -> Source:
    """The classical model that was trained for one task."""
    return Source("classical", (task,), protocol=source.protocol)


def same_tasks(source: Source, task: str) -> Source:
    """The classical model that was trained on the same tasks."""
    return source._replace(method="classical")


class Line(NamedTuple):
    """A row: source of its scores, measured task (empty where columns are tasks), label, and name of the model."""

    source: Source
    task: str
    label: str
    model: str


class Spec(NamedTuple):
    """What a table shows."""

    question: str  # of a study that asks for it; empty for every study
    title: str
    lines: list[Line]
    against: Callable[[Source, str], Source] | None = None  # what a cell is compared with, given its source and task
    first: str = "tasks"  # heading of the labels


def _block(
    sources: Iterable[Source], task: str = "", heading: str = "{}", untrained: str = "linear", protocol: str = "paper"
) -> list[Line]:
    """Rows of some sources, then of the floors; `{}` in the heading stands for the tasks of a source."""
    lines = [Line(source, task, heading.format("+".join(source.tasks).upper()), label(source)) for source in sources]
    for floor, probe in (FLOORS | {"untrained": untrained}).items():
        source = Source("untrained", TASKS, probe, protocol, floor)
        other = f", {MEASURED[probe]}" if probe not in ("none", untrained) else ""
        lines.append(Line(source, task, heading.format("") or task.upper() or "none", label(source) + other))
    return lines


def _by_task(sources: Sequence[Source]) -> list[Line]:
    return [line for task in TASKS for line in _block(sources, task, task.upper())]


_ONE = [_block([Source(method, (task,)) for method in _MAIN], task) for task in TASKS]
_KINDS = [("classical", SINGLES), ("finetuned", PAIRS), *((method, PAIRS + ALL) for method in SAMES)]
_SEVERAL = _block(Source(method, tasks) for method, task_sets in _KINDS for tasks in task_sets)
_DELTAS = [
    Line(source, DELTA, "+".join(tasks).upper(), label(source))
    for tasks in PAIRS + ALL
    for source in (Source(method, tasks) for method in ("classical", "finetuned", *SAMES, "untrained"))
]
_UNSEEN = [
    _block([Source(m, tasks, "network") for m in _MAIN], task, f"{','.join(tasks)}→{task}".upper(), "network")
    for tasks, task in UNSEEN
]
_TRANSFER = [
    _block([Source("classical", tasks, "network") for tasks in SINGLES], task, f"{{}}→{task.upper()}", "network")
    for task in TASKS
]
_ALGORITHM3 = [Source("traditional"), Source("traditional", adapts="head"), *map(Source, SAMES)]
_WEIGHTED = [Source(m, weighting=w) for m in _MAIN for w in ("fixed", "uncertainty", "gradnorm")]
_RELEASED = [Source(m, tasks, "linear", "released") for tasks in (("lp",), TASKS) for m in _MAIN]
_OVERVIEW = _block([Source("classical", probe="own"), *(Source(method, probe="linear") for method in _MAIN)])
_OVERVIEW = [line._replace(label=MEASURED[line.source.probe]) for line in (*_OVERVIEW[-3:], *_OVERVIEW[:-3])]
TABLES = {
    "overview": Spec("overview", "Overview: one encoder for three tasks", _OVERVIEW, single_task, "measured by"),
    "table1": Spec("Q1", "Table 1 (Q1): one task; SAME by a linear classifier", [*chain(*_ONE)], single_task),
    "table2": Spec("Q2", "Table 2 (Q2): several tasks; SAME by a linear classifier", _SEVERAL, single_task),
    "table3": Spec("Q4", "Table 3 (Q4): Δm, the mean relative gain over single-task classical models", _DELTAS),
    "table4": Spec("Q3", "Table 4 (Q3): a network on embeddings, for a new task", [*chain(*_UNSEEN)], same_tasks),
    "figure1": Spec("fig1", "Figure 1: a network on embeddings of single-task classical models", [*chain(*_TRANSFER)]),
    "appendix": Spec("appendix", "Appendix A: traditional meta-learning", _by_task(_ALGORITHM3), single_task),
    "weighting": Spec("weighting", "Weightings of the task losses, three tasks", _by_task(_WEIGHTED), single_task),
    "floors": Spec("", "Floors: models that need no training", _by_task(())),
    "released": Spec(
        "",
        "Link prediction as the released code evaluates it, linear classifiers: it measures the order of nodes",
        _block(_RELEASED, "lp", protocol="released"),
    ),
}


@dataclass(frozen=True)
class Cell:
    """Scores by split, in percent, with the published number."""

    values: dict[int, float] = field(default_factory=dict)
    published: Published | None = None
    against: Comparison | None = None  # with classical training
    blank: bool = False  # whether the paper's table has nothing here
    planned: int = 0  # number of splits of the study

    @property
    def mean(self) -> float:
        """Mean over splits."""
        return float(np.mean(list(self.values.values())))

    @property
    def std(self) -> float:
        """Standard deviation over splits."""
        return float(np.std(list(self.values.values())))

    @property
    def mark(self) -> str:
        """`≈` within the published standard deviation (one point if there is none), `▲` better, `▼` worse."""
        if self.published is None or not self.values:
            return ""
        off = self.mean - self.published.value
        spread = 1.0 if self.published.std is None else self.published.std
        return "≈" if abs(off) <= spread + 1e-9 else "▲" if off > 0 else "▼"

    @property
    def text(self) -> str:
        """`mean ± std`, `*` beyond noise, and the number of splits if some are missing; or `not run`."""
        if self.blank or not self.values:
            return "" if self.blank else "not run"
        star = "*" if self.against is not None and self.against.beyond_noise() else ""
        spread = f" ± {self.std:.1f}{star}" if len(self.values) > 1 else ""
        return f"{self.mean:.1f}{spread}" + (f" [{len(self.values)}]" if len(self.values) < self.planned else "")

    @property
    def reference(self) -> str:
        """The published number, with the mark."""
        if self.published is None:
            return ""
        spread = "" if self.published.std is None else f" ± {self.published.std:.1f}"
        return f"{self.published.value:.1f}{spread} {self.mark}".strip()

    @property
    def note(self) -> str:
        """All details, for a tooltip."""
        parts = [f"split {split}: {value:.2f}" for split, value in sorted(self.values.items())]
        if (c := self.against) is not None:
            parts.append(f"against Cl: {c.mean:+.2f}, p = {c.t_test:.3f} (corrected t), {c.wilcoxon:.3f} (Wilcoxon)")
        return "; ".join([*parts, *([f"published: {self.reference}"] if self.published else [])])


@dataclass(frozen=True)
class Table:
    """A table; its rows are (label, model, one cell per column), and `first` is the heading of the labels."""

    key: str
    title: str
    columns: list[str]
    rows: list[tuple[str, str, list[Cell]]]
    caption: str
    first: str = "tasks"


def make_tables(study: Study) -> list[Table]:
    """All tables that the study's questions ask for; cells without runs say `not run`."""
    asked = (_fill(key, spec, study) for key, spec in TABLES.items() if spec.question in ("", *study.plan.questions))
    return [table for table in asked if table.rows]


def _fill(key: str, spec: Spec, study: Study) -> Table:
    """One column per dataset, or per dataset and task if lines name no task. Rows that are not planned are left out."""
    planned = set(study.plan.variants())
    lines = [line for line in spec.lines if _needed(line) <= planned]
    tasks = ("",) if all(line.task for line in lines) else TASKS
    columns = [(dataset, task) for dataset in study.plan.datasets for task in tasks]
    rows = [(line.label, line.model, [_cell(study, spec, line, *column) for column in columns]) for line in lines]
    heads = [f"{dataset} {task.upper()}".strip() for dataset, task in columns]
    return Table(key, spec.title, heads, rows, caption(study, spec.lines[0].source.protocol), spec.first)


def _needed(line: Line) -> set[Variant]:
    source, tasks = line.source, line.source.tasks if line.task == DELTA else ()
    return {source.variant, *(single_task(source, task).variant for task in tasks)}


def _cell(study: Study, spec: Spec, line: Line, dataset: str, column: str) -> Cell:
    source, task = line.source, line.task or column
    if column and task not in source.tasks:
        return Cell(blank=True)
    values, test = scores(study, dataset, source, task), None
    base = spec.against(source, task) if spec.against and not source.model else source
    if base.variant != source.variant:
        comparison = compare(*paired(values, study.scores(dataset, base, task)))
        test = comparison if comparison.splits > 1 else None
    questions = (spec.question,) if spec.question else ("Q1", "Q2")
    papers = (published(question, source.tasks, task, source.method, dataset) for question in questions)
    return Cell(values, next(filter(None, papers), None), test, planned=len(study.plan.splits))


def caption(study: Study, protocol: str = "paper") -> str:
    """What the numbers of a study mean."""
    settings, defaults, count = study.plan.settings, default_settings(), len(study.plan.splits)
    few = ", the number of splits in brackets where some are missing" if study.missing() else ""
    parts = [f"Protocol {protocol}"]
    for name, value in settings.items():
        tuned = {str(getattr(config, name)) for config in study.configs if name in _SHOWN}
        if name in _SHOWN or value != defaults.get(name):
            others = sorted(tuned - {str(value)})
            parts.append(f"{name} {value}" + (f" ({' or '.join(others)} where tuned)" if others else ""))
    parts += ["C of linear probes chosen by validation loss"] if study.plan.choose else []
    parts += ["tuned configurations where there are any"] if study.plan.tuned else []
    return (
        f"Mean ± standard deviation over {count} split{'s' if count > 1 else ''}{few}, in percent. {', '.join(parts)}. "
        f"GC and NC: accuracy; LP: {'ROC AUC' if protocol == 'paper' else 'accuracy, as in the released code'}."
    )
