import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from same.config import Config
from same.errors import InputError
from same.experiment import prepare
from same.linear import GRID, rows, svm
from same.linear.svm import LinearSVM, fit_path


def objective(w, rows, y, c):
    """½ ‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ)²."""
    return 0.5 * w @ w + c * np.square(np.maximum(0, 1 - y * (rows @ w))).sum()


def assert_as_good_as_sklearn(x, y, x_test, c=1.0):
    """The objective is at most scikit-learn's, and at most one prediction in a thousand differs."""
    ours = LinearSVM(c).fit(x, y)
    scaler = StandardScaler().fit(x.astype(np.float64))
    theirs = LinearSVC(C=c, tol=1e-8, max_iter=200_000, random_state=0).fit(scaler.transform(x.astype(np.float64)), y)
    features = ours.scaler_.rows(x)
    for i, w in enumerate(ours.coef_):
        sign = np.where(y == ours.classes_[1 if len(ours.classes_) == 2 else i], 1.0, -1.0)
        w_theirs = np.r_[theirs.coef_[i], theirs.intercept_[i]]
        assert objective(w, features, sign, c) <= objective(w_theirs, features, sign, c) * (1 + 1e-9)
    agree = ours.predict(x_test) == theirs.predict(scaler.transform(x_test.astype(np.float64)))
    assert agree.mean() >= 0.999


def test_decisions_are_bit_identical_for_any_number_of_threads():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((30_000, 513))
    model = LinearSVM().fit(x[:600], x[:600, 0] + draw.standard_normal(600) > 0)
    decisions = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            decisions.append(model.decision_function(x))
    assert np.array_equal(decisions[0], decisions[1])
    assert np.array_equal(decisions[0], decisions[2])


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
def test_many_classes(c):
    x, y = load_digits(return_X_y=True)
    assert_as_good_as_sklearn(x[:500], y[:500], x[500:], c)


def test_two_classes_and_other_names():
    x, y = load_digits(return_X_y=True)
    names = np.where(y % 2 == 0, "even", "odd")
    assert_as_good_as_sklearn(x[:1200], names[:1200], x[1200:])


def test_separable_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    assert_as_good_as_sklearn(x, (x[:, 0] > 0).astype(int), x)


@pytest.mark.parametrize("case", ["constant", "duplicate", "wide", "large", "tiny spread"])
def test_awkward_columns(case):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    y = (x[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    x = {
        "constant": np.c_[x, np.full(60, 7.3)],
        "duplicate": np.c_[x, x[:, 0]],
        "wide": np.c_[x, rng.normal(size=(60, 200))],
        "large": np.c_[x, 1e8 * rng.normal(size=60)],
        "tiny spread": np.c_[x, 1e-4 * rng.normal(size=60)],
    }[case]
    assert_as_good_as_sklearn(x, y, x)


def test_classes_that_are_absent_or_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    absent = LinearSVM().fit(x, np.repeat([0, 2, 5], 10))
    assert set(absent.predict(x).tolist()) <= {0, 2, 5}
    alone = LinearSVM().fit(x, np.full(30, 4))
    assert alone.predict(x).tolist() == [4] * 30
    assert alone.decision_function(x).shape == (30,)
    assert LinearSVM().fit(x, np.repeat([0, 1], 15)).predict(x[:0]).shape == (0,)


@pytest.mark.parametrize("problem", ["digits", "two classes", "separable", "few rows"])
def test_a_path_has_the_solutions_of_single_fits(problem):
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    if problem == "two classes":
        x, y = x[:900], y[:900] % 2
    elif problem == "separable":
        x = rng.normal(size=(300, 10))
        y = (x[:, 0] > 0).astype(int)
    elif problem == "few rows":
        x, y = rng.normal(size=(40, 100)), rng.integers(3, size=40)
    path = [LinearSVM(c) for c in GRID]
    fit_path(path, x, y)
    for model in path:
        cold = LinearSVM(model.C).fit(x, y)
        np.testing.assert_allclose(model.decision_function(x), cold.decision_function(x), rtol=0, atol=1e-6)
        # At the minimum the gradient vanishes.
        features = model.scaler_.rows(x)
        for w, name in zip(model.coef_, model.classes_[-len(model.coef_) :], strict=True):
            sign = np.where(y == name, 1.0, -1.0)
            slack = np.maximum(0, 1 - sign * (features @ w))
            size = 2 * model.C * np.abs(features.T @ (slack * sign)).max()
            assert np.abs(w - 2 * model.C * (slack * sign) @ features).max() <= 1e-7 * max(1.0, size)


def test_a_path_does_not_share_what_it_returns():
    x, y = load_digits(return_X_y=True)
    first, second = LinearSVM(0.1), LinearSVM(1.0)
    fit_path([first, second], x[:100], y[:100])
    assert not np.shares_memory(first.coef_, second.coef_)
    assert not np.array_equal(first.coef_, second.coef_)


def test_features_can_be_left_as_they_are():
    x, y = load_digits(return_X_y=True)
    ours = LinearSVM(1e-3, standardise=False).fit(x[:500], y[:500])
    theirs = LinearSVC(C=1e-3, tol=1e-8, max_iter=1_000_000).fit(x[:500], y[:500])
    np.testing.assert_allclose(ours.decision_function(x), theirs.decision_function(x), atol=1e-4)


def test_the_same_bits_from_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 7)).astype(np.float32)
    y = (x[:, :3] + rng.normal(size=(5000, 3))).argmax(axis=1)
    x.tofile(tmp_path / "x")
    in_memory = LinearSVM().fit(x, y).coef_
    monkeypatch.setattr(svm, "_MANY_BYTES", 0)
    monkeypatch.setattr(rows, "_KEPT_BYTES", 0)
    mapped = LinearSVM().fit(np.memmap(tmp_path / "x", np.float32, mode="r", shape=x.shape), y).coef_
    assert np.array_equal(in_memory, mapped)


def test_it_says_if_it_has_not_converged(monkeypatch, caplog):
    monkeypatch.setattr(svm, "_MAX_STEPS", 1)
    x, y = load_digits(return_X_y=True)
    LinearSVM().fit(x[:100], y[:100])
    assert "the SVM has not converged in 1 Newton steps (C = 1)" in caplog.text


def test_refusals():
    with pytest.raises(InputError, match="C: -1 is not a positive number"):
        LinearSVM(-1)


def test_on_real_nodes(real_sets):
    setting = prepare(Config(dataset="ENZYMES", width=64), real_sets)
    with torch.no_grad():
        train, test = (setting.store.cut(ids) for ids in (setting.split.train, setting.split.test))
        x, x_test = (setting.model.encoder(batch).numpy() for batch in (train, test))
    assert_as_good_as_sklearn(x, train.node_y.numpy(), x_test)


def test_blocks_that_are_not_kept_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 4)).astype(np.float32), rng.integers(3, size=500)
    whole = LinearSVM().fit(x, y).coef_
    monkeypatch.setattr(rows, "_BLOCK", 64)
    kept = LinearSVM().fit(x, y).coef_
    monkeypatch.setattr(rows, "_KEPT_BYTES", 0)
    np.testing.assert_array_equal(LinearSVM().fit(x, y).coef_, kept)
    np.testing.assert_allclose(kept, whole, rtol=1e-8, atol=1e-10)
