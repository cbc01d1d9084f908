"""Scores and losses of predictions, and comparisons of scores over splits."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from same.errors import InputError

Array = np.ndarray
Kind = Literal["classes", "links", "numbers"]
"""Kind of a task's labels: one of several classes, edge or no edge for a pair of nodes, or numbers."""


def scores(kind: Kind, y: Array, predicted: Array) -> dict[str, float]:
    """Scores of predictions by metric, the main metric first.

    Args:
        kind: kind of task.
        y: true labels.
        predicted: classes, decision values of links, or numbers.

    >>> scores("classes", np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]))["accuracy"]
    0.75
    """
    from sklearn import metrics

    if kind == "classes":
        f1 = metrics.f1_score(y, predicted, average="macro", zero_division=0)
        return {"accuracy": float(np.mean(y == predicted)), "macro_f1": float(f1)}
    if kind == "links":
        if len(np.unique(y)) < 2:
            raise InputError("link prediction: a score needs both edges and non-edges")
        average = metrics.average_precision_score(y, predicted)
        return {"roc_auc": roc_auc(y, predicted), "average_precision": float(average)}
    return {"r2": float(metrics.r2_score(y, predicted)), "mae": float(metrics.mean_absolute_error(y, predicted))}


def roc_auc(y: Array, decision: Array) -> float:
    """Area under the ROC curve, from ranks: many times as fast as scikit-learn's on a few thousand pairs.

    >>> roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    from scipy.stats import rankdata

    positive = np.asarray(y) > 0
    p, n = int(positive.sum()), int((~positive).sum())
    return float((rankdata(decision)[positive].sum() - p * (p + 1) / 2) / (p * n))


def cross_entropy(y: Array, decision: Array, classes: Array) -> float:
    """−Σ log softmax(decision)[y], leaving out y not in the sorted `classes`; the decisions are [n] for two classes."""
    from scipy.special import log_softmax

    values = np.stack([-decision, decision], axis=1)[:, -len(classes) :] if decision.ndim == 1 else decision
    present = np.isin(y, classes)
    return float(-log_softmax(values, axis=1)[present, np.searchsorted(classes, y[present])].sum())


def logistic_loss(y: Array, decision: Array) -> float:
    """Σ log(1 + exp(−s decision)), s = 1 where y > 0 and −1 elsewhere."""
    return float(np.logaddexp(0, np.where(y > 0, -decision, decision)).sum())


def delta_m(model: Sequence[float], baseline: Sequence[float]) -> float:
    """Δm = 1/T Σ (M_m,i − M_b,i) / M_b,i, in percent: the mean relative gain of a model over single-task baselines.

    Args:
        model: M_m, the model's score on each task.
        baseline: M_b, the score on each task of a classical model trained for that task alone, on the same split.

    >>> round(delta_m([0.55, 0.81], [0.50, 0.90]), 6)
    0.0
    """
    if len(model) != len(baseline) or not len(model):
        raise InputError("Δm needs a baseline for each task")
    if min(baseline) <= 0:
        raise InputError(f"Δm is relative to its baselines, which must be positive, not {min(baseline)}")
    return 100 * sum((m - b) / b for m, b in zip(model, baseline, strict=True)) / len(model)


class Comparison(NamedTuple):
    """Mean difference between two models over the same splits, p values of a t-test and of the signed-rank test."""

    mean: float
    t_test: float
    wilcoxon: float
    splits: int

    def beyond_noise(self, level: float = 0.05) -> bool:
        """Whether the t-test rejects chance at this level; never with fewer than five splits."""
        return self.splits >= 5 and self.t_test < level


def paired(*scores: Mapping[int, float]) -> list[list[float]]:
    """Scores of several models on the splits that all of them have, in the order of the splits."""
    shared = sorted(set.intersection(*map(set, scores)))
    return [[values[k] for k in shared] for values in scores]


def compare(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Test the differences a − b, split by split, against chance.

    The t statistic is corrected for overlapping training sets (Nadeau & Bengio, 2003):

        t = mean(d) / sqrt((1/k + n_test/n_train) var(d)),   k − 1 degrees of freedom,   n_test/n_train = 2/7

    Args:
        a: scores of one model, one per split.
        b: scores of the other on the same splits.

    >>> compare([0.9, 0.8, 0.85], [0.7, 0.65, 0.6]).mean
    0.2
    """
    from scipy import stats

    if len(a) != len(b):
        raise InputError(f"a comparison needs the same splits: {len(a)} and {len(b)}")
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    mean = round(float(d.mean()), 12) + 0.0 if len(d) else float("nan")  # + 0.0: never −0.
    if len(d) < 2 or np.abs(d).max() <= 1e-12:
        return Comparison(mean, 1.0, 1.0, len(d))
    wilcoxon = float(stats.wilcoxon(d).pvalue)
    if np.ptp(d) <= 1e-12:  # Equal differences, such as one graph on every split: t has no spread to divide by.
        return Comparison(mean, wilcoxon, wilcoxon, len(d))
    t = d.mean() / np.sqrt((1 / len(d) + 2 / 7) * d.var(ddof=1))
    return Comparison(mean, float(2 * stats.t.sf(abs(t), len(d) - 1)), wilcoxon, len(d))
