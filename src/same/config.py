"""The configuration of a run: typed, validated, printed and saved."""

import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from same.errors import InputError

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

PRESETS: dict[str, dict[str, Any]] = {
    # Chosen by linear probes on validation graphs.
    "sage-walk": {
        "method": "classical",
        "encoder": "sage",
        "walk": 16,
        "linear_heads": True,
        "max_epochs": 200,
        "patience": 100,
        "stop_on": "linear",
    },
}
"""Settings that work well together: `same train --config sage-walk`, `GraphEncoder(**same.PRESETS["sage-walk"])`."""

POOLS = ("mean", "sum", "max", "std", "size")
"""Poolings of the nodes of a graph, see `same.nn.pool_nodes`."""


def _added(default: Any, absent: Any, **options: Any) -> Any:
    """A field added after version 0.1. `absent` is what the code did before the field existed; never change it."""
    return Field(default, json_schema_extra={"absent": absent}, **options)


class Config(BaseModel):
    """Everything that determines the result of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str = Field("planted", description="name of a dataset, or folder or zip in TU format")
    method: str = Field("esame", description="training method")
    tasks: tuple[str, ...] = Field(("gc", "nc", "lp"), description="tasks to learn")
    split: int = Field(0, ge=0, le=9, description="number of the split, 0 to 9")
    seed: int = Field(0, ge=0, description="seed of splits, initialisation, episodes and probes")

    scaling: Literal["standardise", "row", "both", "none"] = Field("standardise", description="scaling of attributes")
    degree: int = Field(16, ge=0, le=10_000, description="one-hot degrees up to this as further inputs; 0 for none")
    walk: int = Field(0, ge=0, le=1_000, description="random-walk return probabilities as further inputs; 0 for none")
    node_labels: Literal["none", "input"] = _added(
        "none", "none", description="whether the encoder sees node classes, as one-hot inputs"
    )

    encoder: Literal["gcn", "gin", "gat", "sage", "cheb"] = Field("gcn", description="kind of layers")
    layers: Positive = Field(3, le=1_000, description="number of layers")
    width: Positive = Field(256, le=65_536, description="width of every layer and of the embeddings")
    residual: bool = Field(True, description="add the input of a layer to its output")
    unit_norm: bool = Field(True, description="scale embeddings to length 1 after every layer")
    batch_norm: bool = Field(False, description="standardise the output of every layer over the nodes of a batch")
    dropout: float = Field(0.0, ge=0, lt=1, description="fraction of the outputs of a layer set to 0 in training")
    pair: Literal["concat", "symmetric"] = Field("symmetric", description="pair features of the link prediction head")
    linear_heads: bool = _added(False, False, description="heads without the paper's hidden layer")
    pool: str = _added("mean", "mean", description="pooling of graph heads: mean, sum, max, std, size, joined by +")

    inner_lr: Rate = Field(0.1, description="learning rate of the inner loop (α)")
    inner_steps: Positive = Field(1, le=10_000, description="steps of the inner loop")
    first_order: bool = Field(False, description="leave out second derivatives")
    adapts: Literal["all", "head"] = Field("all", description="parameters that the method `traditional` adapts")

    outer_lr: Rate = Field(2e-3, description="learning rate of the outer Adam (β)")
    weight_decay: NonNegative = Field(0.0, description="L2 penalty of the outer Adam")
    weighting: str = Field("fixed", description="fixed, uncertainty, gradnorm, balanced, or an aggregator of TorchJD")
    weights: dict[str, NonNegative] = Field({}, description="weight of each task (λ); 1 for tasks not named")
    clip: NonNegative = Field(10.0, description="maximum norm of the outer gradient; 0 for no maximum")
    average: float = Field(
        0.98, ge=0, lt=1, description="decay of the running mean of the parameters that is kept; 0 for none"
    )
    episodes_per_step: Positive = _added(1, 1, description="episodes per step, shared by the ranks")
    batch_size: Positive = Field(48, description="graphs per episode")
    max_epochs: Positive | None = Field(None, description="maximum number of epochs; by default 200, or 20,000 steps")
    max_seconds: Rate | None = _added(None, None, description="seconds of training after which it ends")
    validate_every: Positive = Field(5, description="epochs between validations")
    validation_episodes: Positive = Field(2, le=10_000, description="fixed episodes per validation")
    patience: Positive = Field(50, description="epochs without improvement before training stops")
    stop_on: Literal["loss", "linear"] = Field(
        "loss", description="validation losses that early stopping sums: the method's own, or those of linear heads"
    )

    @field_validator("tasks", mode="before")
    @classmethod
    def _split_tasks(cls, value: Any) -> Any:
        return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> "Config":
        """Reject malformed and contradictory settings; `Method.check` rejects those that contradict the method."""
        parse_pool(self.pool)
        if self.weighting != "fixed":
            if len(self.tasks) < 2:
                raise ValueError(f"weighting={self.weighting} balances several tasks, and there is only one")
            if self.weights:
                raise ValueError(f"weights go with weighting=fixed; {self.weighting} learns its own")
        return self

    @property
    def key(self) -> str:
        """A short hash of the configuration. A field counts only where it differs from its absent value."""
        values = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and values[name] == extra["absent"]:
                del values[name]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]

    def differences(self, other: "Config") -> str:
        """Return the fields in which another configuration differs, as `name: theirs, not ours`."""
        ours, theirs = self.model_dump(), other.model_dump()
        return "; ".join(f"{name}: {theirs[name]}, not {ours[name]}" for name in ours if ours[name] != theirs[name])


def parse_pool(text: str) -> tuple[str, ...]:
    """Return the poolings that a text names: one of `POOLS`, or several joined by `+`.

    >>> parse_pool("mean+size")
    ('mean', 'size')
    """
    kinds = tuple(text.split("+"))
    if not set(kinds) <= set(POOLS) or len(set(kinds)) < len(kinds):
        raise InputError(f"pool: {text!r} is not one of {', '.join(POOLS)}, or several of them joined by +")
    return kinds


def make_config(values: Mapping[str, Any], origin: str = "configuration") -> Config:
    """Build a configuration from some values and the defaults; a mistake raises a one-line `InputError`.

    Args:
        values: values by field name.
        origin: source of the values, named in errors.

    >>> make_config({"method": "isame", "tasks": "gc,lp"}).tasks
    ('gc', 'lp')
    >>> make_config({"widht": 64})
    Traceback (most recent call last):
    same.errors.InputError: configuration: there is no 'widht'; did you mean 'width'?
    """
    for name in values:
        if name not in Config.model_fields:
            close = difflib.get_close_matches(str(name), Config.model_fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; the fields are {', '.join(Config.model_fields)}"
            raise InputError(f"{origin}: there is no {name!r}{hint}")
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise InputError(f"{origin}: {first['ctx']['error']}") from None
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{origin}: {place}: {first['msg']}, not {first['input']!r}") from None


def read_config(path: Path) -> dict[str, Any]:
    """Read the values in a TOML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"{path}: cannot be read as {kind} ({error})") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected names and values")
    return values


def read_settings(source: Path) -> dict[str, Any]:
    """Read the values of a preset or of a configuration file."""
    return dict(PRESETS[str(source)]) if str(source) in PRESETS else read_config(source)


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse `key=value` from the command line; the value is JSON if it parses, else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: expected key=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()


def as_toml(config: Config) -> str:
    """Format a configuration as TOML, with a comment for each field."""
    parts = []
    for name, field in Config.model_fields.items():
        value = config.model_dump(mode="json")[name]
        choices = getattr(field.annotation, "__args__", ()) if isinstance(field.default, str) else ()
        comment = f"# {field.description}" + (f": {', '.join(choices)}" if choices else "")
        line = f"# {name} =" if value is None else f"{name} = {toml_value(value)}"
        parts.append(f"{comment}\n{line}\n")
    return "\n".join(parts)


def toml_value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
