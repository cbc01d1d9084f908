"""Plans: which runs the questions of the paper need, and how a study remembers its plan."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from same.config import Config, make_config
from same.errors import DamagedError, InputError
from same.files import is_free, read_json, write_json
from same.linear import Choose
from same.methods.registry import get

log = logging.getLogger("same")

PLAN = "study.json"
TASKS = ("gc", "nc", "lp")
SINGLES = tuple((task,) for task in TASKS)
PAIRS = (("gc", "nc"), ("gc", "lp"), ("nc", "lp"))
ALL = (TASKS,)
SAMES = ("isame", "esame")
BASE = {"finetuned": "classical"}
"""Methods that start from a run of another one on all three tasks."""

DATASETS = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
BUDGETS: dict[str, dict[str, Any]] = {
    "paper": {"max_epochs": 15_000},
    "short": {"max_epochs": 40, "patience": 20},
    # Enough to fill every table, not enough for the numbers to mean much.
    "small": {"width": 64, "max_epochs": 12, "validate_every": 4, "patience": 12},
}
"""Caps and stopping rules. Every method of a study has the same one: otherwise their scores could not be compared.

The paper's caps differ: 1,000 epochs for classical training on one task, 5,000 for SAME on one task and classical
training on several, and 15,000 for SAME on several.
"""


class Variant(NamedTuple):
    """A kind of run: a method trained on some tasks."""

    method: str
    tasks: tuple[str, ...]
    weighting: str = "fixed"
    adapts: str = "all"


_MAIN = ("classical", *SAMES)
_SINGLE, _PAIRS, _THREE = ([Variant(m, tasks) for m in _MAIN for tasks in sets] for sets in (SINGLES, PAIRS, ALL))
_BASELINES = [variant for variant in _SINGLE if variant.method == "classical"]
_FINETUNED = [Variant("finetuned", tasks) for tasks in PAIRS]
QUESTIONS: dict[str, list[Variant]] = {
    "floors": [Variant("untrained", TASKS)],
    "overview": _THREE,
    "fig1": _BASELINES,
    "Q1": _SINGLE,
    "Q2": _BASELINES + _THREE + _FINETUNED + [variant for variant in _PAIRS if variant.method in SAMES],
    "Q3": _PAIRS,
    "Q4": _BASELINES + _THREE + _PAIRS + _FINETUNED,
    "appendix": [Variant("traditional", TASKS, adapts=adapts) for adapts in ("all", "head")] + _THREE[1:],
    "weighting": [each._replace(weighting=w) for w in ("fixed", "uncertainty", "gradnorm") for each in _THREE],
}
"""Runs that each question, figure and appendix of the paper needs; `floors` is part of every study."""
_UNSEEN = {variant: tuple(task for task in TASKS if task not in variant.tasks) for variant in _PAIRS}
NETWORKS: dict[str, dict[Variant, tuple[str, ...]]] = {
    "fig1": dict.fromkeys(_BASELINES + QUESTIONS["floors"], TASKS),
    "Q3": {**_UNSEEN, **dict.fromkeys(QUESTIONS["floors"], TASKS)},
}
"""Tasks of each kind of run that a question measures with a network probe."""
IDENTITY = ("dataset", "method", "tasks", "split")
"""Configuration keys in which the runs of a study differ."""
COMPARED = ("weighting", "adapts")
"""Configuration keys that some questions compare, so that a study cannot set them."""


def default_settings() -> dict[str, Any]:
    """Settings of a study of the paper: all keys of the configuration in which its runs do not differ."""
    values = make_config({}).model_dump(mode="json") | {"pair": "concat"} | BUDGETS["paper"]
    return {name: value for name, value in values.items() if name not in IDENTITY}


@dataclass(frozen=True)
class Plan:
    """Questions, datasets, methods, task sets and splits of a study, and the settings of its runs."""

    questions: tuple[str, ...] = tuple(QUESTIONS)
    datasets: tuple[str, ...] = DATASETS
    methods: tuple[str, ...] | None = None  # None for all that the questions need
    tasks: tuple[tuple[str, ...], ...] | None = None  # None for all that the questions need
    splits: tuple[int, ...] = tuple(range(10))
    settings: Mapping[str, Any] = field(default_factory=dict)  # of every run; the defaults of today for keys left out
    tuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of single variants, by `config_name`
    choose: Choose | None = "loss"  # what chooses the C of linear probes on validation graphs; None, in 0.1, for C = 1
    keep_models: bool = False  # whether the folders of finished runs stay

    def __post_init__(self) -> None:
        for option, values, choices in (
            ("questions", self.questions, QUESTIONS),
            ("methods", self.methods or (), {v.method for variants in QUESTIONS.values() for v in variants}),
            ("tasks", map("+".join, self.tasks or ()), list(map("+".join, SINGLES + PAIRS + ALL))),
            ("choose", (self.choose,) if self.choose else (), get_args(Choose)),
        ):
            if unknown := [value for value in values if value not in choices]:
                raise InputError(f"--{option}: {unknown[0]!r} is not one of {', '.join(sorted(choices))}")
        defaults = default_settings()
        for name in (*IDENTITY, *COMPARED):
            if name in self.settings and self.settings[name] != defaults.get(name):
                raise InputError(
                    f"--set: runs of a study differ in {name}; use the option of that name, or --questions"
                )
        for origin, given in (("--set", self.settings), *self.tuned.items()):
            if given.get("node_labels", "none") != "none":
                raise InputError(f"{origin}: studies of the paper never show node labels; leave out node_labels")
        object.__setattr__(self, "settings", defaults | dict(self.settings))

    def variants(self) -> list[Variant]:
        """All variants, each once; floors and runs that others start from come first."""
        wanted = [v for question, variants in QUESTIONS.items() if question in self.questions for v in variants]
        wanted = [v for v in wanted if not self.methods or v.method in self.methods]
        wanted = [v for v in wanted if not self.tasks or v.tasks in self.tasks]
        first = [Variant(BASE[v.method], TASKS) for v in wanted if v.method in BASE]
        return list(dict.fromkeys([*QUESTIONS["floors"], *first, *wanted]))

    def runs(self) -> list[Config]:
        """All runs, split by split, so that an unfinished study has complete splits."""
        variants = self.variants()
        return [self.config(v, dataset, split) for split in self.splits for dataset in self.datasets for v in variants]

    def config(self, variant: Variant, dataset: str, split: int) -> Config:
        """Configuration of one run."""
        name = self._tuned_name(variant, dataset)
        values = {**self.settings, **self.tuned.get(name, {}), **variant._asdict()}
        # Task weights are tuned for a set of tasks, and a learned weighting has its own.
        same_tasks = variant.method in BASE or name == config_name(dataset, variant.method, variant.tasks)
        if not same_tasks or variant.weighting != "fixed":
            values["weights"] = self.settings["weights"]
        return make_config({**values, "dataset": dataset, "split": split})

    def _tuned_name(self, variant: Variant, dataset: str) -> str:
        """Tuned configuration that a variant uses, if there is one: its own, or that on three tasks."""
        name = config_name(dataset, variant.method, variant.tasks)
        other = config_name(dataset, BASE.get(variant.method, variant.method), TASKS)
        return other if name not in self.tuned and other in self.tuned else name

    def untuned(self) -> list[str]:
        """Names of the tuned configurations that are missing."""
        trained = [variant for variant in self.variants() if get(variant.method).trains]
        names = dict.fromkeys(self._tuned_name(variant, dataset) for dataset in self.datasets for variant in trained)
        return [name for name in names if name not in self.tuned]

    def networks(self, config: Config) -> tuple[str, ...]:
        """Tasks for which a table shows a network probe of a run, which takes longer than other probes."""
        variant = Variant(config.method, config.tasks)
        shown = {task for question in self.questions for task in NETWORKS.get(question, {}).get(variant, ())}
        return tuple(task for task in TASKS if task in shown)

    def grown(self, other: "Plan") -> "Plan":
        """This plan extended by all that another plan of the same study asks for."""
        # In the paper's order, so that tables do not depend on how a study grew; other names come last.
        order = {name: place for place, name in enumerate([*DATASETS, *QUESTIONS])}
        union: dict[str, Any] = {"keep_models": self.keep_models or other.keep_models}
        for name in ("questions", "datasets", "methods", "tasks", "splits"):
            both = (getattr(self, name), getattr(other, name))
            names = None if None in both else {each for values in both for each in values}
            union[name] = names and tuple(sorted(names, key=lambda each: (order.get(each, len(order)), each)))
        return replace(self, **union)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Plan":
        """The plan from plain values. Fields that the configuration has got since have their absent values."""
        extras = {name: field.json_schema_extra for name, field in Config.model_fields.items()}
        absent = {name: extra["absent"] for name, extra in extras.items() if isinstance(extra, dict)}
        plain = {name: _tuples(value) for name, value in values.items()}
        return cls(**{**plain, "settings": {**absent, **plain.get("settings", {})}})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def make_plan(
    folder: Path | None = None,
    *,
    budget: str | None = None,
    settings: Mapping[str, Any] | None = None,
    tuned: Mapping[str, Mapping[str, Any]] | None = None,
    **scope: Any,
) -> Plan:
    """A plan from what a user asks for. What is None comes from the study in the folder, or from the defaults.

    A study that has begun may be run in part or extended, but a request that contradicts its settings is refused.
    """
    if budget not in (None, *BUDGETS):
        raise InputError(f"--budget: {budget!r} is not one of {', '.join(BUDGETS)}")
    asked = {**BUDGETS.get(budget or "", {}), **(settings or {})}
    scope = {name: value for name, value in scope.items() if value is not None}
    if tuned is not None:
        scope["tuned"] = {n: {k: v for k, v in t.items() if k not in (settings or {})} for n, t in tuned.items()}
    if folder is None or (begun := begun_plan(folder)) is None:
        return Plan(settings=asked, **scope)
    return _extending(replace(begun, **scope, settings={**begun.settings, **asked}), begun, folder)


def _extending(plan: Plan, begun: Plan, folder: Path) -> Plan:
    """The plan; rejected if it cannot extend the study in the folder."""
    before, after = ({**p.settings, "choose": p.choose} for p in (begun, plan))
    if names := [name for name in before | after if before.get(name) != after.get(name)]:
        differences = "; ".join(f"{name} {before.get(name)}, not {after.get(name)}" for name in names)
        raise InputError(f"{folder}: holds a study with other settings ({differences}); choose another folder")
    if replace(begun, tuned=plan.tuned).runs() != begun.runs():
        raise InputError(f"{folder}: holds a study with other tuned configurations; choose another folder")
    return plan


def read_plan(folder: Path) -> Plan:
    """The plan of the study in a folder."""
    try:
        return Plan.from_json(read_json(folder / PLAN))
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no study (no {PLAN})") from None
    except DamagedError as error:
        raise DamagedError(f"{error}; the command that began the study writes it again") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / PLAN}: not the plan of a study ({error})") from None


def begun_plan(folder: Path) -> Plan | None:
    """The plan of the study in a folder; None if there is none, or if it is damaged, with a warning."""
    try:
        return read_plan(folder) if (folder / PLAN).is_file() else None
    except DamagedError as error:  # Finished runs are identified by their configurations, so nothing is lost.
        log.warning("%s", error)
        return None


def remember(plan: Plan, folder: Path) -> None:
    """Write the plan into the folder of the study, extended by what was planned before."""
    if (begun := begun_plan(folder)) is not None:
        plan = _extending(plan, begun, folder).grown(begun)
    elif not is_free(folder) and not (folder / PLAN).is_file():
        raise InputError(f"{folder}: holds other files; choose another folder")
    write_json(folder / PLAN, plan.to_json())


def config_name(dataset: str, method: str, tasks: Iterable[str]) -> str:
    """Name of a tuned configuration, such as `ENZYMES-esame-gc+nc`, and of its file without `.toml`."""
    return f"{Path(dataset).name.removesuffix('.zip')}-{method}-{'+'.join(tasks)}"


def first_of(config: Config) -> str | None:
    """Key of the run that a run starts from, if there is one."""
    first = get(config.method).first_phase(config)
    return None if first is None else first.key


def parse_splits(text: str) -> tuple[int, ...]:
    """Splits from numbers and ranges, such as `0-3,7`."""
    try:
        ends = [part.partition("-")[::2] for part in text.split(",")]
        splits = [split for first, last in ends for split in range(int(first), int(last or first) + 1)]
    except ValueError:
        raise InputError(f"--splits: {text!r} is not like 0-3,7") from None
    if not splits or not set(splits) <= set(range(10)):
        raise InputError(f"--splits: {text!r}: splits are 0 to 9")
    return tuple(dict.fromkeys(splits))
