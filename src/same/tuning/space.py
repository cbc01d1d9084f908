"""The search space: which keys of the configuration vary, and in which range."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from same.config import Config, make_config, read_config
from same.errors import InputError
from same.methods.registry import METHODS

Values = dict[str, Any]
DEFAULT = Path(__file__).with_name("space.toml")  # The default search space.
SCOPE = ("dataset", "method", "tasks", "split", "seed")  # Keys that define what is measured.
NOT_SEARCHED = (*SCOPE, "max_epochs", "max_seconds", "validate_every", "validation_episodes", "patience", "stop_on")
"""Keys that define what is measured and for how long. Trials that differ in them could not be compared."""


@dataclass(frozen=True)
class Parameter:
    """A key of the configuration that varies: one of several choices, or a number in a range."""

    name: str
    choices: tuple[Any, ...] = ()  # empty for a range
    low: float = 0
    high: float = 0
    log: bool = False  # whether to search the range on a logarithmic scale
    methods: tuple[str, ...] = ()  # that use the parameter; empty for all
    tasks: tuple[str, ...] = ()  # the same for tasks

    @property
    def is_integer(self) -> bool:
        """Whether this is a range of integers: one between integers."""
        return not self.choices and isinstance(self.low, int) and isinstance(self.high, int)

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw a random value."""
        if self.choices:
            return self.choices[int(rng.integers(len(self.choices)))]
        if self.is_integer and not self.log:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        low, high = (math.log(end) for end in (self.low, self.high)) if self.log else (self.low, self.high)
        value = float(rng.uniform(low, high))
        return self.rounded(math.exp(value) if self.log else value)

    def rounded(self, value: Any) -> Any:
        """The value with the type that the configuration expects, to three significant digits."""
        if self.choices:
            return next(choice for choice in self.choices if choice == value)
        return round(value) if self.is_integer else min(max(float(f"{value:.3g}"), float(self.low)), float(self.high))

    def contains(self, value: Any) -> bool:
        """Whether a value lies in the space."""
        return value in self.choices if self.choices else self.low <= value <= self.high


@dataclass(frozen=True)
class Space:
    """A search space: a tuple of parameters."""

    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of the configuration that vary."""
        return tuple(parameter.name for parameter in self.parameters)

    def restrict(self, method: str, tasks: Collection[str], fixed: Collection[str] = ()) -> "Space":
        """The parameters that a method and tasks use, without those that are fixed."""
        free = [p for p in self.parameters if p.name not in fixed and method in (p.methods or [method])]
        return Space(tuple(p for p in free if not p.tasks or set(p.tasks) & set(tasks)))

    def values_of(self, config: Config) -> Values | None:
        """The values that a configuration has for the parameters; None if any of them lies outside the space."""
        values = {parameter.name: getattr(config, parameter.name) for parameter in self.parameters}
        return values if all(p.contains(values[p.name]) for p in self.parameters) else None

    def to_json(self) -> dict[str, Values]:
        """The space as plain values, in the form of its file."""
        return {p.name: {k: v for k, v in vars(p).items() if k != "name"} for p in self.parameters}


def read_space(path: Path = DEFAULT) -> Space:
    """Read a search space from a TOML or JSON file."""
    return make_space(read_config(path), str(path))


def make_space(tables: Mapping[str, Any], origin: str) -> Space:
    """Build a search space from plain values."""
    if not tables:
        raise InputError(f"{origin}: is empty; `same tune --space` prints an example")
    return Space(tuple(_parameter(name, entry, origin) for name, entry in tables.items()))


def _parameter(name: str, entry: Any, origin: str) -> Parameter:
    def require(condition: bool, message: str) -> None:
        if not condition:
            raise InputError(f"{origin}: {name}{message}")

    if name not in Config.model_fields:
        make_config({name: None}, origin)  # Raises, with a suggestion.
    reason = "defines what is measured or for how long and cannot be searched; use --set"
    require(name not in NOT_SEARCHED, f" {reason}")
    require(isinstance(entry, dict), ": expected a table with choices, or low and high")
    fields = [field for field in Parameter.__dataclass_fields__ if field != "name"]
    for key in entry:
        require(key in fields, f": unknown field {key!r}; expected one of {', '.join(fields)}")
    for key, what in (("methods", "a list of names"), ("tasks", "a list of names"), ("choices", "a list")):
        values = entry.get(key, ())
        listed = isinstance(values, list | tuple) and (key == "choices" or all(isinstance(v, str) for v in values))
        require(listed, f": {key}: expected {what}")
    given: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    parameter = Parameter(name, **given)
    for method in parameter.methods:
        require(method in METHODS, f": methods: {method!r} is not one of {', '.join(METHODS)}")
    low, high, log, values = parameter.low, parameter.high, parameter.log, parameter.choices
    if values:
        kinds = {type(value) for value in values}
        if kinds == {int, float}:
            values, kinds = tuple(map(float, values)), {float}
        simple = len(kinds) == 1 and kinds <= {int, float, str, bool}
        require(simple, ": choices: expected only numbers, only strings, or only true and false")
        require(len(set(values)) == len(values), ": choices: duplicate value")
        parameter = replace(parameter, choices=values)
    else:
        numbers = all(type(end) in (int, float) and math.isfinite(end) for end in (low, high))
        require(numbers and {"low", "high"} <= set(entry), ": expected choices, or numbers low and high")
        require(low < high, f": low must be less than high, not {low} and {high}")
        require(log is False or (log is True and low > 0), ": log = true needs a low above 0")
        values = (low, high, parameter.rounded(math.sqrt(low * high) if log else (low + high) / 2))
    for value in values:
        make_config({name: value} | ({"method": parameter.methods[0]} if parameter.methods else {}), origin)
    return parameter
