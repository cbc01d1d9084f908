import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from same.errors import InputError
from same.linear import rows
from same.linear.ridge import Ridge, fit_path


def problem(n=200, d=7, targets=(), seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + 5).astype(np.float32)
    return x, rng.normal(size=(n, *targets)) * 3 + x[:, :1].reshape(n, *[1] * len(targets))


@pytest.mark.parametrize("penalty", [0.01, 1.0, 1e3])
@pytest.mark.parametrize(("n", "d", "targets"), [(200, 7, ()), (200, 7, (3,)), (10, 30, ()), (50, 4, (1,))])
def test_predictions_are_those_of_scikit_learn(penalty, n, d, targets):
    x, y = problem(n, d, targets)
    ours = Ridge(penalty).fit(x[: n // 2], y[: n // 2]).predict(x)
    theirs = make_pipeline(StandardScaler(), SklearnRidge(penalty))
    expected = theirs.fit(x[: n // 2].astype(np.float64), y[: n // 2]).predict(x.astype(np.float64))
    assert ours.shape == y.shape
    np.testing.assert_allclose(ours, expected.reshape(y.shape), rtol=1e-7, atol=1e-7)


def test_units_do_not_matter():
    x, y = problem()
    plain, other = Ridge().fit(x, y).predict(x), Ridge().fit(x * 100 - 3, 1000 * y + 5000).predict(x * 100 - 3)
    np.testing.assert_allclose(other, 1000 * plain + 5000, rtol=1e-5)


def test_constant_columns_and_targets():
    x, y = problem()
    x[:, 2] = 4.2
    np.testing.assert_allclose(Ridge().fit(x, np.full(200, 7.5)).predict(x), 7.5)
    assert np.isfinite(Ridge().fit(x, y).predict(x)).all()


def test_a_path_has_the_solutions_of_single_fits():
    x, y = problem()
    path = [Ridge(penalty) for penalty in (1e-2, 1e2, 1.0)]
    fit_path(path, x, y)
    for model in path:
        np.testing.assert_allclose(model.predict(x), Ridge(model.penalty).fit(x, y).predict(x), rtol=1e-10)


def test_features_may_lie_in_a_file(tmp_path, monkeypatch):
    x, y = problem()
    x.tofile(tmp_path / "x")
    monkeypatch.setattr(rows, "_BLOCK", 64)
    expected = Ridge().fit(x, y).predict(x)
    monkeypatch.setattr(rows, "_KEPT_BYTES", 0)
    mapped = np.memmap(tmp_path / "x", np.float32, mode="r", shape=x.shape)
    assert np.array_equal(Ridge().fit(mapped, y).predict(mapped), expected)


def test_refusals():
    with pytest.raises(InputError, match="penalty: 0 is not a positive number"):
        Ridge(0)
