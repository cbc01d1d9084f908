import numpy as np
import pytest

from same.graphs.flat import as_numbers, not_finite


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.ones(2, np.float16), np.float32),
        (np.ones(2, np.float32), np.float32),
        (np.ones(2, np.float64), np.float64),
        ([True, False], np.float32),
        (np.array([-(2**24), 2**24]), np.float32),
        (np.array([0, 2**24 + 1]), np.float64),
        ([], np.float64),
    ],
)
def test_numbers_keep_their_precision(values, dtype):
    numbers = as_numbers(values)
    assert numbers.dtype == dtype
    assert numbers.tolist() == np.asarray(values).tolist()


@pytest.mark.parametrize("values", [["a"], [1j], [None], np.array(["2020-01-01"], "M8[D]")])
def test_only_numbers_are_numbers(values):
    with pytest.raises(TypeError, match="are not numbers"):
        as_numbers(values)


def test_what_is_not_finite_in_float32():
    assert not_finite(np.array([0.0, -3e38, 1e39, np.inf, np.nan])).tolist() == [False, False, True, True, True]
