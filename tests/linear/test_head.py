import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss, r2_score

from same.errors import InputError
from same.linear import Features, LinearHead, fit_head, fit_linear
from same.linear.head import FEW

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
    predicted = head.predict(head.decision(validation[0]))
    assert predicted.shape == validation[1].shape
    np.testing.assert_allclose(predicted, model.predict(validation[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_a_head_that_was_saved_predicts_the_same_bits(name):
    kind, train, (x, y) = problem(name)
    head = LinearHead.fit(kind, *train, (x, y))
    arrays, values = head.to_tensors()
    loaded = LinearHead.from_tensors({name: np.array(array, order="C") for name, array in arrays.items()}, values)
    assert np.array_equal(loaded.decision(x), head.decision(x))


@pytest.mark.parametrize("name", KINDS[:3])
def test_probabilities_are_calibrated_on_the_validation_examples(name):
    kind, train, (x, y) = problem(name)
    head = LinearHead.fit(kind, *train, (x, y))
    decision = head.decision(x)
    p = head.proba(decision)
    assert head.slope != 1
    uncalibrated = replace(head, slope=1.0)
    assert log_loss(y, p, labels=head.classes) < log_loss(y, uncalibrated.proba(decision), labels=head.classes)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.shape == (len(y), len(head.classes))
    # Predictions, decision values and probabilities agree.
    assert np.array_equal(head.classes[p.argmax(axis=1)], head.predict(decision))
    if decision.ndim == 1:
        assert np.array_equal(head.classes[(decision > 0).astype(int)], head.predict(decision))
    output = head.output(x)
    assert np.array_equal(output, decision if kind == "links" else head.predict(decision))


@pytest.mark.parametrize("name", KINDS)
def test_losses_of_single_examples(name):
    kind, train, (x, y) = problem(name)
    head = LinearHead.fit(kind, *train, (x, y))
    losses = head.losses(head.decision(x), y)
    assert losses.shape == (len(y),)
    if kind == "numbers":
        spread = y.reshape(len(y), -1).shape[1]
        assert losses.mean() == pytest.approx(spread * (1 - r2_score(y, head.decision(x))))
    else:
        assert losses.mean() == pytest.approx(log_loss(y, head.proba(head.decision(x)), labels=head.classes))
    if name == "classes":
        assert head.losses(head.decision(x[:1]), [99]) > 20  # A class that was never seen.


@pytest.mark.parametrize("name", KINDS)
def test_without_validation_c_is_one_and_nothing_is_calibrated(name):
    kind, train, (x, y) = problem(name)
    for validation in (None, (x[:0], y[:0])):
        head = LinearHead.fit(kind, *train, validation)
        assert (head.C, head.slope, head.validated) == (1.0, 1.0, False)


def test_validation_classes_without_training_examples_are_ignored():
    kind, train, (x, y) = problem("classes")
    more = (np.r_[x, x[:5]], np.r_[y, np.full(5, 99)])
    ours, plain = LinearHead.fit(kind, *train, more), LinearHead.fit(kind, *train, (x, y))
    assert (ours.C, ours.slope) == (plain.C, plain.slope)
    assert not LinearHead.fit(kind, *train, (x, np.full(len(x), 99))).validated


def test_one_class_and_links_of_one_kind():
    x = np.random.default_rng(0).normal(size=(10, 3))
    alone = LinearHead.fit("classes", x, np.full(10, 3), (x, np.full(10, 3)))
    assert alone.predict(alone.decision(x)).tolist() == [3] * 10
    assert alone.proba(alone.decision(x)).tolist() == [[1.0]] * 10
    links = LinearHead.fit("links", x, np.ones(10))
    assert links.proba(links.decision(x)).tolist() == [[0.5, 0.5]] * 10


@pytest.mark.parametrize("name", KINDS)
def test_it_is_saved_as_arrays_and_plain_values(name):
    kind, train, validation = problem(name)
    head = LinearHead.fit(kind, *train, validation)
    arrays, values = head.to_tensors()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = LinearHead.from_tensors(arrays, json.loads(json.dumps(values)))
    assert np.array_equal(again.decision(validation[0]), head.decision(validation[0]))
    assert (again.C, again.slope, again.validated) == (head.C, head.slope, head.validated)
    for change in ({"bias": np.zeros(9)}, {"weight": arrays["weight"][..., None]}, {"weight": np.array(1.0)}):
        with pytest.raises(ValueError, match="expected"):
            LinearHead.from_tensors(arrays | change, values)
    with pytest.raises(ValueError, match="other: weight"):
        LinearHead.from_tensors(arrays, values | {"kind": "other"})
    if kind == "numbers":
        with pytest.raises(InputError, match="numbers have no probabilities"):
            head.proba(head.decision(validation[0]))


def test_units_of_targets_do_not_change_r2():
    kind, (x, y), (x_val, y_val) = problem("number")
    r2 = []
    for units, shift in ((1, 0), (1000, 5000)):
        head = LinearHead.fit(kind, x, units * y + shift, (x_val, units * y_val + shift))
        r2.append(r2_score(units * y_val + shift, head.output(x_val)))
    assert r2[0] > 0.3
    assert r2[1] == pytest.approx(r2[0], rel=1e-9)


def test_features_may_lie_in_a_file(tmp_path):
    kind, (x, y), validation = problem("classes")
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, mode="r", shape=x.shape)
    head = LinearHead.fit(kind, mapped, y, validation)
    assert np.array_equal(head.decision(mapped), LinearHead.fit(kind, x, y, validation).decision(x))


@pytest.mark.parametrize("name", KINDS)
def test_outputs_are_those_of_a_network_head(name):
    kind, train, (x, y) = problem(name)
    head = LinearHead.fit(kind, *train, (x, y))
    outputs = head.outputs(x, classes=10)
    if kind == "numbers":
        assert np.array_equal(outputs, head.decision(x))
        return
    p = softmax(outputs, axis=1) if kind == "classes" else expit(outputs)
    if kind == "links":
        np.testing.assert_allclose(p, head.proba(head.decision(x))[:, 1])
        return
    assert outputs.shape == (len(x), 10)
    assert np.array_equal(outputs.argmax(1), head.predict(head.decision(x)))
    np.testing.assert_allclose(p[:, head.classes], head.proba(head.decision(x)))
    assert p.sum(axis=1) == pytest.approx(1)
    assert not p[:, 0].any()  # A code without training examples.


def by_pool(signal, n, seed):
    """Features by pooling: `first` is noise, and `second` shows the class as strongly as asked."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return Features({"first": rng.normal(size=(n, 3)), "second": signal * y[:, None] + rng.normal(size=(n, 3))}, y)


def test_a_later_pooling_must_be_better_by_more_than_noise():
    sets = by_pool(3.0, 300, 0), by_pool(3.0, 100, 1)
    chosen = fit_head("classes", *sets)
    assert (chosen.pool, chosen.validated) == ("second", True)
    alone = LinearHead.fit("classes", *(sets[0].x["second"], sets[0].y), (sets[1].x["second"], sets[1].y))
    assert np.array_equal(alone.weight, chosen.weight)
    noise = [fit_head("classes", by_pool(0.0, 300, seed), by_pool(0.0, 60, seed + 99)).pool for seed in range(20)]
    assert noise.count("first") > 14  # One in two without the margin.


def test_few_validation_examples_choose_c_and_no_pooling():
    sets = by_pool(3.0, 300, 0), by_pool(3.0, FEW - 1, 1)
    head = fit_head("classes", *sets)
    assert (head.pool, head.validated) == ("first", True)


def test_without_validation_the_first_pooling_is_taken():
    for validation in (None, Features({"first": np.empty((0, 3)), "second": np.empty((0, 3))}, np.empty(0))):
        head = fit_head("classes", by_pool(3.0, 300, 0), validation)
        assert (head.pool, head.C, head.validated) == ("first", 1.0, False)
