"""How good a trial is, from its validations, and which trials are not worth going on with."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

History = Sequence[dict[str, Any]]
"""What the validations of a run found, see `same.training`."""

WINDOW = 2
"""A trial's score is averaged over the best validation and so many before and after it."""

ENOUGH = 4
"""So many trials must be done before others are measured against them."""

GRACE = 1 / 3
"""No trial is given up in this part of the time that those that are done took."""


def scores_so_far(history: History) -> list[float]:
    """The score that a run had at each validation: the mean over its tasks, around the best validation until then.

    Which validation is best is told by the loss, as early stopping has it, and the score is a mean over its neighbours:
    the accuracy on some fifty validation graphs jumps by several points from one validation to the next, and the best
    of many such numbers is mostly luck.

    >>> made = [{"objective": o, "tasks": {"gc": {"score": s}}} for o, s in [(3, 0.1), (2, 0.5), (1, 0.9), (2, 0.7)]]
    >>> [round(score, 3) for score in scores_so_far(made)]
    [0.1, 0.5, 0.7, 0.7]
    """
    means = [mean(row["score"] for row in record["tasks"].values()) for record in history]
    best, found = 0, []
    for i, record in enumerate(history):
        best = i if record["objective"] < history[best]["objective"] else best
        # The first record is that of the untrained model: no neighbour of the others.
        first, last = max(best - WINDOW, min(best, 1)), min(best + WINDOW, i)
        found.append(mean(means[first : last + 1]))
    return found


@dataclass(frozen=True)
class MedianRule:
    """Give a trial up once its score so far is below the median of what those before it had by the same epoch.

    Trials that were given up themselves count with what they had: if only those that were done did, the bar would rise
    with every trial that does not reach it.

    Attributes:
        bars: (epoch, median) in order; empty for a rule that lets everything pass.
    """

    bars: tuple[tuple[int, float], ...] = ()

    @classmethod
    def from_trials(cls, done: Sequence[History], given_up: Sequence[History] = ()) -> "MedianRule":
        """The rule that trials set for those after them."""
        if len(done) < ENOUGH:
            return cls()
        grace = GRACE * median(history[-1]["epoch"] for history in done)
        curves = [([record["epoch"] for record in history], scores_so_far(history)) for history in [*done, *given_up]]
        epochs = sorted({epoch for known, _ in curves for epoch in known[1:] if epoch >= grace})
        # A trial that had ended by an epoch keeps what it had.
        return cls(tuple((e, median(scores[bisect(known, e) - 1] for known, scores in curves)) for e in epochs))

    def __call__(self, history: History) -> bool:
        """Whether to give up a trial with this history."""
        return self._below(history[-1]["epoch"], scores_so_far(history)[-1])

    def cut(self, history: History) -> History | None:
        """The history up to where the trial was, or should have been, given up; None if it passes."""
        for end, (record, score) in enumerate(zip(history, scores_so_far(history), strict=True), start=1):
            if self._below(record["epoch"], score):
                return history[:end]
        return None

    def _below(self, epoch: int, score: float) -> bool:
        passed = bisect(self.bars, epoch, key=lambda bar: bar[0])
        return passed > 0 and score < self.bars[passed - 1][1]
