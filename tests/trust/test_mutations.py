"""The tests notice known mistakes, planted one at a time."""

import re

import pytest

from trust.mutations import MUTATIONS, ROOT, control, plant


def test_every_mutation_can_be_planted():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 10
    for mutation in MUTATIONS:
        path = ROOT / "src" / "same" / mutation.file
        assert mutation.planted(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")


def test_the_tests_of_every_mutation_exist():
    for mutation in MUTATIONS:
        for test in mutation.tests:
            file, name = re.fullmatch(r"(.+)::(\w+)(?:\[.+\])?", test).groups()
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


@pytest.mark.slow
def test_the_tests_pass_without_a_mutation():
    assert control()


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_is_caught(mutation):
    assert plant(mutation)
