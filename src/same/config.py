"""The configuration of a run: typed, validated, printed and saved. A run is its configuration."""

import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from same.errors import InputError
from same.names import METHODS

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

FIRST_TASKS = ("gc", "nc", "lp")
"""What fine-tuning is trained on first."""


PRESETS: dict[str, dict[str, Any]] = {
    # By linear probes on validation graphs; see docs/beyond.md.
    "sage-walk": {
        "method": "classical",
        "encoder": "sage",
        "walk": 16,
        "linear_heads": True,
        "max_epochs": 200,
        "patience": 100,
        "stop_on": "score",
    },
}
"""Settings that go well together: `same train --config sage-walk`, `same.SAME(**same.PRESETS["sage-walk"])`."""

__all__ = [
    "FIRST_TASKS",
    "METHODS",
    "PRESETS",
    "Config",
    "as_toml",
    "first_config",
    "make_config",
    "parse_setting",
    "read_config",
    "read_settings",
]

_META = ("isame", "esame", "traditional")


class Config(BaseModel):
    """Everything that decides what a run computes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str = Field("planted", description="name of a set, or folder or zip in TU format")
    method: Literal["isame", "esame", "classical", "finetuned", "traditional", "infomax", "untrained"] = Field(
        "esame", description="how to train"
    )
    tasks: tuple[str, ...] = Field(("gc", "nc", "lp"), description="what to learn")
    split: int = Field(0, ge=0, le=9, description="which of the ten splits")
    seed: int = Field(0, ge=0, description="of splits, initialisation, episodes and probes")

    scaling: Literal["standardise", "row", "both", "none"] = Field("standardise", description="of the attributes")
    degree: int = Field(16, ge=0, le=10_000, description="one-hot degree up to this, as a further input; 0 for none")
    walk: int = Field(0, ge=0, le=1_000, description="random-walk return probabilities, as further inputs; 0 for none")

    encoder: Literal["gcn", "gin", "gat", "sage", "cheb"] = Field("gcn", description="kind of layers")
    layers: Positive = Field(3, le=1_000, description="how many")
    width: Positive = Field(256, le=65_536, description="of every layer and of the embeddings")
    residual: bool = Field(True, description="add a layer's input to its output")
    unit_norm: bool = Field(True, description="scale embeddings to length 1 after every layer")
    batch_norm: bool = Field(False, description="standardise every layer's output over the nodes of a batch")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of numbers set to 0 in training")
    pair: Literal["concat", "symmetric"] = Field(
        "symmetric", description="what link prediction's head sees of two nodes"
    )
    linear_heads: bool = Field(
        False, description="heads without the paper's hidden layer, so that embeddings are trained for linear probes"
    )

    inner_lr: Rate = Field(0.1, description="rate of the inner loop (α)")
    inner_steps: Positive = Field(1, le=10_000, description="steps of the inner loop")
    first_order: bool = Field(False, description="leave out second derivatives")
    learn_inner_lr: bool = Field(False, description="learn an inner rate for each parameter")
    adapts: Literal["all", "heads"] = Field("all", description="what the inner loop of `traditional` adapts")

    outer_lr: Rate = Field(2e-3, description="rate of Adam in the outer loop (β)")
    weight_decay: NotNegative = Field(0.0, description="of Adam, added to the gradient")
    weighting: str = Field("fixed", description="fixed, uncertainty, gradnorm, or an aggregator of TorchJD")
    weights: dict[str, NotNegative] = Field({}, description="λ by task; 1 for those not named")
    clip: NotNegative = Field(10.0, description="greatest norm of the outer gradient; 0 for any")
    average: float = Field(
        0.98,
        ge=0,
        lt=1,
        description="decay of the running mean of the weights that is validated and kept; 0: none",
    )
    episodes_per_step: Positive = Field(
        1, description="episodes whose gradients a step averages; ranks share them, and one each is their default"
    )
    batch_size: Positive = Field(48, description="graphs an episode")
    max_epochs: Positive | None = Field(None, description="passes over the training graphs; none: the paper's caps")
    validate_every: Positive = Field(5, description="epochs between validations")
    validation_episodes: Positive = Field(2, le=10_000, description="fixed episodes a validation uses")
    patience: Positive = Field(50, description="epochs without a better validation before stopping")
    stop_on: Literal["loss", "score"] = Field("loss", description="weighted sum over tasks that early stopping watches")

    @property
    def weighable(self) -> tuple[str, ...]:
        """The tasks whose losses training sees: fine-tuning begins with all three."""
        return tuple(dict.fromkeys(self.tasks + FIRST_TASKS)) if self.method == "finetuned" else self.tasks

    @field_validator("tasks", mode="before")
    @classmethod
    def _split_tasks(cls, value: Any) -> Any:
        return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _make_sense(self) -> "Config":
        """Refuses what is well-formed and makes no sense."""
        many, learned = len(self.tasks) > 1, self.weighting != "fixed"
        meta, aggregated = self.method in _META, self.weighting not in ("fixed", "uncertainty", "gradnorm")
        refusals = {
            "fine-tuning on all three tasks is classical training; name one or two": (
                self.method == "finetuned" and set(self.tasks) >= set(FIRST_TASKS)
            ),
            f"weighting={self.weighting} balances several tasks, and there is only one": learned and not many,
            f"weights go with weighting=fixed; {self.weighting} finds its own": learned and self.weights,
            f"method={self.method} has no task losses to weigh": learned and self.method in ("infomax", "untrained"),
            f"weighting={self.weighting}: aggregators of gradients are for classical training": aggregated and meta,
            f"learn_inner_lr: method={self.method} has no inner loop": self.learn_inner_lr and not meta,
            "learn_inner_lr needs second derivatives: not with first_order": self.learn_inner_lr and self.first_order,
            "adapts is an option of method=traditional": self.adapts != "all" and self.method != "traditional",
        }
        for reason, refused in refusals.items():
            if refused:
                raise ValueError(reason)
        return self

    @property
    def epochs(self) -> int:
        """The most epochs the run takes: the paper's caps, unless it is told."""
        if self.method == "untrained":
            return 0
        one, many = (5_000, 15_000) if self.method in _META else (1_000, 5_000)
        return self.max_epochs or (one if len(self.tasks) == 1 else many)

    @property
    def key(self) -> str:
        """A short hash of the whole configuration."""
        values = self.model_dump(mode="json")
        for name, before in (("episodes_per_step", 1), ("linear_heads", False)):
            if values[name] == before:
                del values[name]  # Runs from before there was a choice keep their keys.
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def differences(self, other: "Config") -> str:
        """What another configuration has different, as `name: this, not that`."""
        ours, theirs = self.model_dump(), other.model_dump()
        return "; ".join(f"{name}: {theirs[name]}, not {ours[name]}" for name in ours if ours[name] != theirs[name])


def first_config(config: Config) -> Config:
    """What fine-tuning starts from: classical training on three tasks."""
    return config.model_copy(update={"method": "classical", "tasks": FIRST_TASKS})


def make_config(values: Mapping[str, Any], origin: str = "configuration") -> Config:
    """A configuration from some values; the others are defaults. What is wrong is said in one line.

    >>> make_config({"method": "isame", "tasks": "gc,lp"}).tasks
    ('gc', 'lp')
    >>> make_config({"widht": 64})
    Traceback (most recent call last):
    same.errors.InputError: configuration: there is no 'widht'; did you mean 'width'?
    """
    for name in values:
        if name not in Config.model_fields:
            close = difflib.get_close_matches(str(name), Config.model_fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(Config.model_fields)}"
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
    """The values in a configuration file, TOML or JSON."""
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as {'JSON' if path.suffix == '.json' else 'TOML'} ({error})"
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected names and values")
    return values


def read_settings(given: Path) -> dict[str, Any]:
    """The values of a preset, or those in a configuration file.

    >>> read_settings(Path("sage-walk"))["encoder"]
    'sage'
    """
    return dict(PRESETS[str(given)]) if str(given) in PRESETS else read_config(given)


def parse_setting(text: str) -> tuple[str, Any]:
    """`key=value` from the command line; the value is JSON where it can be, and text otherwise.

    >>> parse_setting("width=64"), parse_setting("encoder=gin")
    (('width', 64), ('encoder', 'gin'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: expected key=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()


def as_toml(config: Config) -> str:
    """The configuration as a TOML file, each key with what it means.

    >>> print(as_toml(Config(seed=3)).splitlines()[1])
    dataset = "planted"
    """
    parts = []
    for name, field in Config.model_fields.items():
        value = config.model_dump(mode="json")[name]
        choices = getattr(field.annotation, "__args__", ()) if isinstance(field.default, str) else ()
        about = f"# {field.description}" + (f": {', '.join(choices)}" if choices else "")
        line = f"# {name} =" if value is None else f"{name} = {toml_value(value)}"
        parts.append(f"{about}\n{line}\n")
    return "\n".join(parts)


def toml_value(value: Any) -> str:
    """A value as TOML, which writes texts, numbers, truth and lists as JSON does.

    >>> toml_value({"gc": [1.5, True]})
    '{"gc" = [1.5, true]}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
