import numpy as np
import pytest

from same.errors import InputError
from same.linear import rows
from same.linear.rows import Rows, Scaler, blocks, column_scaling


def test_blocks_cover_all_rows_once():
    for n, size in [(0, 3), (1, 3), (7, 3), (9, 3)]:
        assert np.concatenate([np.empty(0, int), *(np.arange(n)[part] for part in blocks(n, size))]).tolist() == [
            *range(n)
        ]


def test_scaling_is_exact_far_from_zero_and_leaves_constant_columns():
    x = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    x[:, 1] += 1e4
    x[:, 2] = 0.1
    mean, scale = column_scaling(x)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(0), rtol=1e-12)
    np.testing.assert_allclose(scale[:2], x.astype(np.float64).std(0)[:2], rtol=1e-9)
    assert scale[2] == 1


def test_rows_are_the_same_in_blocks_kept_or_not(monkeypatch):
    x = np.random.default_rng(0).normal(size=(100, 3))
    scaler = Scaler(*column_scaling(x))
    whole = scaler.rows(x)
    assert (whole[:, -1] == 1).all()
    monkeypatch.setattr(rows, "_BLOCK", 30)
    for kept in (2**20, 0):
        monkeypatch.setattr(rows, "_KEPT_BYTES", kept)
        made = Rows(x)
        assert (made.kept is None) == (kept == 0)
        np.testing.assert_allclose(np.concatenate([block for _, block in made]), whole, rtol=1e-12)
        assert made.shape == whole.shape
    assert np.array_equal(np.concatenate([block for _, block in Rows(x, standardise=False)])[:, :-1], x)
    coef = np.random.default_rng(1).normal(size=(2, 4))
    np.testing.assert_allclose(scaler.product(x, coef), whole @ coef.T)


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="needs training examples"):
        Rows(np.empty((0, 3)))
