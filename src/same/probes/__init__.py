"""Probes: scores of frozen embeddings and of a model's own heads, next to floors."""

from same.probes.evaluate import PROBES, Evaluation, Score, evaluate_run

__all__ = ["PROBES", "Evaluation", "Score", "evaluate_run"]
