"""Many runs, and nothing that piles up."""

import pytest

from trust.load import many_runs


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_study_of_500_runs_leaves_the_driver_as_it_was(tmp_path):
    found = many_runs(500, tmp_path)
    assert found.flat, found
