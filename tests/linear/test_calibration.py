import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from same.linear.calibration import Calibration, calibrate, logits


def problem(k, n=300, scale=4.0, seed=0):
    """Overconfident logits, and the true classes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    y = np.array([rng.choice(k, p=p) for p in softmax(z, axis=1)])
    return scale * z, y


def loss(calibration, z, y):
    return log_loss(y, calibration.proba(z), labels=np.arange(z.shape[1]), normalize=False)


def test_logits_of_each_kind():
    f = np.array([-1.0, 2.0])
    assert logits("links", f, 2).tolist() == [[0, -1], [0, 2]]
    assert logits("classes", f, 2).tolist() == [[1, -1], [-2, 2]]
    assert logits("classes", f, 1).tolist() == [[-1], [2]]
    assert logits("classes", np.ones((2, 3)), 3).shape == (2, 3)
    np.testing.assert_allclose(Calibration(2.0, 1.0).proba(logits("links", f, 2))[:, 1], expit(2 * f + 1))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_it_recovers_the_temperature(k):
    z, y = problem(k, n=20_000)
    calibration = calibrate(z, y)
    assert calibration.slope == pytest.approx(1 / 4, rel=0.05)
    assert abs(calibration.offset) < 0.1
    assert k == 2 or calibration.offset == 0


def test_platt_scaling_of_links_is_a_logistic_regression():
    rng = np.random.default_rng(0)
    f = rng.normal(size=5000)
    y = (rng.random(5000) < expit(3 * f - 1)).astype(int)
    calibration = calibrate(logits("links", f, 2), y)
    theirs = LogisticRegression(C=1e6).fit(f[:, None], y)
    assert calibration.slope == pytest.approx(theirs.coef_[0, 0], rel=1e-2)
    assert calibration.offset == pytest.approx(theirs.intercept_[0], rel=1e-2)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n", [1, 3, 30, 300])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 50.0])
def test_the_log_loss_never_rises_and_probabilities_are_in_order(k, n, scale):
    z, y = problem(k, n, scale, seed=n)
    calibration = calibrate(z, y)
    assert calibration == calibrate(z, y)
    assert loss(calibration, z, y) <= loss(Calibration(), z, y) + 1e-9
    p = calibration.proba(z)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    # Monotone: a class whose logit grows becomes more probable.
    more = z.copy()
    more[:, 0] += 1
    assert (calibration.proba(more)[:, 0] >= p[:, 0]).all()


def test_labels_against_the_logits_never_turn_the_order():
    z, y = problem(2)
    calibration = calibrate(z, 1 - y)
    assert 0 < calibration.slope < 0.1


@pytest.mark.parametrize("case", ["separable", "one class", "one column", "no examples"])
def test_degenerate_examples_give_finite_numbers(case):
    z, y = {
        "separable": (np.array([[1.0, -1.0], [2.0, -2.0], [-1.0, 1.0]]), np.array([0, 0, 1])),
        "one class": (np.array([[1.0, -1.0], [-2.0, 2.0]]), np.array([1, 1])),
        "one column": (np.zeros((4, 1)), np.zeros(4, int)),
        "no examples": (np.empty((0, 3)), np.empty(0, int)),
    }[case]
    calibration = calibrate(z, y)
    assert np.isfinite(calibration).all()
    if case in ("separable", "one class"):
        assert loss(calibration, z, y) < loss(Calibration(), z, y)
        # Three examples do not make it certain.
        assert calibration.proba(z).max() < 0.9999
    else:
        assert calibration == Calibration()
    assert (calibration.proba(z[:, :1]) == 1).all()
