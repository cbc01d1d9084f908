"""The tests would notice: known mistakes, planted one at a time."""

import pytest

from trust.mutations import MUTATIONS, ROOT, control, plant


def test_every_mistake_can_be_planted():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 10
    for mutation in MUTATIONS:
        path = ROOT / "src" / "same" / mutation.file
        assert mutation.planted(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_without_a_mistake_the_tests_pass():
    assert control()


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mistake_is_noticed(mutation):
    assert plant(mutation)
