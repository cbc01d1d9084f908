"""What a method is."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from same.config import Config
from same.episodes import Part
from same.errors import InputError
from same.methods.adapt import Params
from same.methods.registry import get
from same.tasks.task import Task

Scores = dict[str, tuple[float, float]]  # Loss and score by task.


class Method(ABC):
    """A way to train an encoder: what one step draws from the graphs, and one loss per task.

    A subclass is registered with `same.methods.register`; then its `name` works wherever a method is named.

    Attributes:
        name: name of the method.
        summary: one line about the method, for help.
        reference: where the method is described.
        draw: static function from (store, tasks, graph ids, generator) to what one step learns from.
        draw_validation: the same for a validation episode; None if it is drawn like a step.
        has_heads: whether training leaves a head for each task.
        trains: whether there is anything to train.
        adapts: parameters that the method adapts to a task; None if it does not adapt.
        first_order: whether the second derivatives are left out.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    draw: "ClassVar[staticmethod[..., Any]]"
    draw_validation: "ClassVar[staticmethod[..., Any] | None]" = None
    has_heads: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    adapts: Literal["all", "head"] | None = None
    first_order: bool = False

    @property
    def second_order(self) -> bool:
        """Whether training differentiates the encoder twice."""
        return self.adapts == "all" and not self.first_order

    @classmethod
    def from_config(cls, config: Config) -> "Method":
        """Build the method from a configuration."""
        return cls()

    @classmethod
    def check(cls, config: Config) -> None:
        """Reject settings that contradict the method."""
        if config.adapts != "all":
            raise InputError("adapts is an option of method=traditional")
        if config.weighting != "fixed" and not cls.has_heads:
            raise InputError(f"method={cls.name} has no task losses to weigh")

    @classmethod
    def first_phase(cls, config: Config) -> Config | None:
        """Return the configuration of a training that this one starts from, if any."""
        return None

    @abstractmethod
    def losses(self, model: Any, batch: Any) -> dict[str, Tensor]:
        """Return the losses to minimise, one per task, of what `draw` drew."""

    @abstractmethod
    def evaluate(self, model: Any, batch: Any) -> Scores:
        """Return loss and score by task of what `draw_validation` drew."""

    def parts(self, batch: Any) -> Iterable[Part]:
        """Return (task, support, target) for each task of what `draw` drew."""
        return [Part(*part) for part in batch] if self.has_heads else []

    def adapted(self, model: Any, batch: Any, task: Task) -> Params:
        """Return the parameters adapted to one task on a batch of (task, examples), used for prediction."""
        return {}

    def extend(self, model: nn.Module, width: int) -> None:
        """Add modules that only training needs to a new model with embeddings of this width."""
        return


def make_method(config: Config) -> Method:
    """Build the method of a configuration, after checking that the settings fit it.

    >>> make_method(Config(method="isame")).name
    'isame'
    """
    method: type[Method] = get(config.method)
    method.check(config)
    return method.from_config(config)
