"""A study of many runs needs no more memory than one of a few."""

import pytest

from trust.load import many_runs


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_driver_of_500_runs_does_not_grow(tmp_path):
    load = many_runs(500, tmp_path)
    assert load.flat, load
