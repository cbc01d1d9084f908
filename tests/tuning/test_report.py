from dataclasses import replace

import numpy as np

from same.tuning.report import importances, savings, summary, write_tuning_report
from tuning.searches import SEARCH, make_trial, make_tuning


def test_importances_rank_parameters_and_say_how_reliable_they_are(tmp_path):
    values, r2 = importances(make_tuning(tmp_path, [0.1 * (1 + i % 3) for i in range(60)]))
    assert list(values) == ["layers", "outer_lr"]
    assert values["layers"] > 10 * max(values["outer_lr"], 0.01)
    assert r2 > 0.9
    assert importances(make_tuning(tmp_path, np.random.default_rng(0).random(60).tolist()))[1] < 0.3
    assert importances(make_tuning(tmp_path, [0.1] * 9)) == ({}, None)


def test_savings_count_epochs_of_stopped_trials(tuning):
    stopped = [trial for trial in tuning.trials if trial.state == "stopped"]
    saved = sum(4 - trial.epochs for trial in stopped)
    assert saved > 0
    assert f"{len(stopped)} stopped early, which saved about {saved} epochs" in savings(tuning)
    assert "none stopped early" in savings(replace(tuning, search=replace(SEARCH, stop_early=False)))


def test_page_escapes_names(tuning, tmp_path):
    evil = replace(tuning, folder=tmp_path, search=replace(SEARCH, dataset="<img src=x>"))
    page = write_tuning_report(evil).read_text()
    assert "<img" not in page
    assert "&lt;img" in page
    assert page.count("<svg") == 1
    assert "Importance" not in page  # Too few trials.
    assert all(title in page for title in ("Score by trial", ">outer_lr<", ">layers<"))
    assert (tmp_path / "trials.csv").read_text().count("\n") == 9


def test_failed_trials_are_reported(tuning, tmp_path):
    failed = make_trial(8, {"outer_lr": 0.01, "layers": 1}, 0.1, "failed", error="DivergedError: step 3")
    page = write_tuning_report(replace(tuning, folder=tmp_path, trials=(*tuning.trials, failed))).read_text()
    assert "1 failed" in page
    assert "DivergedError: step 3" in page
    only = make_tuning(tmp_path, [])
    assert summary(replace(only, trials=(failed,)))["best"] is None
    write_tuning_report(replace(only, trials=(failed,)))
