"""No training: the encoder at its initialisation, a floor for every other method."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from same.config import Config
from same.episodes import Part
from same.errors import InputError
from same.graphs.store import GraphStore
from same.methods.base import Method, Scores
from same.tasks.task import GraphTask


class Untrained(Method):
    """The encoder at its initialisation."""

    name: ClassVar[str] = "untrained"
    has_heads: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    @classmethod
    def check(cls, config: Config) -> None:
        """Reject weightings: there are no losses."""
        super().check(config)
        if config.weighting != "fixed":
            raise InputError(f"method={cls.name} has no task losses to weigh")

    @classmethod
    def epochs(cls, config: Config) -> int:
        """Return 0."""
        return 0

    def draw(self, store: GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator) -> None:
        """Draw nothing."""

    def losses(self, model: Any, batch: None) -> dict[str, Tensor]:
        """Return no losses."""
        return {}

    def evaluate(self, model: Any, batch: None) -> Scores:
        """Return no scores."""
        return {}

    def parts(self, batch: None) -> Iterable[Part]:
        """Return nothing."""
        return []
