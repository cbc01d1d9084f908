import pytest

from tuning.searches import run_search


@pytest.fixture(scope="session")
def tuning(tmp_path_factory):
    """A finished search of eight trials; tests must not change its folder."""
    return run_search(tmp_path_factory.mktemp("tuning") / "whole")
