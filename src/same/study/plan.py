"""What the paper's questions need: a list of runs, each a configuration, each once."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from same.config import FIRST_TASKS, Config, first_config, make_config
from same.errors import InputError
from same.names import CHOOSE_C

TASKS = FIRST_TASKS
SINGLES = tuple((task,) for task in TASKS)
PAIRS = (("gc", "nc"), ("gc", "lp"), ("nc", "lp"))
ALL = (TASKS,)
SAMES = ("isame", "esame")

DATASETS = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
BUDGETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "short": {"max_epochs": 40, "patience": 20},
    # Enough for every table to fill, not enough for its numbers to mean much.
    "small": {"width": 64, "max_epochs": 12, "validate_every": 4, "patience": 12},
}
# What all others are measured against must not lose for want of time, and takes little.
BASELINE_BUDGETS: dict[str, dict[str, Any]] = {"short": {"max_epochs": 200}}


def config_name(dataset: str, method: str, tasks: Collection[str]) -> str:
    """Name of a tuned configuration, and of its file (with `.toml`).

    >>> config_name("ENZYMES", "esame", ("gc", "nc"))
    'ENZYMES-esame-gc+nc'
    """
    return f"{Path(dataset).name.removesuffix('.zip')}-{method}-{'+'.join(tasks)}"


@dataclass(frozen=True)
class Kind:
    """A sort of run: a method, on some tasks, with some settings."""

    method: str
    tasks: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()


def _kinds(methods: Iterable[str], task_sets: Iterable[tuple[str, ...]], **settings: Any) -> list[Kind]:
    task_sets = tuple(task_sets)
    return [Kind(method, tasks, tuple(settings.items())) for method in methods for tasks in task_sets]


_BASELINES = _kinds(["classical"], SINGLES)
QUESTIONS: dict[str, list[Kind]] = {
    "floors": _kinds(["untrained"], ALL),
    "overview": _kinds(["classical", *SAMES], ALL),
    "fig1": _BASELINES,
    "Q1": _BASELINES + _kinds(SAMES, SINGLES),
    # Fine-tuning starts from the classical three-task run.
    "Q2": _BASELINES + _kinds(["classical"], ALL) + _kinds(["finetuned"], PAIRS) + _kinds(SAMES, PAIRS + ALL),
    "Q3": _kinds(["classical", *SAMES], PAIRS),
    "Q4": _BASELINES + _kinds(["classical", *SAMES], ALL + PAIRS) + _kinds(["finetuned"], PAIRS),
    "appendix": _kinds(["traditional", *SAMES], ALL) + _kinds(["traditional"], ALL, adapts="heads"),
    "weighting": [
        *_kinds(["classical", *SAMES], ALL),
        *_kinds(["classical", *SAMES], ALL, weighting="uncertainty"),
        *_kinds(["classical", *SAMES], ALL, weighting="gradnorm"),
    ],
}
"""What each question, figure and appendix of the paper needs; `floors` belongs to every table."""


_APART = ("dataset", "method", "tasks", "split")
"""What tells the runs of a study apart."""


def _defaults() -> tuple[tuple[str, Any], ...]:
    values = make_config({}).model_dump(mode="json")
    # No weights are an empty table, which a list of pairs cannot tell from an empty list.
    return tuple((name, value) for name, value in values.items() if name not in (*_APART, "weights"))


@dataclass(frozen=True)
class Plan:
    """A study: which questions, on which sets, methods, task sets and splits.

    Attributes:
        settings: of every run, beside what tells the runs apart.
        tuned: of the runs of a set, method and tasks, by the name of the tuned configuration; `settings` win.
        choose_c: what linear probes choose the SVM's C by, on validation graphs (`score` or `loss`); None for C = 1.
        defaults: what holds where nothing else is said: a study keeps to those it began with.
    """

    questions: tuple[str, ...] = tuple(QUESTIONS)
    datasets: tuple[str, ...] = DATASETS
    methods: tuple[str, ...] | None = None
    tasks: tuple[tuple[str, ...], ...] | None = None
    splits: tuple[int, ...] = tuple(range(10))
    budget: str = "paper"
    settings: tuple[tuple[str, Any], ...] = (("pair", "concat"),)
    tuned: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    choose_c: str | None = None
    defaults: tuple[tuple[str, Any], ...] = field(default_factory=lambda: _defaults())

    def __post_init__(self) -> None:
        for name, values, known in (
            ("questions", self.questions, QUESTIONS),
            ("methods", self.methods or (), {kind.method for kinds in QUESTIONS.values() for kind in kinds}),
            ("budget", (self.budget,), BUDGETS),
            ("choose-c", (self.choose_c,) if self.choose_c else (), CHOOSE_C),
        ):
            for value in values:
                if value not in known:
                    raise InputError(f"--{name}: {value!r} is not one of {', '.join(sorted(known))}")
        for name, _ in self.settings:
            if name in _APART:
                raise InputError(f"--set: {name} tells the runs of a study apart; use the option of that name")
        for tasks in self.tasks or ():
            if tasks not in SINGLES + PAIRS + ALL:
                raise InputError(f"--tasks: {'+'.join(tasks)} is not a set of gc, nc and lp, in this order")

    def kinds(self) -> list[Kind]:
        """The sorts of runs, each once, in an order in which what others start from comes first."""
        wanted = [kind for question in QUESTIONS if question in self.questions for kind in QUESTIONS[question]]
        found = dict.fromkeys(
            kind
            for kind in [*QUESTIONS["floors"], *wanted]
            if kind.method == "untrained"
            or (
                (self.methods is None or kind.method in self.methods)
                and (self.tasks is None or kind.tasks in self.tasks)
            )
        )
        if any(kind.method == "finetuned" for kind in found):
            found[Kind("classical", TASKS)] = None
        rank = {"untrained": 0, "classical": 1}
        return sorted(
            found, key=lambda kind: (rank.get(kind.method, 2), -len(kind.tasks) if rank.get(kind.method) else 0)
        )

    def runs(self) -> list[Config]:
        """The runs, all of a split before the next one, so that a study that is not finished has whole splits."""
        return [
            self.config(kind, dataset, split)
            for split in self.splits
            for dataset in self.datasets
            for kind in self.kinds()
        ]

    def config(self, kind: Kind, dataset: str, split: int) -> Config:
        """The configuration of one run."""
        name = self.tuned_name(kind, dataset)
        tuned = dict(dict(self.tuned).get(name, ()))
        # Weights are about the tasks they were found for, which fine-tuning starts from, and not for who finds his own.
        fits = kind.method == "finetuned" or name == config_name(dataset, kind.method, kind.tasks)
        weighting = (tuned | dict(self.settings) | dict(kind.settings)).get("weighting", "fixed")
        if not fits or weighting != "fixed":
            tuned.pop("weights", None)
        budget = BUDGETS[self.budget]
        if kind in _BASELINES:
            budget = budget | BASELINE_BUDGETS.get(self.budget, {})
        values = dict(self.defaults) | budget | tuned | dict(self.settings) | dict(kind.settings)
        return make_config({**values, "dataset": dataset, "method": kind.method, "tasks": kind.tasks, "split": split})

    def tuned_name(self, kind: Kind, dataset: str) -> str:
        """The name of the tuned configuration that a sort of run takes, if there is one.

        What has none of its own takes that of its method on three tasks; fine-tuning that of the classical run that it
        starts from.
        """
        first = "classical" if kind.method == "finetuned" else kind.method
        own, other = config_name(dataset, kind.method, kind.tasks), config_name(dataset, first, FIRST_TASKS)
        known = dict(self.tuned)
        return other if own not in known and other in known else own

    def networks(self, config: Config) -> tuple[str, ...]:
        """The tasks for which a table shows a network on the embeddings of a run, which takes longer than other probes.

        Figure 1: all, on single-task classical models. Q3: the one that a two-task model was not trained on. The
        untrained encoder is held against both.

        >>> Plan(questions=("Q3",)).networks(Config(method="esame", tasks=("gc", "lp")))
        ('nc',)
        """
        asked = {"fig1", "Q3"} & set(self.questions)
        kind = Kind(config.method, config.tasks)
        if asked and config.method == "untrained":
            return TASKS
        if "fig1" in asked and kind in QUESTIONS["fig1"]:
            return TASKS
        if "Q3" in asked and kind in QUESTIONS["Q3"]:
            return tuple(task for task in TASKS if task not in config.tasks)
        return ()

    def untuned(self) -> list[str]:
        """The names of the tuned configurations that are missing; the untrained encoder has nothing to tune."""
        kinds = [kind for kind in self.kinds() if kind.method != "untrained"]
        wanted = (self.tuned_name(kind, dataset) for dataset in self.datasets for kind in kinds)
        return [name for name in dict.fromkeys(wanted) if name not in dict(self.tuned)]

    def overruled(self) -> list[str]:
        """What tuned configurations have otherwise than the settings, which win: a line each."""
        settings = dict(self.settings)
        return [
            f"{name} was tuned with {key}={value}, the study has {settings[key]}"
            for name, values in self.tuned
            for key, value in values
            if key in settings and settings[key] != value
        ]

    def grown(self, other: "Plan") -> "Plan":
        """A plan of all that this one or an older one asks for; settings are this one's, defaults the older one's."""

        order = {name: place for place, name in enumerate([*DATASETS, *QUESTIONS])}

        def union(mine: Any, theirs: Any) -> Any:
            if mine is None or theirs is None:
                return None
            # In the paper's order, so that tables do not depend on how a study grew; what it does not name, behind.
            return tuple(sorted(dict.fromkeys([*theirs, *mine]), key=lambda name: order.get(name, len(order))))

        splits = tuple(sorted({*self.splits, *other.splits}))

        names = ("questions", "datasets", "methods", "tasks")
        both = {name: union(getattr(self, name), getattr(other, name)) for name in names}
        return replace(self, **both, splits=splits, defaults=other.defaults)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Plan":
        """The plan from plain values."""

        def tuples(value: Any) -> Any:
            return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value

        return cls(**{name: tuples(value) for name, value in values.items()})


def first_of(config: Config) -> str | None:
    """The key of the run that must be done before this one, if there is one."""
    return first_config(config).key if config.method == "finetuned" else None


def parse_task_sets(text: str) -> tuple[tuple[str, ...], ...]:
    """Task sets from `gc,gc+nc`: sets apart by commas, tasks by plus signs.

    >>> parse_task_sets("gc,gc+nc")
    (('gc',), ('gc', 'nc'))
    """
    return tuple(tuple(part.split("+")) for part in text.split(","))


def parse_splits(text: str) -> tuple[int, ...]:
    """Splits from `0-3,7`.

    >>> parse_splits("0-3,7")
    (0, 1, 2, 3, 7)
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        raise InputError(f"--splits: {text!r} is not like 0-3,7") from None
    if not found or not set(found) <= set(range(10)):
        raise InputError(f"--splits: {text!r}: splits are 0 to 9")
    return tuple(dict.fromkeys(found))


def names(values: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """Names from `a,b`, or the default."""
    return tuple(name.strip() for name in values.split(",")) if values else tuple(default)
