import warnings

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from same.config import Config
from same.errors import InputError
from same.experiment import prepare
from same.probes.paper import fit_paper


def objective(coef, bias, x, sign):
    return 0.5 * (coef @ coef + bias**2) + np.square(np.maximum(0, 1 - sign * (x @ coef + bias))).sum()


@pytest.mark.parametrize("task", ["gc", "nc"])
def test_it_is_the_default_linear_svc_on_embeddings_as_they_are(task):
    setting = prepare(Config(width=16, degree=4))
    train, test = (setting.store.cut(ids) for ids in (setting.split.train, setting.split.test))
    with torch.no_grad():
        h, h_test = (setting.model.encoder(batch) for batch in (train, test))
    if task == "gc":
        h, h_test = train.mean(h), test.mean(h_test)
    x, x_test, y = h.numpy(), h_test.numpy(), (train.graph_y if task == "gc" else train.node_y).numpy()
    ours = fit_paper("classes", x, y)
    theirs, exact = LinearSVC(random_state=0), LinearSVC(tol=1e-10, max_iter=1_000_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Its defaults stop at a tolerance or before.
        theirs.fit(x, y)
        exact.fit(x, y)
    for i, name in enumerate(ours.classes_):
        sign = np.where(y == name, 1.0, -1.0)
        w, bias = ours.coef_[i, :-1], ours.coef_[i, -1]
        assert objective(w, bias, x, sign) <= objective(theirs.coef_[i], theirs.intercept_[i], x, sign) * (1 + 1e-9)
    np.testing.assert_allclose(ours.decision_function(x_test), exact.decision_function(x_test), atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(x_test), theirs.decision_function(x_test), atol=0.02)


def test_the_bias_is_regularised_and_units_matter():
    x, y = np.array([[10.0], [11.0], [12.0], [13.0]]), np.array([0, 0, 1, 1])
    theirs = LinearSVC(tol=1e-10, max_iter=1_000_000).fit(x, y)
    ours = fit_paper("links", x, y)
    np.testing.assert_allclose(ours.coef_[0], [theirs.coef_[0, 0], theirs.intercept_[0]], rtol=1e-4)
    assert not np.allclose(fit_paper("links", x / 10, y).decision_function(x / 10), ours.decision_function(x))


def test_there_is_no_regression():
    with pytest.raises(InputError, match="probes: paper: the paper has no regression"):
        fit_paper("numbers", np.zeros((2, 1)), np.zeros(2))
