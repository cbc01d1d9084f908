from dataclasses import replace

from same.tuning.report import savings, summary, write_tuning_report
from tuning.searches import SEARCH, make_trial, make_tuning


def test_savings_count_epochs_of_stopped_trials(tuning):
    stopped = [trial for trial in tuning.trials if trial.state == "stopped"]
    saved = sum(4 - trial.epochs for trial in stopped)
    assert saved > 0
    assert f"{len(stopped)} stopped early, which saved about {saved} epochs" in savings(tuning)


def test_page_escapes_names(tuning, tmp_path):
    evil = replace(tuning, folder=tmp_path, search=replace(SEARCH, dataset="<img src=x>"))
    page = write_tuning_report(evil).read_text()
    assert "<img" not in page
    assert "&lt;img" in page
    assert page.count("<svg") == 1
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
