import json
import time

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score

from same.errors import InputError
from same.linear import GRID, LinearHead, LinearSVM, fit_linear, svm
from same.linear.calibration import Calibration

KINDS = ["classes", "two classes", "links", "numbers", "number"]


def problem(name, seed=0, n=240):
    """Kind, training examples and validation examples; classes have gaps between their codes."""
    rng = np.random.default_rng(seed)
    x = (5 + 3 * rng.normal(size=(n, 12))).astype(np.float32)
    signal = x[:, :3] - 5 + 3 * rng.normal(size=(n, 3))
    kind, y = {
        "classes": ("classes", np.array([1, 4, 7])[signal.argmax(1)]),
        "two classes": ("classes", np.array([2, 5])[(signal[:, 0] > 0).astype(int)]),
        "links": ("links", (signal[:, 0] > 0).astype(np.float32)),
        "numbers": ("numbers", signal[:, :2]),
        "number": ("numbers", signal[:, 0]),
    }[name]
    return kind, (x[: n // 2], y[: n // 2]), (x[n // 2 :], y[n // 2 :])


@pytest.mark.parametrize("name", KINDS)
def test_it_is_the_linear_model_with_the_scaling_folded_in(name):
    kind, train, validation = problem(name)
    model, head = fit_linear(kind, *train, validation), LinearHead.fit(kind, *train, validation)
    expected = model.predict if kind == "numbers" else model.decision_function
    np.testing.assert_allclose(head.decision(validation[0]), expected(validation[0]), rtol=1e-9, atol=1e-9)
    assert head.weight.dtype == head.bias.dtype == np.float64
    assert (1 / model.penalty if kind == "numbers" else model.C) == head.C
    assert head.validated
    predicted = head.predict(validation[0])
    assert predicted.shape == validation[1].shape
    np.testing.assert_allclose(predicted, model.predict(validation[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", KINDS[:3])
def test_probabilities_are_calibrated_on_the_validation_examples(name):
    kind, train, (x, y) = problem(name)
    head = LinearHead.fit(kind, *train, (x, y))
    p = head.proba(x)
    uncalibrated = LinearHead.from_tensors(head.to_tensors()[0], head.to_tensors()[1] | {"calibration": [1, 0]})
    assert log_loss(y, p, labels=head.classes) < log_loss(y, uncalibrated.proba(x), labels=head.classes)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.shape == (len(y), len(head.classes))
    if name == "classes":
        assert np.array_equal(head.classes[p.argmax(axis=1)], head.predict(x))


@pytest.mark.parametrize("name", KINDS)
def test_without_validation_c_is_one_and_nothing_is_calibrated(name):
    kind, train, (x, y) = problem(name)
    for validation in (None, (x[:0], y[:0])):
        head = LinearHead.fit(kind, *train, validation)
        assert (head.C, head.calibration, head.validated) == (1.0, Calibration(), False)


def test_validation_classes_without_training_examples_are_ignored():
    kind, train, (x, y) = problem("classes")
    more = (np.r_[x, x[:5]], np.r_[y, np.full(5, 99)])
    ours, plain = LinearHead.fit(kind, *train, more), LinearHead.fit(kind, *train, (x, y))
    assert (ours.C, ours.calibration) == (plain.C, plain.calibration)
    assert not LinearHead.fit(kind, *train, (x, np.full(len(x), 99))).validated


def test_one_class_and_links_of_one_kind():
    x = np.random.default_rng(0).normal(size=(10, 3))
    alone = LinearHead.fit("classes", x, np.full(10, 3), (x, np.full(10, 3)))
    assert alone.predict(x).tolist() == [3] * 10
    assert alone.proba(x).tolist() == [[1.0]] * 10
    links = LinearHead.fit("links", x, np.ones(10))
    assert links.proba(x).tolist() == [[0.5, 0.5]] * 10


@pytest.mark.parametrize("name", KINDS)
def test_it_is_saved_as_arrays_and_plain_values(name):
    kind, train, validation = problem(name)
    head = LinearHead.fit(kind, *train, validation)
    arrays, values = head.to_tensors()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = LinearHead.from_tensors(arrays, json.loads(json.dumps(values)))
    assert np.array_equal(again.decision(validation[0]), head.decision(validation[0]))
    assert np.array_equal(again.predict(validation[0]), head.predict(validation[0]))
    assert (again.C, again.calibration, again.validated) == (head.C, head.calibration, head.validated)
    for change in ({"bias": np.zeros(9)}, {"weight": arrays["weight"][..., None]}, {"weight": np.array(1.0)}):
        with pytest.raises(ValueError, match="expected"):
            LinearHead.from_tensors(arrays | change, values)
    with pytest.raises(ValueError, match="other: weight"):
        LinearHead.from_tensors(arrays, values | {"kind": "other"})
    if kind == "numbers":
        with pytest.raises(InputError, match="numbers have no probabilities"):
            head.proba(validation[0])


def test_units_of_targets_do_not_change_r2():
    kind, (x, y), (x_val, y_val) = problem("number")
    r2 = []
    for units, shift in ((1, 0), (1000, 5000)):
        head = LinearHead.fit(kind, x, units * y + shift, (x_val, units * y_val + shift))
        r2.append(r2_score(units * y_val + shift, head.predict(x_val)))
    assert r2[0] > 0.3
    assert r2[1] == pytest.approx(r2[0], rel=1e-9)


def test_features_may_lie_in_a_file(tmp_path):
    kind, (x, y), validation = problem("classes")
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, mode="r", shape=x.shape)
    head = LinearHead.fit(kind, mapped, y, validation)
    assert np.array_equal(head.decision(mapped), LinearHead.fit(kind, x, y, validation).decision(x))


@pytest.mark.slow
def test_eight_values_of_c_cost_at_most_three_fits():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(15_000, 128)).astype(np.float32)
    y = (x[:, :4] + rng.normal(size=(15_000, 4))).argmax(1)

    def seconds(grid):
        start = time.process_time()
        svm.fit_path([LinearSVM(c) for c in grid], x, y)
        return time.process_time() - start

    one, eight = (min(seconds(grid) for _ in range(3)) for grid in ((1.0,), GRID))
    assert eight <= 3 * one
