"""The score of a trial, computed from its validations, and the rule that stops unpromising trials early."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

History = Sequence[dict[str, Any]]  # Validation records of a run, in order.
WINDOW = 2  # Number of validations before and after the best one that a score is averaged over.
MIN_TRIALS = 4  # Number of finished trials needed before the rule stops anything.
GRACE = 1 / 3  # Fraction of the median length of finished trials during which no trial is stopped.


def scores_so_far(history: History) -> list[float]:
    """Score of a run at each validation: mean over tasks, averaged around the best validation until then.

    The best validation is the one with the lowest objective, as in early stopping. The score is averaged over its
    neighbours because accuracy on fifty validation graphs jumps by several points between validations, and the
    maximum of many such numbers is mostly luck.
    """
    means = [mean(row["score"] for row in record["tasks"].values()) for record in history]
    best, scores = 0, []
    for i, record in enumerate(history):
        best = i if record["objective"] < history[best]["objective"] else best
        # Record 0 is the untrained model and never counts as a neighbour.
        first, last = max(best - WINDOW, min(best, 1)), min(best + WINDOW, i)
        scores.append(mean(means[first : last + 1]))
    return scores


@dataclass(frozen=True)
class MedianRule:
    """Stop a trial whose score is below the median score of earlier trials at the same epoch.

    Trials that were stopped early count with the last score they had. Otherwise the threshold would rise with
    every stopped trial.
    """

    thresholds: tuple[tuple[int, float], ...] = ()  # (epoch, median score) in order of epoch; empty to stop nothing

    @classmethod
    def from_trials(cls, done: Sequence[History] = (), stopped: Sequence[History] = ()) -> "MedianRule":
        """The rule that earlier trials imply for the next ones."""
        if len(done) < MIN_TRIALS:
            return cls()
        grace = GRACE * median(history[-1]["epoch"] for history in done)
        curves = [([record["epoch"] for record in history], scores_so_far(history)) for history in [*done, *stopped]]
        epochs = sorted({epoch for validated, _ in curves for epoch in validated[1:] if epoch >= grace})
        # A trial that ended before an epoch counts with its last score.
        medians = (median(scores[bisect(validated, epoch) - 1] for validated, scores in curves) for epoch in epochs)
        return cls(tuple(zip(epochs, medians, strict=True)))

    def __call__(self, history: History) -> bool:
        """Whether to stop a trial with this history now."""
        return self.cut(history) is not None

    def cut(self, history: History) -> History | None:
        """The history up to the point where the trial is stopped; None if it is not."""
        for end, (record, score) in enumerate(zip(history, scores_so_far(history), strict=True), start=1):
            passed = bisect(self.thresholds, record["epoch"], key=lambda threshold: threshold[0])
            if passed and score < self.thresholds[passed - 1][1]:
                return history[:end]
        return None
