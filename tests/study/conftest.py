import pytest

from same.study.plan import Plan
from same.study.run import run_study
from study_helpers import TINY, inline

PLAN = Plan(
    questions=("overview", "Q1"),
    datasets=("planted",),
    tasks=(("gc",), ("gc", "nc", "lp")),
    splits=(0, 1),
    settings=TINY,
)


@pytest.fixture(scope="package")
def finished(tmp_path_factory):
    """Folder of a finished study of 14 runs, with its models; tests must not change it."""
    folder = tmp_path_factory.mktemp("study") / "finished"
    from dataclasses import replace

    study = run_study(replace(PLAN, keep_models=True), folder, engine=inline, quiet=True)
    assert not study.failed
    return folder
