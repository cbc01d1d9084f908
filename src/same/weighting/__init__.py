"""Weightings: from the losses of several tasks to one update."""

from collections.abc import Mapping, Sequence

from same.weighting.balanced import Balanced
from same.weighting.gradnorm import GradNorm
from same.weighting.jacobian import Jacobian
from same.weighting.uncertainty import Uncertainty
from same.weighting.weighting import Weighting


def make_weighting(name: str, tasks: Sequence[str], weights: Mapping[str, float] | None = None) -> Weighting:
    """Build a weighting by name: `fixed`, `uncertainty`, `gradnorm`, `balanced`, or an aggregator of TorchJD.

    >>> make_weighting("uncertainty", ["gc", "nc"]).weigh
    <bound method Uncertainty.weigh of Uncertainty(...
    """
    if name == "fixed":
        return Weighting(weights)
    if name == "uncertainty":
        return Uncertainty(tasks)
    if name == "gradnorm":
        return GradNorm(tasks)
    if name == "balanced":
        return Balanced(tasks)
    return Jacobian(name)


__all__ = ["Balanced", "GradNorm", "Jacobian", "Uncertainty", "Weighting", "make_weighting"]
