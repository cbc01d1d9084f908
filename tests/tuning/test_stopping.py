import numpy as np
import pytest

from same.tuning.stopping import MedianRule, scores_so_far
from tuning.searches import make_history


def test_scores_are_averaged_around_the_lowest_loss():
    noisy = make_history([0.1, 0.2, 0.6, 0.4, 0.5, 0.6, 0.9], losses=[9, 5, 4, 3, 4, 5, 6])
    assert scores_so_far(noisy)[-1] == pytest.approx(np.mean([0.2, 0.6, 0.4, 0.5, 0.6]))
    assert scores_so_far(make_history([0.5])) == [0.5]
    assert scores_so_far(make_history([0.5, 0.1], losses=[1, 2]))[-1] == pytest.approx(0.3)


def test_median_rule():
    done = [make_history([0, s, s, s, s]) for s in (0.2, 0.4, 0.6, 0.8)]
    assert MedianRule.from_trials(done[:3]) == MedianRule()
    assert MedianRule().cut(make_history([0, 0, 0])) is None
    rule = MedianRule.from_trials(done)
    assert [epoch for epoch, _ in rule.thresholds] == [10, 15, 20]
    assert {threshold for _, threshold in rule.thresholds} == {0.5}
    assert rule.cut(make_history([0, 0.5, 0.5])) is None
    assert len(rule.cut(make_history([0, 0.6, 0.1, 0.1, 0.1], losses=[9, 8, 7, 6, 5]))) == 3
    assert rule(make_history([0, 0.4, 0.4]))
    assert not rule(make_history([0, 0.4]))
    # A trial that ended early keeps its last score, and there is a grace period.
    late = MedianRule.from_trials([*done[1:], make_history([0, 0.9])])
    assert late.thresholds[-1] == (20, pytest.approx(0.7))
    assert MedianRule.from_trials(done, [make_history([0, 0.1, 0.1])]).thresholds[-1] == (20, pytest.approx(0.4))
    slow = MedianRule.from_trials([make_history([0] * 4 + [s] * 15) for s in (0.2, 0.4, 0.6, 0.8)])
    assert slow.thresholds[0][0] == 30
