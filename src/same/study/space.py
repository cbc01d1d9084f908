"""The search space of a tuning: which keys of the configuration vary, and how far."""

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from same.config import METHODS, Config, make_config, read_config
from same.errors import InputError

Values = dict[str, Any]

DEFAULT = Path(__file__).with_name("space.toml")
"""The space that is searched unless the user has another."""

NOT_SEARCHED = (
    *("dataset", "method", "tasks", "split", "seed"),
    *("max_epochs", "validate_every", "validation_episodes", "patience", "stop_on"),
)
"""The keys that say what is measured and for how long: a search that could change them would compare unlike trials."""


@dataclass(frozen=True)
class Parameter:
    """A key that varies: one of some choices, or a number between two others.

    Attributes:
        name: the key.
        choices: what it may be; none for a range.
        low: the least number of a range; whole numbers are searched if `low` and `high` are whole numbers.
        high: the greatest.
        log: whether the range is searched on a logarithmic scale.
        methods: the methods it matters to; all if none is named.
        tasks: the tasks it matters to; all if none is named.

    >>> Parameter("width", choices=(64, 128)).contains(128)
    True
    >>> Parameter("outer_lr", low=0.001, high=0.1, log=True).place(0.01)
    0.5
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False
    methods: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it is a range of whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ordered(self) -> bool:
        """Whether values can be greater and less than others."""
        return not isinstance((self.choices or (0,))[0], str | bool)

    def draw(self, rng: np.random.Generator) -> Any:
        """A value at random."""
        if self.choices:
            return self.choices[int(rng.integers(len(self.choices)))]
        if self.whole and not self.log:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        low, high = (math.log(end) for end in (self.low, self.high)) if self.log else (self.low, self.high)
        value = float(rng.uniform(low, high))
        return self.tidy(math.exp(value) if self.log else value)

    def tidy(self, value: Any) -> Any:
        """The value as the configuration has it: of the right type, and with no more digits than matter."""
        if self.choices:
            return next(choice for choice in self.choices if choice == value)
        return round(value) if self.whole else min(max(float(f"{value:.3g}"), float(self.low)), float(self.high))

    def contains(self, value: Any) -> bool:
        """Whether a value is in the space."""
        return value in self.choices if self.choices else self.low <= value <= self.high

    def place(self, value: Any) -> float:
        """Where a value stands between the first and the last one: 0 to 1."""
        if self.choices:
            return self.choices.index(value) / max(len(self.choices) - 1, 1)
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return float((at - low) / (high - low))


@dataclass(frozen=True)
class Space:
    """Some parameters."""

    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that vary."""
        return tuple(parameter.name for parameter in self.parameters)

    def matter(self, method: str, tasks: Collection[str], fixed: Collection[str] = ()) -> "Space":
        """The part that matters to a method and some tasks, without what is fixed.

        >>> inner = Parameter("inner_lr", low=0.1, high=1.0, methods=("esame",))
        >>> space = Space((Parameter("layers", low=2, high=4), inner))
        >>> space.matter("classical", ["gc"]).names
        ('layers',)
        """
        return Space(
            tuple(
                p
                for p in self.parameters
                if p.name not in fixed
                and (not p.methods or method in p.methods)
                and (not p.tasks or set(p.tasks) & set(tasks))
            )
        )

    def draw(self, rng: np.random.Generator) -> Values:
        """Values at random."""
        return {parameter.name: parameter.draw(rng) for parameter in self.parameters}

    def values_of(self, config: Config) -> Values | None:
        """What a configuration has in place of the parameters; None if any of it lies outside the space."""
        values = {parameter.name: getattr(config, parameter.name) for parameter in self.parameters}
        return values if all(p.contains(values[p.name]) for p in self.parameters) else None

    def to_json(self) -> dict[str, Values]:
        """The space as plain values, as a file of it would hold them."""
        return {p.name: {k: v for k, v in vars(p).items() if k != "name"} for p in self.parameters}


def read_space(path: Path = DEFAULT) -> Space:
    """The search space in a TOML or JSON file; what is wrong is said in one line."""
    return make_space(read_config(path), str(path))


def make_space(tables: Mapping[str, Any], origin: str) -> Space:
    """A search space from plain values.

    >>> make_space({"widht": {"choices": [64]}}, "mine.toml")
    Traceback (most recent call last):
    same.errors.InputError: mine.toml: there is no 'widht'; did you mean 'width'?
    """
    if not tables:
        raise InputError(f"{origin}: is empty; see `same tune --space` for what it may hold")
    return Space(tuple(_parameter(name, entry, origin) for name, entry in tables.items()))


def _parameter(name: str, entry: Any, origin: str) -> Parameter:
    if name not in Config.model_fields:
        make_config({name: None}, origin)  # Says so, with the nearest known one.
    if name in NOT_SEARCHED:
        raise InputError(f"{origin}: {name} says what is measured or for how long, and cannot be searched; use --set")
    if not isinstance(entry, dict):
        raise InputError(f"{origin}: {name}: expected a table with choices, or low and high")
    known = [key for key in Parameter.__dataclass_fields__ if key != "name"]
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise InputError(f"{origin}: {name}: there is no {key!r}; {hint}")
    lists: Values = {key: _texts(entry.get(key, ()), f"{origin}: {name}: {key}") for key in ("methods", "tasks")}
    for method in lists["methods"]:
        if method not in METHODS:
            raise InputError(f"{origin}: {name}: methods: {method!r} is not one of {', '.join(METHODS)}")
    if entry.get("choices"):
        parameter = Parameter(name, choices=_choices(entry["choices"], f"{origin}: {name}"), **lists)
        tried = parameter.choices
    else:
        parameter = Parameter(name, **_range(entry, f"{origin}: {name}"), **lists)
        middle = math.sqrt(parameter.low * parameter.high) if parameter.log else (parameter.low + parameter.high) / 2
        tried = (parameter.low, parameter.high, parameter.tidy(middle))
    for value in tried:
        make_config({"method": (*lists["methods"], "esame")[0], name: value}, origin)
    return parameter


def _texts(values: Any, place: str) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{place}: expected a list of names")
    return tuple(values)


def _choices(values: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise InputError(f"{place}: choices: expected a list")
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        values, kinds = [float(value) for value in values], {float}
    if len(kinds) != 1 or not kinds <= {int, float, str, bool}:
        raise InputError(f"{place}: choices: expected all numbers, all texts, or true and false")
    if len(set(values)) < len(values):
        raise InputError(f"{place}: choices: holds a value twice")
    return tuple(values)


def _range(entry: Values, place: str) -> Values:
    low, high, log = entry.get("low"), entry.get("high"), entry.get("log", False)
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise InputError(f"{place}: expected choices, or numbers low and high")
    assert low is not None
    assert high is not None
    if low >= high:
        raise InputError(f"{place}: low must be less than high, not {low} and {high}")
    if not isinstance(log, bool) or (log and low <= 0):
        raise InputError(f"{place}: log = true needs a low above 0")
    return {"low": low, "high": high, "log": log}
