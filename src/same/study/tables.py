"""The paper's tables from a study's results, cell by cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from same.metrics import Comparison, compare, delta_m, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS, Kind
from same.study.published import NAMES, Published, published
from same.study.results import Study

MEASURED = {"none": "", "linear": "linear probe", "network": "network probe", "own": "own heads"}
LABELS = {**NAMES, "traditional": "Trad", "untrained": "untrained", "raw": "raw features", "majority": "majority"}
FLOORS = {"majority": "none", "raw": "linear", "untrained": "linear"}
"""What needs no training, and how it is measured; part of every table of scores."""


def probe_of(method: str, protocol: str = "paper") -> str:
    """How the paper measures a method: end to end where it was trained so, by a linear classifier otherwise.

    Under `released` always by the latter: only probes are trained on such pairs, heads have never seen any.
    """
    return "own" if method in ("classical", "finetuned") and protocol == "paper" else "linear"


@dataclass(frozen=True)
class Cell:
    """Scores over splits, in percent, beside what was published.

    Attributes:
        values: by split.
        published: the paper's number, if it has one.
        against: the comparison with classical training on the same splits, if there is one: for one task, in Table 4
            for two.
        blank: whether the paper's table has nothing here.
        planned: how many splits the study has; a cell of fewer says so.
    """

    values: dict[int, float] = field(default_factory=dict)
    published: Published | None = None
    against: Comparison | None = None
    blank: bool = False
    planned: int = 0

    @property
    def mean(self) -> float:
        """The mean over splits."""
        return float(np.mean(list(self.values.values())))

    @property
    def std(self) -> float:
        """The standard deviation over splits."""
        return float(np.std(list(self.values.values())))

    @property
    def mark(self) -> str:
        """`≈` within the published spread (or a point, if none is given), `▲` better, `▼` worse."""
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
        """`mean ± std`, or `not run`; of how many splits, if some are missing. One split has no spread."""
        if self.blank or not self.values:
            return "" if self.blank else "not run"
        spread = f" ± {self.std:.1f}{self.star}" if len(self.values) > 1 else ""
        return f"{self.mean:.1f}{spread}" + (f" [{len(self.values)}]" if len(self.values) < self.planned else "")

    @property
    def beside(self) -> str:
        """What was published, with the mark."""
        if self.published is None:
            return ""
        spread = "" if self.published.std is None else f" ± {self.published.std:.1f}"
        return f"{self.published.value:.1f}{spread} {self.mark}".strip()

    @property
    def note(self) -> str:
        """Everything there is to know, for those who point at the cell."""
        parts = [f"split {split}: {value:.2f}" for split, value in sorted(self.values.items())]
        if self.against is not None and self.values:
            c = self.against
            parts.append(f"against Cl: {c.mean:+.2f}, p = {c.t_test:.3f} (corrected t), {c.wilcoxon:.3f} (Wilcoxon)")
        if self.published is not None:
            parts.append(f"published: {self.beside}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Table:
    """A table: its rows are (label, model, a cell for each column); `first` says what the labels are."""

    key: str
    title: str
    columns: list[str]
    rows: list[tuple[str, str, list[Cell]]]
    caption: str
    first: str = "tasks"


def make_tables(study: Study) -> list[Table]:
    """All tables that the study's questions ask for, with `not run` where a run is missing."""
    makers: dict[str, Callable[[Study], Table]] = {
        "overview": _table_overview,
        "Q1": _table_q1,
        "Q2": _table_q2,
        "Q4": _table_q4,
        "Q3": _table_q3,
        "fig1": _table_transfer,
        "appendix": _table_appendix,
        "weighting": _table_weighting,
    }
    tables = [make(study) for question, make in makers.items() if question in study.plan.questions]
    tables += [_table_floors(study), _table_released(study)]
    splits = len(study.plan.splits)
    for table in tables:
        table.rows[:] = [(a, b, [replace(c, planned=splits) for c in cells]) for a, b, cells in table.rows]
    return [table for table in tables if table.rows]


def planned(study: Study, method: str, tasks: Sequence[str], **settings: str) -> bool:
    """Whether a sort of run is part of the study: rows of others are left out, not called missing."""
    settings = {name: value for name, value in settings.items() if (name, value) != ("weighting", "fixed")}
    return Kind(method, tuple(tasks), tuple(settings.items())) in study.plan.kinds()


def caption(study: Study, protocol: str = "paper") -> str:
    """What a number of this study means."""
    inputs = {"scaling": "", "degree": "degree ", "walk": "walk "}
    names = ("pair", "seed", *inputs)
    settings = {name: dict(study.plan.defaults)[name] for name in names} | dict(study.plan.settings)
    runs, planned = study.plan.runs(), len(study.plan.splits)
    splits = f"{planned} split{'s' if planned > 1 else ''}"
    few = ", in brackets of how many if fewer" if study.missing(study.plan) else ""
    rest = "".join(f", {name} {value}" for name, value in settings.items() if name not in names)
    if study.plan.choose_c:
        by = {"loss": "loss (LP: ROC AUC)"}.get(study.plan.choose_c, study.plan.choose_c)
        rest += f", C of linear probes chosen by {by} on validation graphs"
    rest += ", tuned configurations where there are any" if study.plan.tuned else ""
    seen = ", ".join(f"{word}{settings[name]}" for name, word in inputs.items() if settings[name])
    tuned = []
    for name, word in inputs.items():
        if other := sorted({getattr(config, name) for config in runs} - {settings[name]}):
            tuned.append(word + " or ".join(map(str, other)))
    seen += f" ({', '.join(tuned)} where tuned so)" if tuned else ""
    return (
        f"Mean ± standard deviation over {splits}{few}, in percent. "
        f"Protocol {protocol}, pair features {settings['pair']}, "
        f"seed {settings['seed']}, inputs {seen}, budget {study.plan.budget}{rest}. "
        "GC and NC: accuracy; LP: " + ("ROC AUC." if protocol == "paper" else "accuracy, as the released code has it.")
    )


def baseline(study: Study, dataset: str, task: str, protocol: str = "paper") -> dict[int, float]:
    """The single-task classical model, end to end (under `released`, by a linear classifier), by split."""
    return study.scores(dataset, "classical", (task,), task, probe_of("classical", protocol), protocol=protocol)


def cell(values: dict[int, float], base: dict[int, float] | None = None, paper: Published | None = None) -> Cell:
    """A cell, compared with a baseline on the splits that both have."""
    test = compare(*paired(values, base or {}))
    return Cell(values, paper, test if test.splits > 1 else None)


def floor_rows(
    study: Study, task: str, label: str = "", *, protocol: str = "paper", untrained: str = "linear"
) -> list[tuple[str, str, list[Cell]]]:
    """Majority, raw features and the untrained encoder on every set.

    Args:
        study: has them.
        task: what is measured.
        label: of the rows, where it is not the task.
        protocol: how link prediction is evaluated.
        untrained: the probe of the untrained encoder: that of the table.
    """
    rows = []
    for floor, probe in (FLOORS | {"untrained": untrained}).items():
        cells = [
            cell(study.scores(dataset, "untrained", TASKS, task, probe, protocol=protocol, model=floor))
            for dataset in study.plan.datasets
        ]
        other = f", {MEASURED[probe]}" if probe not in ("none", untrained) else ""
        rows.append((label or task.upper(), LABELS[floor] + other, cells))
    return rows


def _table_overview(study: Study) -> Table:
    """One encoder for three tasks: what the whole is about."""
    columns = [f"{dataset} {task.upper()}" for dataset in study.plan.datasets for task in TASKS]
    rows = []
    for model, probe in [*FLOORS.items(), ("classical", "own"), *((m, "linear") for m in ("classical", *SAMES))]:
        method = "untrained" if model in FLOORS else model
        if not planned(study, method, TASKS):
            continue
        cells = []
        for dataset in study.plan.datasets:
            for task in TASKS:
                values = study.scores(dataset, method, TASKS, task, probe, model=model)
                cells.append(cell(values, baseline(study, dataset, task) if model not in FLOORS else None))
        rows.append((MEASURED[probe], LABELS[model], cells))
    title = "Overview: one encoder for three tasks"
    return Table("overview", title, columns, rows, caption(study), first="measured by")


def _table_q1(study: Study) -> Table:
    rows = []
    for (task,) in SINGLES:
        for method in ("classical", *SAMES):
            if not planned(study, method, (task,)):
                continue
            cells = []
            for dataset in study.plan.datasets:
                base = None if method == "classical" else baseline(study, dataset, task)
                values = study.scores(dataset, method, (task,), task, probe_of(method))
                cells.append(cell(values, base, published("Q1", (task,), task, method, dataset)))
            rows.append((task.upper(), LABELS[method], cells))
        rows += floor_rows(study, task)
    title = "Table 1 (Q1): single-task classical models, and a linear classifier on single-task SAME embeddings"
    return Table("table1", title, list(study.plan.datasets), rows, caption(study))


def _table_q2(study: Study) -> Table:
    columns = [f"{dataset} {task.upper()}" for dataset in study.plan.datasets for task in TASKS]
    rows = []
    kinds: list[tuple[str, tuple[str, ...]]] = [("classical", tasks) for tasks in SINGLES]
    kinds += [("finetuned", tasks) for tasks in PAIRS]
    kinds += [(method, tasks) for method in SAMES for tasks in PAIRS + ALL]
    for method, tasks in kinds:
        if not planned(study, method, tasks):
            continue
        cells = []
        for dataset in study.plan.datasets:
            for task in TASKS:
                if task not in tasks:
                    cells.append(Cell(blank=True))
                    continue
                base = None if method == "classical" else baseline(study, dataset, task)
                values = study.scores(dataset, method, tasks, task, probe_of(method))
                cells.append(cell(values, base, published("Q2", tasks, task, method, dataset)))
        rows.append(("+".join(tasks).upper(), LABELS[method], cells))
    for floor, probe in FLOORS.items():
        sources = [(dataset, task) for dataset in study.plan.datasets for task in TASKS]
        cells = [cell(study.scores(dataset, "untrained", TASKS, task, probe, model=floor)) for dataset, task in sources]
        rows.append(("none", LABELS[floor], cells))
    title = "Table 2 (Q2): single-task classical, fine-tuned, and a linear classifier on multi-task SAME embeddings"
    return Table("table2", title, columns, rows, caption(study))


def _table_q3(study: Study) -> Table:
    rows = []
    for tasks in PAIRS:
        (unseen,) = set(TASKS) - set(tasks)
        for method in ("classical", *SAMES):
            if not planned(study, method, tasks):
                continue
            cells = []
            for dataset in study.plan.datasets:
                values = study.scores(dataset, method, tasks, unseen, "network")
                base = None
                if method != "classical":
                    base = study.scores(dataset, "classical", tasks, unseen, "network")
                cells.append(cell(values, base, published("Q3", tasks, unseen, method, dataset)))
            rows.append((f"{','.join(tasks)}→{unseen}".upper(), LABELS[method], cells))
        rows += floor_rows(study, unseen, f"{','.join(tasks)}→{unseen}".upper(), untrained="network")
    title = "Table 4 (Q3): a network on the embeddings of two-task models, for the task they were not trained on"
    return Table("table4", title, list(study.plan.datasets), rows, caption(study))


def delta_values(
    study: Study,
    dataset: str,
    method: str,
    tasks: Sequence[str],
    lp: str = "paper",
    *,
    probe: str | None = None,
    singles: Study | None = None,
) -> dict[int, float]:
    """Δm of a multi-task model against single-task classical ones, by split; none where one of these scores 0.

    Args:
        study: has the multi-task model.
        dataset: the set.
        method: of the model; `untrained` for the encoder at its initialisation.
        tasks: its tasks.
        lp: how link prediction is evaluated.
        probe: how the model is measured; as the paper does by default.
        singles: has the single-task models, if it is another study.
    """
    protocol = {task: lp if task == "lp" else "paper" for task in tasks}
    ours, bases = [], []
    for task in tasks:
        trained = TASKS if method == "untrained" else tasks
        how = probe or probe_of(method, protocol[task])
        ours.append(study.scores(dataset, method, trained, task, how, protocol=protocol[task]))
        bases.append(baseline(singles or study, dataset, task, protocol[task]))
    shared = [k for k in set.intersection(*map(set, ours + bases)) if min(b[k] for b in bases) > 0]
    return {k: delta_m([o[k] for o in ours], [b[k] for b in bases]) for k in sorted(shared)}


def _table_q4(study: Study) -> Table:
    rows = []
    for tasks in PAIRS + ALL:
        methods = ("classical", *(["finetuned"] if tasks in PAIRS else []), *SAMES, "untrained")
        for method in methods:
            trained = TASKS if method == "untrained" else tasks
            if not all(planned(study, *kind) for kind in [(method, trained), *(("classical", (t,)) for t in tasks)]):
                continue
            cells = []
            for dataset in study.plan.datasets:
                values = delta_values(study, dataset, method, tasks)
                paper = None if method == "untrained" else published("Q4", tasks, "delta_m", method, dataset)
                cells.append(Cell(values, paper))
            rows.append(("+".join(tasks).upper(), LABELS[method], cells))
    title = "Table 3 (Q4): Δm, the mean relative gain over single-task classical models"
    return Table("table3", title, list(study.plan.datasets), rows, caption(study))


def _table_transfer(study: Study) -> Table:
    rows = []
    for task in TASKS:
        for source in [source for source in TASKS if planned(study, "classical", (source,))]:
            cells = [
                cell(study.scores(dataset, "classical", (source,), task, "network")) for dataset in study.plan.datasets
            ]
            rows.append((f"{source}→{task}".upper(), "Cl", cells))
        rows += floor_rows(study, task, f"→{task}".upper(), untrained="network")
    title = "Figure 1: a network on the embeddings of single-task classical models, for the same and for other tasks"
    return Table("figure1", title, list(study.plan.datasets), rows, caption(study))


def _table_variants(study: Study, key: str, title: str, variants: list[tuple[str, str, dict[str, str]]]) -> Table:
    rows = []
    for task in TASKS:
        for label, method, settings in variants:
            if not planned(study, method, TASKS, **settings):
                continue
            cells = []
            for dataset in study.plan.datasets:
                base = baseline(study, dataset, task)
                cells.append(cell(study.scores(dataset, method, TASKS, task, probe_of(method), **settings), base))
            rows.append((task.upper(), label, cells))
        rows += floor_rows(study, task)
    return Table(key, title, list(study.plan.datasets), rows, caption(study))


def _table_appendix(study: Study) -> Table:
    variants: list[tuple[str, str, dict[str, str]]] = [
        ("Trad, MAML-like", "traditional", {}),
        ("Trad, ANIL-like", "traditional", {"adapts": "heads"}),
        *((LABELS[method], method, {}) for method in SAMES),
    ]
    title = "Appendix A: traditional meta-learning beside SAME, three tasks, linear classifier"
    return _table_variants(study, "appendix", title, variants)


def _table_weighting(study: Study) -> Table:
    variants = [
        (f"{LABELS[method]}, {weighting}", method, {"weighting": weighting})
        for method in ("classical", *SAMES)
        for weighting in ("fixed", "uncertainty", "gradnorm")
    ]
    return _table_variants(study, "weighting", "Weightings of the task losses, three tasks", variants)


def _table_floors(study: Study) -> Table:
    rows = [row for task in TASKS for row in floor_rows(study, task)]
    return Table("floors", "Floors: what needs no training", list(study.plan.datasets), rows, caption(study))


def _table_released(study: Study) -> Table:
    """Link prediction of three-task and single-task models as the released code evaluates it."""
    rows = []
    for tasks in (("lp",), TASKS):
        for method in ("classical", *SAMES):
            if not planned(study, method, tasks):
                continue
            cells = []
            for dataset in study.plan.datasets:
                values = study.scores(dataset, method, tasks, "lp", "linear", protocol="released")
                question = "Q1" if tasks == ("lp",) else "Q2"
                cells.append(cell(values, None, published(question, tasks, "lp", method, dataset)))
            rows.append(("+".join(tasks).upper(), LABELS[method], cells))
    rows += floor_rows(study, "lp", protocol="released")
    title = "Link prediction as the released code evaluates it, linear classifiers: it measures the order of nodes"
    return Table("released", title, list(study.plan.datasets), rows, caption(study, "released"))
