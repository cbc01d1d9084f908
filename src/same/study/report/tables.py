"""The paper's tables, as pivots of a study's scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from same.metrics import Comparison, compare, delta_m, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS, Variant, default_settings
from same.study.published import NAMES, Published, published
from same.study.results import Study

MEASURED = {"none": "", "linear": "linear probe", "network": "network probe", "own": "own heads"}
LABELS = {**NAMES, "traditional": "Trad", "untrained": "untrained", "raw": "raw features", "majority": "majority"}
FLOORS = {"majority": "none", "raw": "linear", "untrained": "linear"}
"""Models that need no training, with their probes; part of every table of scores."""
END_TO_END = ("classical", "finetuned")
"""Methods that the paper measures by their own heads, others by a linear classifier on their embeddings."""


def probe_of(method: str, protocol: str = "paper") -> str:
    """Probe by which the paper measures a method.

    Under `released` it is always linear: the heads were trained on other pairs of nodes.
    """
    return "own" if method in END_TO_END and protocol == "paper" else "linear"


@dataclass(frozen=True)
class Cell:
    """Scores by split, in percent, with the published number.

    Attributes:
        against: paired comparison with classical training: on one task, in Table 4 on the same two tasks.
        blank: whether the paper's table has nothing here.
        planned: number of splits of the study.
    """

    values: dict[int, float] = field(default_factory=dict)
    published: Published | None = None
    against: Comparison | None = None
    blank: bool = False
    planned: int = 0

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
    def star(self) -> str:
        """`*` if the cell differs from classical training beyond noise, by the corrected paired t-test."""
        return "*" if self.against is not None and self.against.beyond_noise() else ""

    @property
    def text(self) -> str:
        """`mean ± std`, with the number of splits if some are missing, or `not run`."""
        if self.blank or not self.values:
            return "" if self.blank else "not run"
        spread = f" ± {self.std:.1f}{self.star}" if len(self.values) > 1 else ""
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
        if self.against is not None and self.values:
            c = self.against
            parts.append(f"against Cl: {c.mean:+.2f}, p = {c.t_test:.3f} (corrected t), {c.wilcoxon:.3f} (Wilcoxon)")
        if self.published is not None:
            parts.append(f"published: {self.reference}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Table:
    """A table; its rows are (label, model, one cell per column), and `first` is the heading of the labels."""

    key: str
    title: str
    columns: list[str]
    rows: list[tuple[str, str, list[Cell]]]
    caption: str
    first: str = "tasks"


class Source(NamedTuple):
    """Where the scores of a row come from: a kind of run, and how it is measured."""

    method: str
    tasks: tuple[str, ...]
    probe: str
    protocol: str = "paper"
    model: str | None = None
    weighting: str = "fixed"
    adapts: str = "all"

    def scores(self, study: Study, dataset: str, task: str) -> dict[int, float]:
        """Scores of a task by split."""
        return study.scores(dataset=dataset, task=task, **self._asdict())

    def planned(self, study: Study) -> bool:
        """Whether such runs are part of the study; otherwise a row is left out, not called missing."""
        settings = (("weighting", self.weighting, "fixed"), ("adapts", self.adapts, "all"))
        changed = tuple((name, value) for name, value, default in settings if value != default)
        return Variant(self.method, self.tasks, changed) in study.plan.variants()


class Line(NamedTuple):
    """A row of a table.

    Attributes:
        task: task that is measured; empty where the columns name tasks.
        base: source that it is compared with; `SINGLE_TASK` for the single-task classical model of each task.
        question: question of the paper whose published numbers stand beside it.
    """

    label: str
    source: Source
    task: str = ""
    base: Source | None = None
    question: str = ""
    name: str = ""


SINGLE_TASK = Source("classical", (), "own")


def baseline(study: Study, dataset: str, task: str, protocol: str = "paper") -> dict[int, float]:
    """Scores of the single-task classical model by split, with its own head (under `released`, by a linear probe)."""
    return study.scores(dataset, "classical", (task,), task, probe_of("classical", protocol), protocol=protocol)


def floors(task: str = "", label: str = "", *, protocol: str = "paper", untrained: str = "linear") -> list[Line]:
    """Rows of the floors; `untrained` is the probe of the untrained encoder."""
    lines = []
    for floor, probe in (FLOORS | {"untrained": untrained}).items():
        other = f", {MEASURED[probe]}" if probe not in ("none", untrained) else ""
        source = Source("untrained", TASKS, probe, protocol, floor)
        lines.append(Line(label or task.upper(), source, task, name=LABELS[floor] + other))
    return lines


def make_tables(study: Study) -> list[Table]:
    """All tables that the study's questions ask for; cells without runs say `not run`."""
    makers = {
        "overview": _overview,
        "Q1": _table1,
        "Q2": _table2,
        "Q4": _table3,
        "Q3": _table4,
        "fig1": _figure1,
        "appendix": _appendix,
        "weighting": _weighting,
    }
    tables = [make(study) for question, make in makers.items() if question in study.plan.questions]
    tables += [_floors(study), _released(study)]
    return [table for table in tables if table.rows]


def _pivot(
    study: Study, key: str, title: str, lines: Iterable[Line], *, first: str = "tasks", protocol: str = "paper"
) -> Table:
    """A table with one column per dataset, or, if its lines name no task, per dataset and task."""
    lines = [line for line in lines if line.source.planned(study)]
    wide = not all(line.task for line in lines)
    columns = [(dataset, task) for dataset in study.plan.datasets for task in (TASKS if wide else ("",))]
    rows = []
    for line in lines:
        cells = [_cell(study, line, dataset, line.task or task) for dataset, task in columns]
        rows.append((line.label, line.name or LABELS[line.source.method], cells))
    heads = [f"{dataset} {task.upper()}".strip() for dataset, task in columns]
    return Table(key, title, heads, rows, caption(study, protocol), first)


def _cell(study: Study, line: Line, dataset: str, task: str) -> Cell:
    source = line.source
    if not line.task and task not in source.tasks:
        return Cell(blank=True)
    values = source.scores(study, dataset, task)
    base = {}
    if line.base is not None:
        base = line.base._replace(tasks=line.base.tasks or (task,)).scores(study, dataset, task)
    test = compare(*paired(values, base))
    paper = published(line.question, source.tasks, task, source.method, dataset) if line.question else None
    return Cell(values, paper, test if test.splits > 1 else None, planned=len(study.plan.splits))


def caption(study: Study, protocol: str = "paper") -> str:
    """What the numbers of a study mean."""
    settings, count = study.plan.settings, len(study.plan.splits)
    few = ", the number of splits in brackets where some are missing" if study.missing() else ""
    main = ("scaling", "degree", "walk", "layers", "width", "max_epochs", "patience")
    values = {}
    for name in main:
        others = sorted({str(getattr(config, name)) for config in study.configs} - {str(settings[name])})
        values[name] = f"{settings[name]}" + (f" ({' or '.join(others)} where tuned)" if others else "")
    inputs = values["scaling"] + "".join(f", {n} {values[n]}" for n in ("degree", "walk") if values[n] != "0")
    defaults, skipped = default_settings(), (*main, "pair", "seed", "encoder")
    rest = [f"{k} {v}" for k, v in settings.items() if k not in skipped and v != defaults.get(k)]
    rest += ["C of linear probes chosen by validation loss"] if study.plan.choose else []
    rest += ["tuned configurations where there are any"] if study.plan.tuned else []
    return (
        f"Mean ± standard deviation over {count} split{'s' if count > 1 else ''}{few}, in percent. "
        f"Protocol {protocol}, pair features {settings['pair']}, seed {settings['seed']}, inputs {inputs}, encoder "
        f"{settings['encoder']} with {values['layers']} layers of width {values['width']}, at most "
        f"{values['max_epochs']} epochs, patience {values['patience']}{''.join(f', {part}' for part in rest)}. "
        f"GC and NC: accuracy; LP: {'ROC AUC' if protocol == 'paper' else 'accuracy, as in the released code'}."
    )


def _overview(study: Study) -> Table:
    models = [("classical", "own"), *((method, "linear") for method in ("classical", *SAMES))]
    lines = [line._replace(label=MEASURED[line.source.probe]) for line in floors()]
    lines += [Line(MEASURED[probe], Source(method, TASKS, probe), base=SINGLE_TASK) for method, probe in models]
    return _pivot(study, "overview", "Overview: one encoder for three tasks", lines, first="measured by")


def _table1(study: Study) -> Table:
    lines = []
    for (task,) in SINGLES:
        for method in ("classical", *SAMES):
            base = None if method == "classical" else SINGLE_TASK
            lines.append(Line(task.upper(), Source(method, (task,), probe_of(method)), task, base, "Q1"))
        lines += floors(task)
    title = "Table 1 (Q1): single-task classical models, and a linear classifier on single-task SAME embeddings"
    return _pivot(study, "table1", title, lines)


def _table2(study: Study) -> Table:
    kinds: list[tuple[str, tuple[str, ...]]] = [("classical", tasks) for tasks in SINGLES]
    kinds += [("finetuned", tasks) for tasks in PAIRS]
    kinds += [(method, tasks) for method in SAMES for tasks in PAIRS + ALL]
    lines = []
    for method, tasks in kinds:
        base = None if method == "classical" else SINGLE_TASK
        lines.append(Line("+".join(tasks).upper(), Source(method, tasks, probe_of(method)), "", base, "Q2"))
    title = "Table 2 (Q2): single-task classical, fine-tuned, and a linear classifier on multi-task SAME embeddings"
    return _pivot(study, "table2", title, [*lines, *floors(label="none")])


def _table3(study: Study) -> Table:
    rows = []
    for tasks in PAIRS + ALL:
        methods = ("classical", *(["finetuned"] if tasks in PAIRS else []), *SAMES, "untrained")
        for method in methods:
            source = Source(method, TASKS if method == "untrained" else tasks, "")
            singles = [SINGLE_TASK._replace(tasks=(task,)) for task in tasks]
            if not all(each.planned(study) for each in (source, *singles)):
                continue
            cells = []
            for dataset in study.plan.datasets:
                paper = published("Q4", tasks, "delta_m", method, dataset)
                values = delta_values(study, dataset, method, tasks)
                cells.append(Cell(values, paper, planned=len(study.plan.splits)))
            rows.append(("+".join(tasks).upper(), LABELS[method], cells))
    title = "Table 3 (Q4): Δm, the mean relative gain over single-task classical models"
    return Table("table3", title, list(study.plan.datasets), rows, caption(study))


def delta_values(
    study: Study, dataset: str, method: str, tasks: Sequence[str], lp: str = "paper", *, probe: str | None = None
) -> dict[int, float]:
    """Δm of a multi-task model by split; a split on which a single-task model scores 0 is left out.

    `lp` is the protocol of link prediction, `probe` the probe of the model, by default the paper's.
    """
    ours, bases = [], []
    for task in tasks:
        protocol = lp if task == "lp" else "paper"
        trained = TASKS if method == "untrained" else tuple(tasks)
        source = Source(method, trained, probe or probe_of(method, protocol), protocol)
        ours.append(source.scores(study, dataset, task))
        bases.append(baseline(study, dataset, task, protocol))
    shared = [k for k in set.intersection(*map(set, ours + bases)) if min(b[k] for b in bases) > 0]
    return {k: delta_m([o[k] for o in ours], [b[k] for b in bases]) for k in sorted(shared)}


def _table4(study: Study) -> Table:
    lines = []
    for tasks in PAIRS:
        (unseen,) = set(TASKS) - set(tasks)
        label, classical = f"{','.join(tasks)}→{unseen}".upper(), Source("classical", tasks, "network")

        lines.append(Line(label, classical, unseen, None, "Q3"))
        lines += [Line(label, classical._replace(method=method), unseen, classical, "Q3") for method in SAMES]
        lines += floors(unseen, label, untrained="network")
    title = "Table 4 (Q3): a network on the embeddings of two-task models, for the task they were not trained on"
    return _pivot(study, "table4", title, lines)


def _figure1(study: Study) -> Table:
    lines = []
    for task in TASKS:
        lines += [Line(f"{source}→{task}".upper(), Source("classical", (source,), "network"), task) for source in TASKS]
        lines += floors(task, f"→{task}".upper(), untrained="network")
    title = "Figure 1: a network on the embeddings of single-task classical models, for the same and for other tasks"
    return _pivot(study, "figure1", title, lines)


def _variants(study: Study, key: str, title: str, variants: list[tuple[str, Source]]) -> Table:
    lines = []
    for task in TASKS:
        lines += [Line(task.upper(), source, task, SINGLE_TASK, name=name) for name, source in variants]
        lines += floors(task)
    return _pivot(study, key, title, lines)


def _appendix(study: Study) -> Table:
    traditional = Source("traditional", TASKS, "linear")
    variants = [("Trad, MAML-like", traditional), ("Trad, ANIL-like", traditional._replace(adapts="head"))]
    variants += [(LABELS[method], Source(method, TASKS, "linear")) for method in SAMES]
    title = "Appendix A: traditional meta-learning and SAME, three tasks, linear classifier"
    return _variants(study, "appendix", title, variants)


def _weighting(study: Study) -> Table:
    variants = [
        (f"{LABELS[method]}, {weighting}", Source(method, TASKS, probe_of(method), weighting=weighting))
        for method in ("classical", *SAMES)
        for weighting in ("fixed", "uncertainty", "gradnorm")
    ]
    return _variants(study, "weighting", "Weightings of the task losses, three tasks", variants)


def _floors(study: Study) -> Table:
    lines = [line for task in TASKS for line in floors(task)]
    return _pivot(study, "floors", "Floors: models that need no training", lines)


def _released(study: Study) -> Table:
    """Link prediction as the released code evaluates it."""
    lines = []
    for tasks, question in ((("lp",), "Q1"), (TASKS, "Q2")):
        for method in ("classical", *SAMES):
            source = Source(method, tasks, "linear", "released")
            lines.append(Line("+".join(tasks).upper(), source, "lp", None, question))
    lines += floors("lp", protocol="released")
    title = "Link prediction as the released code evaluates it, linear classifiers: it measures the order of nodes"
    return _pivot(study, "released", title, lines, protocol="released")
