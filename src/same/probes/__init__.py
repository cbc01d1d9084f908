"""Probes: what embeddings are worth."""

from same.probes.evaluate import PROBES, Row, evaluate_run
from same.probes.metrics import Comparison, compare, delta_m, scores
from same.probes.network import NetworkProbe
from same.probes.svm import LinearSVM

__all__ = ["PROBES", "Comparison", "LinearSVM", "NetworkProbe", "Row", "compare", "delta_m", "evaluate_run", "scores"]
