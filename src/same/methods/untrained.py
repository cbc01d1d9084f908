"""No training: the encoder at its initialisation, a floor for every other method."""

from typing import Any, ClassVar

from torch import Tensor

from same.methods.base import Method, Scores


class Untrained(Method):
    """The encoder at its initialisation."""

    name: ClassVar[str] = "untrained"
    draw = staticmethod(lambda store, tasks, ids, rng: None)
    has_heads: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def losses(self, model: Any, batch: None) -> dict[str, Tensor]:
        """Return no losses."""
        return {}

    def evaluate(self, model: Any, batch: None) -> Scores:
        """Return no scores."""
        return {}
