import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from same.linear.calibration import calibrate, logits


def problem(k, n=300, scale=4.0, seed=0):
    """Overconfident logits, and the true classes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    y = np.array([rng.choice(k, p=p) for p in softmax(z, axis=1)])
    return scale * z, y


def loss(slope, z, y):
    return log_loss(y, softmax(slope * z, axis=1), labels=np.arange(z.shape[1]), normalize=False)


def test_logits_of_each_kind():
    f = np.array([-1.0, 2.0])
    assert logits("links", f, 2).tolist() == [[0, -1], [0, 2]]
    assert logits("classes", f, 2).tolist() == [[1, -1], [-2, 2]]
    assert logits("classes", f, 1).tolist() == [[-1], [2]]
    assert logits("classes", np.ones((2, 3)), 3).shape == (2, 3)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_it_recovers_the_temperature(k):
    z, y = problem(k, n=20_000)
    assert calibrate(z, y) == pytest.approx(1 / 4, rel=0.05)


def test_the_slope_of_links_is_that_of_a_logistic_regression():
    rng = np.random.default_rng(0)
    f = rng.normal(size=5000)
    y = (rng.random(5000) < softmax(logits("links", 3 * f, 2), axis=1)[:, 1]).astype(int)
    theirs = LogisticRegression(C=1e6, fit_intercept=False).fit(f[:, None], y)
    assert calibrate(logits("links", f, 2), y) == pytest.approx(theirs.coef_[0, 0], rel=1e-2)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n", [1, 3, 30, 300])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 50.0])
def test_the_log_loss_never_rises(k, n, scale):
    z, y = problem(k, n, scale, seed=n)
    slope = calibrate(z, y)
    assert slope > 0
    assert slope == calibrate(z, y)
    assert loss(slope, z, y) <= loss(1.0, z, y) + 1e-9


def test_labels_against_the_logits_never_turn_the_order():
    z, y = problem(2)
    assert 0 < calibrate(z, 1 - y) < 0.1


@pytest.mark.parametrize("case", ["separable", "one class", "one column", "no examples"])
def test_degenerate_examples_give_finite_numbers(case):
    z, y = {
        "separable": (np.array([[1.0, -1.0], [2.0, -2.0], [-1.0, 1.0]]), np.array([0, 0, 1])),
        "one class": (np.array([[1.0, -1.0], [-1.0, 2.0]]), np.array([1, 1])),
        "one column": (np.zeros((4, 1)), np.zeros(4, int)),
        "no examples": (np.empty((0, 3)), np.empty(0, int)),
    }[case]
    slope = calibrate(z, y)
    assert np.isfinite(slope)
    if case == "separable":
        assert slope > 1
        assert softmax(slope * z, axis=1).max() < 0.9999  # Three examples do not make it certain.
    elif case != "one class":
        assert slope == 1
