"""What a method is."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from same.config import Config
from same.episodes import Part
from same.errors import InputError
from same.graphs.store import GraphStore
from same.methods.adapt import Params
from same.methods.registry import METHODS
from same.tasks.task import GraphTask, Task

Scores = dict[str, tuple[float, float]]
"""Loss and score by task."""


class Method(ABC):
    """A way to train an encoder: what one step draws from the graphs, and one loss per task.

    A subclass is registered with `same.methods.register`; then its `name` works wherever a method is named.
    """

    name: ClassVar[str]
    has_heads: ClassVar[bool] = True
    """Whether training leaves a head for each task."""
    trains: ClassVar[bool] = True
    """Whether there is anything to train."""
    caps: ClassVar[tuple[int, int]] = (1_000, 5_000)
    """The paper's maximum number of epochs, for one task and for several."""

    @property
    def summary(self) -> str:
        """One line about the method, for help and tables."""
        return METHODS[self.name].summary

    @property
    def reference(self) -> str:
        """Where the method is described."""
        return METHODS[self.name].reference

    @classmethod
    def from_config(cls, config: Config) -> "Method":
        """Build the method from a configuration."""
        return cls()

    @classmethod
    def check(cls, config: Config) -> None:
        """Reject settings that contradict the method."""
        if config.adapts != "all":
            raise InputError("adapts is an option of method=traditional")

    @classmethod
    def epochs(cls, config: Config) -> int:
        """Return the maximum number of epochs of a configuration."""
        return config.max_epochs or cls.caps[len(config.tasks) > 1]

    @classmethod
    def first_phase(cls, config: Config) -> Config | None:
        """Return the configuration of a training that this one starts from, if any."""
        return None

    @abstractmethod
    def draw(self, store: GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator) -> Any:
        """Draw what one step learns from.

        Args:
            store: set of graphs.
            tasks: tasks to learn.
            ids: graphs of the step, in random order.
            rng: generator of all draws.
        """

    def draw_validation(
        self, store: GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator
    ) -> Any:
        """Draw a validation episode; like a step of training by default."""
        return self.draw(store, tasks, ids, rng)

    @abstractmethod
    def losses(self, model: Any, batch: Any) -> dict[str, Tensor]:
        """Return the losses to minimise, one per task, of what `draw` drew."""

    @abstractmethod
    def evaluate(self, model: Any, batch: Any) -> Scores:
        """Return loss and score by task of what `draw_validation` drew."""

    def parts(self, batch: Any) -> Iterable[Part]:
        """Return (task, support, target) for each task of what `draw` drew."""
        return [Part(*part) for part in batch]

    def adapted(self, model: Any, batch: Any, task: Task) -> Params:
        """Return the parameters adapted to one task, used for prediction.

        Args:
            model: trained model.
            batch: (task, examples) of the training graphs.
            task: task to adapt to.
        """
        return {}

    def extend(self, model: nn.Module, width: int) -> None:
        """Add modules to a new model that are needed in training only.

        Args:
            model: model to extend.
            width: width of the embeddings.
        """
        return


def make_method(config: Config) -> Method:
    """Build the method of a configuration, after checking that the settings fit it.

    >>> make_method(Config(method="isame")).name
    'isame'
    """
    from same.methods.registry import get

    method: type[Method] = get(config.method)
    method.check(config)
    return method.from_config(config)
