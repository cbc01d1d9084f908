"""Whole studies of the embedded dataset: continued, extended, killed, and with failures."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from same.config import Config
from same.errors import DamagedError, InputError
from same.graphs import planted
from same.study.engines import Event, local
from same.study.plan import Plan, first_of
from same.study.report.page import write_report
from same.study.report.tables import caption
from same.study.results import RUNS_TABLE, SCORES_TABLE, Results, Source, Study
from same.study.run import check_dataset, expected_seconds, run_study, todo
from study_helpers import COMMAND, OPTIONS, TINY, inline, own_workers, same, workers_of

SMALL = ("--datasets", "planted", "--questions", "overview,Q1", "--tasks", "gc,gc+nc+lp", "--splits", "0-1")
FLOORS = Plan(questions=("floors",), datasets=("planted",), splits=(0,), settings=TINY)
TUNED = Plan(
    questions=("Q2",),
    datasets=("planted",),
    methods=("finetuned",),
    splits=(0,),
    settings={"batch_size": 100, "max_epochs": 1, "width": 8},
)


def no_engine(jobs, workers):
    """An engine for studies in which nothing is left to do."""
    assert not jobs
    return iter(())


def copied(finished, tmp_path, *, models=False) -> Path:
    """A copy of a finished study, by default of its three files."""
    folder = tmp_path / "study"
    shutil.copytree(finished, folder, ignore=None if models else shutil.ignore_patterns("runs"))
    return folder


def test_a_finished_study_is_three_files(tmp_path):
    study = run_study(FLOORS, tmp_path / "s", engine=inline, quiet=True)
    assert len(study.runs) == 1
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"study.json", RUNS_TABLE, SCORES_TABLE}


def test_floors_are_evaluated_once_per_dataset_and_split(finished):
    study = Study.open(finished)
    for floor in ("majority", "raw"):
        runs = [key for key, scores in study.results.scores.items() if any(score.model == floor for score in scores)]
        assert sorted((study.runs[key].dataset, study.runs[key].split) for key in runs) == [
            ("planted", 0),
            ("planted", 1),
        ]


def test_models_are_kept_if_a_study_was_ever_asked_to(tmp_path):
    run_study(replace(FLOORS, keep_models=True), tmp_path / "s", engine=inline, quiet=True)
    run_study(replace(FLOORS, splits=(1,)), tmp_path / "s", engine=inline, quiet=True)
    assert len(list((tmp_path / "s").glob("runs/*/model.safetensors"))) == 2


def test_finished_runs_are_not_run_again_whether_or_not_their_folders_exist(finished, tmp_path):
    folder = copied(finished, tmp_path)
    plan = Study.open(folder).plan
    assert todo(plan, folder) == []
    stamps = {path: path.stat().st_mtime_ns for path in (folder / RUNS_TABLE, folder / SCORES_TABLE)}
    run_study(plan, folder, engine=no_engine, quiet=True)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


@pytest.mark.parametrize("models", [False, True])
def test_a_question_that_is_asked_later_gets_its_network_probes(finished, tmp_path, models):
    folder = copied(finished, tmp_path, models=models)
    before = Study.open(folder)
    assert not any(before.networks(key) for key in before.runs)
    trained = []

    def watched(jobs, workers):
        trained.extend(not (job.folder / "result.json").is_file() for job in jobs)
        yield from inline(jobs, workers)

    asked = replace(before.plan, questions=("fig1",), splits=(0,), keep_models=False)
    study = run_study(asked, folder, engine=watched, quiet=True)
    assert trained == [not models] * 2  # The untrained encoder and the classical single-task model.
    for method, tasks in (("untrained", ("gc", "nc", "lp")), ("classical", ("gc",))):
        assert set(study.scores("planted", Source(method, tasks, "network"), "nc")) == {0}
    # Apart from the new probes nothing has changed.
    for key in before.runs:
        kept = [score for score in study.results.scores[key] if score.probe != "network"]
        assert kept == before.results.scores[key]
    # Another question adds to the probes of a run.
    again = run_study(replace(asked, questions=("Q3",), tasks=(("gc",),)), folder, engine=no_engine, quiet=True)
    assert again.results == study.results


def test_a_run_that_cannot_be_evaluated_again_has_failed(finished, tmp_path):
    folder = copied(finished, tmp_path)
    before = Study.open(folder)
    plan = replace(before.plan, questions=("fig1",), methods=("classical",), tasks=(("gc",),))

    def broken(jobs, workers):
        for job in jobs:
            yield "start", job.config.key, None
            yield "failed", job.config.key, "no memory"

    study = run_study(plan, folder, engine=broken, quiet=True)
    assert set(study.failed) == {config.key for config in study.missing(plan)} == {c.key for c in plan.runs()}
    assert study.results == before.results
    assert "in brackets where some are missing" in caption(study)
    assert "in brackets" not in caption(before)


def test_a_study_grows(tmp_path):
    for splits in ((0,), (1,)):
        study = run_study(replace(FLOORS, splits=splits), tmp_path, engine=inline, quiet=True)
    assert (study.plan.splits, len(study.runs)) == ((0, 1), 2)
    assert run_study(FLOORS, tmp_path, engine=no_engine, quiet=True).plan.splits == (0, 1)
    # What was planned before and is not asked for now stays planned, and unfinished.
    grown = run_study(replace(FLOORS, splits=(2,)), tmp_path, engine=lambda jobs, workers: iter(()), quiet=True)
    assert len(grown.missing()) == 1
    assert len(run_study(replace(FLOORS, splits=(3,)), tmp_path, engine=inline, quiet=True).missing()) == 1


def test_damage_is_reported_and_nothing_is_lost(tmp_path, caplog):
    run_study(FLOORS, tmp_path, engine=inline, quiet=True)
    whole = {name: (tmp_path / name).read_bytes() for name in ("study.json", RUNS_TABLE, SCORES_TABLE)}
    for name in (RUNS_TABLE, SCORES_TABLE):
        (tmp_path / name).write_bytes(whole[name][:-20])
        with pytest.raises(DamagedError, match=name):
            run_study(FLOORS, tmp_path, engine=no_engine, quiet=True)
        assert (tmp_path / name).read_bytes() == whole[name][:-20]
        (tmp_path / name).write_bytes(whole[name])
    (tmp_path / "study.json").write_text("{")
    run_study(FLOORS, tmp_path, engine=no_engine, quiet=True)
    assert "study.json: is damaged" in caplog.text
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole


def test_a_driver_that_died_before_writing_rows_evaluates_the_run_again(tmp_path):
    class Died(Exception):  # noqa: N818
        pass

    def deadly(jobs, workers):
        for event in inline(jobs, workers):
            if event.what == "done":
                raise Died
            yield event

    with pytest.raises(Died):
        run_study(FLOORS, tmp_path / "s", engine=deadly, quiet=True)
    assert list((tmp_path / "s").glob("runs/*/result.json"))
    assert not Results.read(tmp_path / "s").runs
    assert len(run_study(FLOORS, tmp_path / "s", engine=inline, quiet=True).runs) == 1


def test_killed_and_continued_it_ends_in_the_same_table(finished, tmp_path):
    folder = tmp_path / "killed"
    command = [*COMMAND, "study", "--out", folder, *SMALL, *OPTIONS, "--workers", "2"]
    for wanted in (3, 8):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(Results.read(folder).runs) < wanted:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(1.5)  # The workers notice, and end.
        assert not workers_of(process.pid)
    assert 8 <= len(Results.read(folder).runs) < 14
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "14 of 14 runs are done, none failed"
    # Neither kills, nor the number of workers, nor the engine change a score.
    assert (folder / SCORES_TABLE).read_bytes() == (finished / SCORES_TABLE).read_bytes()
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(tmp_path, number):
    command = [*COMMAND, "study", "--out", tmp_path / "s", *SMALL, "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "s").glob("runs/*/history.jsonl")):
        time.sleep(0.1)
    workers = workers_of(process.pid)
    assert workers
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted; run the same command to continue"
    assert "Traceback" not in err
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert not list((tmp_path / "s").rglob("*.part"))


def test_fine_tuning_starts_from_the_run_that_is_kept_for_it(tmp_path):
    seen = []

    def watched(jobs, workers):
        for event in inline(jobs, workers):
            if event.what == "done" and event.key in tuned:
                seen.append((tmp_path / "s/runs" / first).is_dir())
                assert not (tmp_path / "s/runs" / event.key / "first").exists()
            yield event

    tuned = {config.key for config in TUNED.runs() if config.method == "finetuned"}
    first = first_of(next(config for config in TUNED.runs() if config.key in tuned))
    study = run_study(TUNED, tmp_path / "s", engine=watched, quiet=True)
    assert seen == [True] * 3
    assert not (tmp_path / "s/runs").exists()
    # Where that folder is gone, the first phase is trained again, to the same scores.
    results = Results(dict(study.results.runs), dict(study.results.scores))
    key = next(iter(tuned))
    del study.results.runs[key]
    study.results.write(tmp_path / "s")
    assert run_study(TUNED, tmp_path / "s", engine=inline, quiet=True).results.scores == results.scores


def test_a_failed_run_is_recorded_and_the_others_go_on(tmp_path):
    """The folder of one run holds something else, the worker of another is killed: the rest is done all the same."""
    runs, folder = TUNED.runs(), tmp_path / "study"
    blocked = folder / "runs" / runs[0].key
    blocked.mkdir(parents=True)
    (blocked / "thesis.txt").write_text("years of work")
    (folder / "study.json").write_text(json.dumps(TUNED.to_json()))

    def deadly(jobs, workers):
        killed = False
        for event in local(jobs, workers):
            yield event
            if event.what == "start" and event.key == runs[-1].key and not killed:
                killed = True
                for pid in own_workers():
                    os.kill(pid, signal.SIGKILL)

    study = run_study(TUNED, folder, engine=deadly, workers=1, quiet=True)
    assert "holds other files" in study.failed[runs[0].key]
    assert "its process ended with code -9" in study.failed[runs[-1].key]
    assert len(study.runs) == len(runs) - 2
    assert (blocked / "thesis.txt").is_file()
    assert "2 failed" in write_report(study).read_text()
    # The next time, failed runs are tried again.
    assert {c.key for c in todo(TUNED, folder)} == {runs[0].key, runs[-1].key}
    shutil.rmtree(blocked)
    study = run_study(TUNED, folder, engine=inline, quiet=True)
    assert not study.failed
    assert not (folder / "errors").exists()
    assert len(study.runs) == len(runs)


def test_expected_time_is_that_of_similar_runs(finished):
    study = Study.open(finished)
    similar = [run.cpu_seconds for run in study.runs.values() if (run.method, len(run.tasks)) == ("esame", 3)]
    other = Config(dataset="another", method="esame", split=5)
    assert expected_seconds([other] * 3, study) == pytest.approx(3 * sum(similar) / len(similar))
    assert expected_seconds([other], None) is None


def test_linear_probes_of_a_study_of_version_0_1_have_a_c_of_1(finished, tmp_path):
    plain, study = run_study(replace(FLOORS, choose=None), tmp_path, engine=inline, quiet=True), Study.open(finished)
    (key,) = plain.runs
    linear = list(zip(study.results.scores[key], plain.results.scores[key], strict=True))
    assert all(s == p for s, p in linear if s.probe == "none")
    assert any(s != p for s, p in linear if s.probe == "linear")
    assert "C of linear probes chosen by validation loss" in caption(study)
    assert "C of linear probes" not in caption(plain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 1}, "batch_size: 3 tasks need at least 6 graphs per batch"),
        ({"weights": {"xx": 1.0}}, "weights: xx: not a task of every run"),
    ],
)
def test_what_no_run_could_do_is_rejected_before_any_run(change, message):
    with pytest.raises(InputError, match=message):
        check_dataset(replace(FLOORS, settings={**TINY, **change}), "planted", planted(20))


def test_a_dataset_that_is_too_large_for_a_study_is_rejected(monkeypatch):
    monkeypatch.setattr("same.probes.large.LARGE_BYTES", 2**10)
    with pytest.raises(InputError, match="--datasets: planted is too large for a study"):
        check_dataset(FLOORS, "planted", planted(20))


def test_a_dry_run_lists_what_is_left_and_does_nothing(finished, tmp_path):
    code, out, _ = same("study", "--out", tmp_path / "new", *SMALL, *OPTIONS, "--dry-run")
    assert code == 0
    assert out.splitlines()[-1].startswith("14 runs, 0 done, 14 to do")
    assert "unknown, no run is done yet" in out
    assert not (tmp_path / "new").exists()
    rows = json.loads(same("study", "--out", finished, "--splits", "0-2", "--dry-run", "--json")[1])
    assert [row["done"] for row in rows].count(True) == 14
    assert len(rows) == 21
    out = same("study", "--out", finished, "--splits", "0-2", "--dry-run")[1]
    assert re.search(r"21 runs, 14 done, 7 to do; .*about \d+ (s|min)", out.splitlines()[-1])


def test_a_study_continues_from_its_three_files_without_any_option(finished, tmp_path):
    folder = copied(finished, tmp_path)
    code, out, err = same("study", "--out", folder, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert (report["planned"], report["done"], report["failed"]) == (14, 14, {})
    (table,) = [table for table in report["tables"] if table["key"] == "overview"]
    cell = next(row for row in table["rows"] if row["model"] == "eSAME")
    assert cell["mean"] == pytest.approx(sum(cell["splits"].values()) / 2)
    assert {claim["holds"] for claim in report["claims"]} <= {True, False, None}
    assert json.loads(same("report", folder, "--json")[1]) == report
    assert (folder / SCORES_TABLE).read_bytes() == (finished / SCORES_TABLE).read_bytes()


def test_mistakes_are_reported_before_anything_is_written(finished, tmp_path):
    for arguments, message in [
        (("--questions", "Q9"), "--questions: 'Q9' is not one of"),
        (("--set", "widht=3"), "did you mean 'width'"),
        (("--splits", "0-20"), "--splits"),
        (("--engine", "magic"), "--engine: 'magic' is not one of local"),
        (("--datasets", "./none.zip"), "no such folder or file"),
    ]:
        code, _, err = same("study", "--out", tmp_path / "s", *arguments)
        assert code == 2, err
        assert message in err
        assert not (tmp_path / "s").exists()
    code, _, err = same("study", "--out", finished, *SMALL, "--budget", "small")
    assert code == 2
    assert "holds a study with other settings" in err
    code, _, err = same("report", tmp_path)
    assert code == 2
    assert "holds no study" in err


def test_events_of_an_engine_may_be_plain_tuples(tmp_path):
    def plain(jobs, workers):
        return (tuple(event) for event in inline(jobs, workers))

    assert len(run_study(FLOORS, tmp_path, engine=plain, quiet=True).runs) == 1
    assert Event("start", "key") == ("start", "key", None)
