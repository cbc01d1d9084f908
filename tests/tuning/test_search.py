import json
import shutil
from dataclasses import replace

import pytest

from same.errors import DamagedError, InputError
from same.tuning.search import Tuning, read_search, write_search
from same.tuning.stopping import scores_so_far
from tuning.searches import SEARCH, outcomes, run_folder, run_search


def test_search_is_written_and_read(tmp_path):
    search = replace(SEARCH, splits=(0, 2), settings={"weights": {"nc": 0.5}, "width": 8})
    write_search(tmp_path, search, [{"layers": 2}])
    assert read_search(tmp_path) == (search, [{"layers": 2}])
    with pytest.raises(InputError, match="contains no search"):
        read_search(tmp_path / "none")
    (tmp_path / "tune.json").write_text("{")
    with pytest.raises(DamagedError):
        read_search(tmp_path)


def test_first_trials_complete_and_the_default_is_one_of_them(tuning):
    assert [trial.state for trial in tuning.trials[:4]] == ["done"] * 4  # Nothing to compare them with.
    assert tuning.default.number == 0
    assert tuning.done[0].score > tuning.default.score
    lines = (run_folder(tuning, tuning.done[0]) / "history.jsonl").read_text().splitlines()
    assert tuning.done[0].score == scores_so_far(list(map(json.loads, lines)))[-1]
    assert outcomes(Tuning.open(tuning.folder)) == outcomes(tuning)


def test_unpromising_trials_are_stopped_early(tuning):
    stopped = [trial for trial in tuning.trials if trial.state == "stopped"]
    assert stopped
    for trial in stopped:
        assert not (run_folder(tuning, trial) / "result.json").exists()
        assert trial.runs[0].epochs < 4
        assert trial not in tuning.done


def test_unasked_trials_of_the_last_round_are_not_part_of_the_search(tuning, tmp_path):
    shutil.copytree(tuning.folder, tmp_path / "t")
    more = run_search(tmp_path / "t", 9)  # A search grows; earlier trials stay the same.
    assert outcomes(more)[:8] == outcomes(tuning)
    assert len(read_search(tmp_path / "t")[1]) == 12
    assert outcomes(Tuning.open(tmp_path / "t")) == outcomes(more)
