"""The configuration of a run: typed, validated, printed and saved. A run is its configuration."""

import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from same.errors import InputError

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

METHODS = {
    "isame": "adapts encoder and head to each task in the inner loop, as MAML does (iSAME, Algorithm 1)",
    "esame": "adapts only the head in the inner loop, as ANIL does (eSAME, Algorithm 1)",
}
"""What can be trained, with one line each."""

# The paper's caps: 5,000 epochs for one task, 15,000 for several.
_MAX_EPOCHS = {1: 5_000}
_MAX_EPOCHS_MANY = 15_000


class Config(BaseModel):
    """Everything that decides what a run computes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str = Field("planted", description="name of a set, or folder or zip in TU format")
    method: Literal["isame", "esame"] = Field("esame", description="how to train")
    tasks: tuple[str, ...] = Field(("gc", "nc", "lp"), description="what to learn")
    split: int = Field(0, ge=0, le=9, description="which of the ten splits")
    seed: int = Field(0, ge=0, description="of splits, initialisation, episodes and probes")

    scaling: Literal["standardise", "row", "none"] = Field("standardise", description="of the attributes")
    degree: int = Field(0, ge=0, description="one-hot degree up to this, as a further input; 0 for none")
    walk: int = Field(0, ge=0, description="random-walk return probabilities, as further inputs; 0 for none")

    encoder: Literal["gcn", "gin", "gat", "sage", "cheb"] = Field("gcn", description="kind of layers")
    layers: Positive = Field(3, description="how many")
    width: Positive = Field(256, description="of every layer and of the embeddings")
    residual: bool = Field(True, description="add a layer's input to its output")
    unit_norm: bool = Field(True, description="scale embeddings to length 1 after every layer")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of numbers set to 0 in training")
    pair: Literal["concat", "symmetric"] = Field(
        "symmetric", description="what link prediction's head sees of two nodes"
    )

    inner_lr: Rate = Field(0.1, description="rate of the inner loop (α)")
    inner_steps: Positive = Field(1, description="steps of the inner loop")
    first_order: bool = Field(False, description="leave out second derivatives")
    learn_inner_lr: bool = Field(False, description="learn an inner rate for each parameter")

    outer_lr: Rate = Field(2e-3, description="rate of Adam in the outer loop (β)")
    weight_decay: NotNegative = Field(0.0, description="of Adam, added to the gradient")
    weights: dict[str, NotNegative] = Field({}, description="λ by task; 1 for those not named")
    clip: NotNegative = Field(10.0, description="greatest norm of the outer gradient; 0 for any")
    batch_size: Positive = Field(48, description="graphs an episode")
    max_epochs: Positive | None = Field(None, description="passes over the training graphs; none: the paper's caps")
    validate_every: Positive = Field(5, description="epochs between validations")
    validation_episodes: Positive = Field(2, description="fixed episodes a validation uses")
    patience: Positive = Field(100, description="epochs without a better validation before stopping")
    stop_on: Literal["loss", "score"] = Field("loss", description="sum over tasks that early stopping watches")

    @field_validator("tasks", mode="before")
    @classmethod
    def _split_tasks(cls, value: Any) -> Any:
        return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value

    @property
    def epochs(self) -> int:
        """The most epochs the run takes."""
        return self.max_epochs or _MAX_EPOCHS.get(len(self.tasks), _MAX_EPOCHS_MANY)

    @property
    def key(self) -> str:
        """A short hash of the whole configuration."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def differences(self, other: "Config") -> str:
        """What another configuration has different, as `name: this, not that`."""
        ours, theirs = self.model_dump(), other.model_dump()
        return "; ".join(f"{name}: {theirs[name]}, not {ours[name]}" for name in ours if ours[name] != theirs[name])


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
