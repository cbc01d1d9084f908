import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from same.errors import InputError
from same.linear import GRID, LinearSVM, Ridge, fit_linear, predict_linear


def problem(kind, seed=0):
    """Training and validation features and labels; noisy enough that a small C is best."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(160, 20))
    signal = x[:, :3] + 2 * rng.normal(size=(160, 3))
    y = {"classes": signal.argmax(1), "links": (signal[:, 0] > 0).astype(np.float32), "numbers": signal[:, :2]}[kind]
    return (x[:80], y[:80]), (x[80:], y[80:])


@pytest.mark.parametrize("kind", ["classes", "links", "numbers"])
def test_c_is_the_one_with_the_least_validation_loss(kind):
    """A literal transcription with scikit-learn."""
    (x, y), (x_val, y_val) = problem(kind)
    scaler = StandardScaler().fit(x)
    losses = []
    for c in GRID:
        if kind == "numbers":
            wrong = SklearnRidge(1 / c).fit(scaler.transform(x), y).predict(scaler.transform(x_val)) - y_val
            losses.append(np.square(wrong / y.std(0)).sum())
        else:
            svm = LinearSVC(C=c, tol=1e-8, max_iter=1_000_000).fit(scaler.transform(x), y)
            decision = svm.decision_function(scaler.transform(x_val))
            # Logistic loss for links, cross entropy of a softmax for classes.
            p = softmax(decision, axis=1) if kind == "classes" else 1 / (1 + np.exp(-decision))
            losses.append(log_loss(y_val, p, normalize=False))
    best = GRID[int(np.argmin(losses))]
    assert best != 1  # The test would notice if nothing were chosen.
    model = fit_linear(kind, x, y, (x_val, y_val))
    assert (1 / model.penalty if kind == "numbers" else model.C) == pytest.approx(best)


@pytest.mark.parametrize("kind", ["classes", "links", "numbers"])
def test_without_validation_c_is_one(kind):
    (x, y), (x_val, _) = problem(kind)
    model = fit_linear(kind, x, y)
    plain = Ridge(1.0).fit(x, y) if kind == "numbers" else LinearSVM(1.0).fit(x, y)
    expected = plain.decision_function(x_val) if kind == "links" else plain.predict(x_val)
    assert np.array_equal(predict_linear(kind, model, x_val), expected)


def test_units_of_targets_do_not_change_the_choice():
    (x, y), (x_val, y_val) = problem("numbers")
    units = np.array([1000.0, 1e-3])
    plain, other = (fit_linear("numbers", x, a, (x_val, b)) for a, b in ((y, y_val), (y * units, y_val * units + 0)))
    assert plain.penalty == other.penalty


def test_the_smallest_c_of_equals_and_no_examples():
    x = np.random.default_rng(0).normal(size=(10, 2))
    model = fit_linear("classes", x, np.full(10, 3), (x, np.full(10, 3)))
    assert min(GRID) == model.C
    with pytest.raises(InputError, match="no validation examples to choose C by"):
        fit_linear("classes", x, np.full(10, 3), (x[:0], np.empty(0)))
