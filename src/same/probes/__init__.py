"""Probes: scores of frozen embeddings and of a model's own heads, next to floors."""

from same.probes.evaluate import PROBES, Evaluation, Score, evaluate_run
from same.probes.network import NetworkProbe

__all__ = ["PROBES", "Evaluation", "NetworkProbe", "Score", "evaluate_run"]
