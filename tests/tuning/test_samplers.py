import json
from dataclasses import replace

import numpy as np
import pytest

from same.errors import InputError
from same.tuning import samplers
from same.tuning.samplers import ax_search, choose_sampler, random_search
from same.tuning.space import read_space
from tuning.searches import SEARCH, SPACE, outcomes, run_search

needs_ax = pytest.mark.skipif(not samplers._has_ax(), reason="Ax is not installed: pip install same-gnn[tune]")


def test_missing_ax_is_reported(monkeypatch, caplog):
    monkeypatch.setattr(samplers, "_has_ax", lambda: False)
    with caplog.at_level("INFO", "same"):
        assert choose_sampler("auto") == "random"
    assert caplog.messages == ["Ax is not installed (pip install same-gnn[tune]): using random search"]
    with pytest.raises(InputError, match="--sampler ax: Ax is not installed"):
        choose_sampler("ax")


def test_random_search_continues_where_earlier_trials_end():
    both = random_search(SPACE, 0, [], 2)
    assert random_search(SPACE, 0, [(both[0], 0.5)], 1) == both[1:]


@needs_ax
def test_ax_is_deterministic_learns_and_stays_in_the_space():
    space = read_space().restrict("esame", ["gc", "lp"])
    drawn = random_search(space, 0, [], 12)
    records = [(values, None if i == 3 else values["dropout"]) for i, values in enumerate(drawn)]
    few = samplers.RANDOM_TRIALS - 1
    assert ax_search(space, 0, records[:few], 4) == drawn[few : few + 4]
    proposed = ax_search(space, 0, records, 4)
    assert ax_search(space, 0, records, 4) == proposed
    assert all(p.contains(values[p.name]) for values in proposed for p in space.parameters)
    assert len({json.dumps(values) for values in proposed}) == 4
    assert np.mean([v["dropout"] for v in proposed]) > np.mean([v["dropout"] for v in drawn]) + 0.1


@needs_ax
def test_ax_search_resumes(tmp_path):
    search = replace(SEARCH, sampler="auto")
    first = run_search(tmp_path / "a", 12, search)
    assert first.search.sampler == "ax"
    assert [t.values for t in first.trials[8:]] != random_search(SPACE, 0, [({}, None)] * 8, 4)
    run_search(tmp_path / "b", 9, search)
    assert outcomes(run_search(tmp_path / "b", 12, search)) == outcomes(first)
