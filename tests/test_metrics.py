import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import log_loss, roc_auc_score

from same.errors import InputError
from same.metrics import compare, cross_entropy, delta_m, logistic_loss, paired, roc_auc, scores


def test_scores_of_hand_made_examples():
    # Class 0: precision 1, recall 1/2; class 1: precision 2/3, recall 1; class 2 is never right.
    values = scores("classes", np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0]))
    assert list(values) == ["accuracy", "macro_f1"]
    assert values["accuracy"] == pytest.approx(3 / 5)
    assert values["macro_f1"] == pytest.approx((2 * (1 / 2) * (1 / 2) / 1 + 2 * (2 / 3) / (5 / 3) + 0) / 3)
    # Of 4 pairs (positive, negative) 3 are in order.
    values = scores("links", np.array([1, 1, 0, 0]), np.array([0.9, 0.3, 0.5, 0.1]))
    assert list(values) == ["roc_auc", "average_precision"]
    assert values["roc_auc"] == pytest.approx(3 / 4)
    assert values["average_precision"] == pytest.approx((1 / 1 + 2 / 3) / 2)
    values = scores("numbers", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    assert list(values) == ["r2", "mae"]
    assert values["r2"] == pytest.approx(1 - 1 / 2)
    assert values["mae"] == pytest.approx(1 / 3)


def test_links_of_one_kind_cannot_be_scored():
    with pytest.raises(InputError, match="needs both edges and non-edges"):
        scores("links", np.ones(3), np.ones(3))


def test_cross_entropy_is_the_log_loss_of_a_softmax():
    rng = np.random.default_rng(0)
    for k in (2, 4):
        y, decision, classes = rng.integers(k, size=30), rng.normal(size=(30, k)), np.arange(k)
        if k == 2:
            decision = decision[:, 0]
        predicted = special.softmax(decision if k > 2 else np.c_[-decision, decision], axis=1)
        expected = log_loss(y, predicted, labels=classes, normalize=False)
        assert cross_entropy(y, decision, classes) == pytest.approx(expected)
        # Other names of classes, and two that no training row has: they are left out.
        more = np.r_[5 + y * 3, 4, 99]
        rows = np.concatenate([decision, decision[:2]])
        assert cross_entropy(more, rows, 5 + classes * 3) == pytest.approx(expected)
    assert cross_entropy(np.array([7, 7]), np.array([-3.0, 3.0]), np.array([7])) == 0


def test_logistic_loss_is_the_log_loss_of_a_sigmoid():
    rng = np.random.default_rng(0)
    y, decision = rng.integers(2, size=30), 3 * rng.normal(size=30)
    assert logistic_loss(y, decision) == pytest.approx(log_loss(y, special.expit(decision), normalize=False))
    assert logistic_loss(np.array([0.0, 1.0]), np.array([-1e4, 1e4])) == 0
    assert logistic_loss(np.array([1]), np.array([-1e4])) == pytest.approx(1e4)


def test_delta_m_of_the_papers_definition():
    # (48.3 - 51.6) / 51.6 = -6.3953 %, (85.3 - 87.5) / 87.5 = -2.5143 %; their mean is -4.4548 %.
    assert delta_m([48.3, 85.3], [51.6, 87.5]) == pytest.approx(-4.4548, abs=1e-4)
    with pytest.raises(InputError):
        delta_m([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="must be positive"):
        delta_m([0.1], [-0.5])


def test_scores_are_paired_on_the_splits_that_all_models_have():
    assert paired({0: 0.5, 1: 0.6, 2: 0.7}, {2: 0.9, 1: 0.8}) == [[0.6, 0.7], [0.8, 0.9]]


def test_the_corrected_t_test_by_hand():
    a, b = [0.80, 0.82, 0.78, 0.85], [0.75, 0.80, 0.77, 0.79]
    d = np.subtract(a, b)
    t = d.mean() / np.sqrt((1 / 4 + 0.2 / 0.7) * d.var(ddof=1))
    comparison = compare(a, b)
    assert comparison.mean == pytest.approx(0.035)
    assert comparison.t_test == pytest.approx(2 * stats.t.sf(t, 3))
    # The plain t-test takes overlapping training sets for independent, and is too sure of itself.
    assert comparison.t_test > stats.ttest_rel(a, b).pvalue
    assert comparison.wilcoxon == pytest.approx(stats.wilcoxon(d).pvalue)


def test_comparisons_at_the_edges():
    assert compare([0.5], [0.4]).t_test == 1.0
    same = compare([0.5, 0.6], [0.5, 0.6])
    assert (same.mean, same.t_test, same.wilcoxon) == (0.0, 1.0, 1.0)
    # One graph more in each of five splits: there are 2^5 ways to sign them, two as extreme.
    assert compare([0.5] * 5, [0.4] * 5).t_test == pytest.approx(2 / 2**5)
    assert compare([0.5] * 6, [0.4] * 6).beyond_noise()
    assert not compare([0.5, 0.6], [0.45, 0.55]).beyond_noise()
    with pytest.raises(InputError, match="the same splits: 2 and 1"):
        compare([1, 2], [1])


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 9))
def test_the_area_under_the_curve_is_that_of_scikit_learn(seed, n, levels):
    rng = np.random.default_rng(seed)
    y, decision = rng.integers(2, size=n), rng.integers(levels, size=n).astype(np.float32)  # With ties.
    y[:2] = 0, 1
    assert roc_auc(y, decision) == pytest.approx(roc_auc_score(y, decision), abs=1e-12)
