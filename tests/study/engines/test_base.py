from pathlib import Path

from same.config import Config
from same.saved import read_history
from same.study.engines.base import ERRORS, RUNS, Event, Job, execute, read_error, record_failure, take
from study_helpers import TINY, count_files, give_up

CONFIGS = [Config(seed=seed, **TINY) for seed in range(3)]


def jobs(*after):
    return [Job(config, Path("nowhere"), after=key) for config, key in zip(CONFIGS, after, strict=True)]


def test_jobs_start_in_order_but_not_before_those_they_wait_for():
    first, second, third = jobs(CONFIGS[1].key, None, None)
    waiting, pending = [first, second, third], {config.key for config in CONFIGS}
    assert take(waiting, pending) is second
    assert take(waiting, pending - {CONFIGS[1].key}) is first
    assert waiting == [third]
    assert take([first], pending) is None
    assert take([first], {CONFIGS[0].key}) is first  # It would wait for a run that is not planned.


def test_a_job_is_trained_then_used_and_not_trained_again(tmp_path):
    job = Job(CONFIGS[0], tmp_path / RUNS / CONFIGS[0].key, then=count_files)
    outcomes = [execute(job, lambda *_: None, lambda: False) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].training["epochs"] == TINY["max_epochs"]
    assert outcomes[0].value > 0


def test_a_job_that_is_given_up_has_a_history_in_its_folder_and_no_training(tmp_path):
    outcome = execute(Job(CONFIGS[0], tmp_path / "run", give_up=give_up), lambda *_: None, lambda: False)
    assert outcome == (None, None)
    assert len(read_history(tmp_path / "run")) == 1


def test_the_error_of_a_run_is_kept_until_the_run_is_done(tmp_path, caplog):
    assert read_error(tmp_path, "a") is None
    record_failure(tmp_path, Event("failed", "a", "ValueError: no way"))
    assert read_error(tmp_path, "a") == "ValueError: no way"
    (tmp_path / ERRORS / "b.json").write_text("{")
    assert read_error(tmp_path, "b") == "unknown"
    assert "b.json: is damaged" in caplog.text
    record_failure(tmp_path, Event("done", "a"))
    assert read_error(tmp_path, "a") is None
    record_failure(tmp_path, Event("done", "b"))
    assert not (tmp_path / ERRORS).exists()
