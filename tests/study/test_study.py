"""Whole studies on the embedded set, killed and resumed, and their page in a real browser."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import COMMAND, same
from same.cli import app
from same.config import Config
from same.errors import InputError
from same.probes.evaluate import evaluate_run
from same.study.engine import Job, local
from same.study.plan import Plan
from same.study.report import _learning_curves, write_report
from same.study.results import Study
from same.study.run import expected_seconds, run_study, todo
from same.study.tables import caption
from same.training import read_history

TINY = ("--set", "width=8", "--set", "max_epochs=2", "--set", "batch_size=100", "--set", "validation_episodes=1")
SMALL = ("--datasets", "planted", "--questions", "overview,Q1", "--tasks", "gc,gc+nc+lp", "--splits", "0-1")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def tables_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((folder / "tables").iterdir())}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "whole"
    code, out, err = same("study", "--out", folder, *SMALL, *TINY)
    assert code == 0, err
    assert out.splitlines()[-1] == "14 of 14 runs are done, none failed"
    return folder


def test_a_study_leaves_tables_in_every_form(finished):
    names = {path.name for path in (finished / "tables").iterdir()}
    assert {"overview.csv", "overview.tex", "table1.csv", "floors.csv", "released.csv"} <= names
    assert "not run" not in (finished / "tables" / "overview.csv").read_text()
    assert "## Table 1 (Q1)" in (finished / "report.md").read_text()
    assert (finished / "figures" / "curves-planted.svg").read_text().startswith("<svg")


def test_a_question_that_is_asked_later_has_its_networks(finished, tmp_path):
    folder = tmp_path / "grown"
    shutil.copytree(finished, folder)
    before = Study.open(folder)
    assert not any(row["probe"] == "network" for run in before.runs.values() for row in run.rows["paper"])
    small = [value.replace("overview,Q1", "fig1") for value in SMALL]
    code, _, err = same("study", "--out", folder, *small, *TINY)
    assert code == 0, err
    study = Study.open(folder)
    for method, tasks in (("untrained", ("gc", "nc", "lp")), ("classical", ("gc",))):
        assert set(study.scores("planted", method, tasks, "nc", "network")) == {0, 1}
    # Nothing was trained again, and what was told before is told the same.
    for key, run in before.runs.items():
        assert study.runs[key].training == run.training
        assert [row for row in study.runs[key].rows["paper"] if row["probe"] != "network"] == run.rows["paper"]


def test_what_cannot_be_evaluated_again_has_failed(finished, tmp_path):
    folder = tmp_path / "grown"
    shutil.copytree(finished, folder)
    there = Study.open(folder)
    plan = replace(there.plan, questions=("fig1",), methods=("classical",), tasks=(("gc",),))

    def broken(jobs, workers):
        for job in jobs:
            yield "start", job.config.key, None
            yield "failed", job.config.key, "no memory"

    study = run_study(plan, folder, engine=broken, quiet=True)
    asked = {config.key for config in plan.runs()}
    assert set(study.failed) == {config.key for config in study.missing(plan)} == asked
    assert len(study.runs) == len(there.runs)
    assert "in brackets of how many if fewer" in caption(study)
    assert "in brackets" not in caption(there)


def test_curves_are_losses_whatever_training_stops_on(finished, monkeypatch):
    def by_score(folder):
        return [record | {"objective": -1e6} for record in read_history(folder)]

    study = Study.open(finished)
    drawn = _learning_curves(study)
    monkeypatch.setattr("same.training.read_history", by_score)
    assert _learning_curves(study) == drawn
    assert drawn


def test_a_second_call_does_nothing_again(finished):
    stamps = {path: path.stat().st_mtime_ns for path in finished.glob("runs/*/*")}
    code, out, _ = same("study", "--out", finished, *SMALL, *TINY)
    assert code == 0
    assert {path: path.stat().st_mtime_ns for path in finished.glob("runs/*/*")} == stamps
    assert out.splitlines()[-1] == "14 of 14 runs are done, none failed"


def test_killed_and_resumed_it_ends_in_the_same_tables(finished, tmp_path):
    command = [COMMAND, "study", "--out", tmp_path / "killed", *SMALL, *TINY, "--workers", "2"]
    for wanted in (3, 8):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(list((tmp_path / "killed").glob("runs/*/evaluation.json"))) < wanted:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(1.5)  # The workers notice, and end.
        assert not _workers_of(process.pid)
    done = len(list((tmp_path / "killed").glob("runs/*/evaluation.json")))
    assert 8 <= done < 14
    subprocess.run(command, check=True, capture_output=True)
    assert tables_of(tmp_path / "killed") == tables_of(finished)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(tmp_path, number):
    command = [COMMAND, "study", "--out", tmp_path / "s", *SMALL, "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "s").glob("runs/*/history.jsonl")):
        time.sleep(0.1)
    workers = _workers_of(process.pid)
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


def _workers_of(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
            if re.search(rf"^PPid:\s+{parent}$", status.read_text(), re.MULTILINE) and b"spawn_main" in command:
                found.append(int(status.parent.name))
        except OSError:
            continue
    return found


def test_workers_do_not_change_results(finished, tmp_path):
    code, _, err = same("study", "--out", tmp_path / "one", *SMALL, *TINY, "--workers", 1)
    assert code == 0, err
    assert tables_of(tmp_path / "one") == tables_of(finished)


def test_a_dry_run_says_what_is_to_do_and_does_nothing(finished, tmp_path):
    code, out, _ = same("study", "--out", tmp_path / "new", *SMALL, *TINY, "--dry-run")
    assert code == 0
    assert out.splitlines()[-1].startswith("14 runs, 0 done, 14 to do")
    assert "unknown, no run is done yet" in out
    assert not (tmp_path / "new").exists()
    more = [*SMALL[:-1], "0-2"]
    code, out, _ = same("study", "--out", finished, *more, *TINY, "--dry-run")
    assert out.splitlines()[-1].startswith("21 runs, 14 done, 7 to do")
    assert re.search(r"about \d+ (s|min)", out)


def test_a_study_and_its_report_as_json(finished):
    code, out, _ = same("report", finished, "--json")
    found = json.loads(out)
    assert code == 0
    assert Path(found["report"]) == finished / "report.html"
    assert (found["planned"], found["done"], found["failed"]) == (14, 14, {})
    (table,) = [table for table in found["tables"] if table["key"] == "overview"]
    cell = next(row for row in table["rows"] if row["model"] == "eSAME")
    assert cell["mean"] == pytest.approx(sum(cell["splits"].values()) / 2)
    assert {claim["holds"] for claim in found["claims"]} <= {True, False, None}
    assert json.loads(same("study", "--out", finished, *SMALL, *TINY, "--json")[1]) == found
    rows = json.loads(same("study", "--out", finished, *SMALL[:-1], "0-2", *TINY, "--dry-run", "--json")[1])
    assert [row["done"] for row in rows].count(True) == 14
    assert len(rows) == 21


def test_a_study_grows(tmp_path):
    arguments = ("--datasets", "planted", "--questions", "overview", "--methods", "esame", *TINY)
    for splits in ("0", "1"):
        code, out, err = same("study", "--out", tmp_path / "s", *arguments, "--splits", splits)
        assert code == 0, err
    assert out.splitlines()[-1] == "4 of 4 runs are done, none failed"
    assert "over 2 splits" in (tmp_path / "s" / "report.md").read_text()
    # What was planned before and is not asked for now stays planned, and undone.
    gone = next(p.parent for p in tmp_path.glob("s/runs/*/result.json"))
    shutil.rmtree(gone)
    split = next(c.split for c in Study.open(tmp_path / "s").plan.runs() if c.key == gone.name)
    assert same("study", "--out", tmp_path / "s", *arguments, "--splits", 1 - split)[0] == 0
    assert not gone.exists()
    code, out, _ = same("study", "--out", tmp_path / "s", *arguments, "--splits", split)
    assert out.splitlines()[-1] == "4 of 4 runs are done, none failed"
    # Damage that is said, and repaired.
    (broken,) = [p for p in tmp_path.glob("s/runs/*/result.json") if '"epochs": 2' in p.read_text()][:1]
    broken.write_text("{")
    (broken.parent / "evaluation.json").write_bytes(b"")
    (tmp_path / "s" / "study.json").write_text("{")
    code, _, err = same("report", tmp_path / "s")
    assert code == 2
    assert "study.json: is damaged" in err
    code, out, err = same("study", "--out", tmp_path / "s", *arguments, "--splits", "0-1")
    assert code == 0, err
    assert out.splitlines()[-1] == "4 of 4 runs are done, none failed"
    for damaged in ("study.json", "result.json", "evaluation.json"):
        assert f"{damaged}: is damaged" in err
    # The page needs the sets for a picture only.
    assert same("report", tmp_path / "s", "--data", tmp_path)[0] == 0


def test_a_set_that_is_too_large_for_a_study_is_refused_before_any_run(tmp_path, monkeypatch):
    monkeypatch.setattr("same.probes.large.LARGE_BYTES", 2**20)
    found = CliRunner().invoke(app, ["study", "--out", str(tmp_path / "s"), *SMALL])
    assert isinstance(found.exception, InputError)
    assert str(found.exception).startswith("--datasets: planted is too large for a study")
    assert not (tmp_path / "s").exists()


def test_settings_win_over_the_budget_and_runs_keep_apart():
    from same.study.plan import Plan

    assert {c.width for c in Plan(budget="small", settings=(("width", 8),)).runs()} == {8}
    with pytest.raises(InputError, match="--set: method tells the runs of a study apart"):
        Plan(settings=(("method", "esame"),))


def test_linear_probes_of_a_study_choose_their_c_if_it_is_asked_for(tmp_path):
    command = (
        "study",
        "--out",
        tmp_path / "s",
        "--datasets",
        "planted",
        "--questions",
        "floors",
        "--splits",
        "0",
        *TINY,
    )
    code, _, err = same(*command, "--choose-c", "loss")
    assert code == 0, err
    (folder,) = (tmp_path / "s" / "runs").iterdir()
    kept = [row for row in json.loads((folder / "evaluation.json").read_text())["paper"] if row["probe"] == "linear"]
    chosen, plain = (
        [asdict(row) for row in evaluate_run(folder, probes=("linear",), choose_c=c) if row.probe == "linear"]
        for c in ("loss", None)
    )
    assert kept == chosen != plain
    written = (tmp_path / "s" / "report.md").read_text()
    assert "C of linear probes chosen by loss (LP: ROC AUC) on validation graphs" in written
    assert "≈ within the published spread" in written
    assert "Claims" not in written  # There are none without a question.
    code, _, err = same(*command)
    assert code == 2
    assert "choose_c loss" in err


def test_mistakes_are_said_before_anything_is_written(finished, tmp_path):
    for arguments, message in [
        (("--questions", "Q9"), "--questions: 'Q9' is not one of"),
        (("--choose-c", "luck"), "--choose-c: 'luck' is not one of loss, score"),
        (("--set", "widht=3"), "did you mean 'width'"),
        (("--splits", "0-20"), "--splits"),
        (("--engine", "magic"), "--engine: 'magic' is not one of local"),
        (("--datasets", "./none.zip"), "no such folder or file"),
        (("--datasets", "planted", "--set", "batch_size=1"), "batch_size: 3 tasks need at least 6"),
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


PLAN = Plan(
    questions=("Q2",),
    datasets=("planted",),
    methods=("finetuned",),
    splits=(0,),
    settings=(("batch_size", 100), ("max_epochs", 1), ("width", 8)),
)


def test_a_run_waits_for_the_one_it_starts_from(tmp_path):
    order = []
    pending = PLAN.runs()
    jobs = [Job(c, tmp_path / c.key, None, None) for c in pending if c.method != "finetuned"]
    jobs = [Job(c, tmp_path / c.key, None, _first(c)) for c in pending if c.method == "finetuned"] + jobs
    for what, key, _ in local(jobs, 2):
        if what in ("start", "done"):
            order.append((what, key))
    classical = next(c for c in pending if c.method == "classical")
    for config in pending:
        if config.method == "finetuned":
            assert order.index(("done", classical.key)) < order.index(("start", config.key))
            assert not (tmp_path / config.key / "first").exists()


def _first(config):
    from same.study.plan import first_of

    return first_of(config)


def test_a_failed_run_is_recorded_and_the_others_go_on(tmp_path):
    """One run's folder holds something else, another one's worker is killed: the rest is done all the same."""
    runs = PLAN.runs()
    blocked = tmp_path / "study" / "runs" / runs[0].key
    (blocked).mkdir(parents=True)
    (blocked / "thesis.txt").write_text("years of work")
    (tmp_path / "study" / "study.json").write_text(json.dumps(PLAN.to_json()))

    def deadly(jobs, workers):
        killed = False
        for event in local(jobs, workers):
            yield event
            if event[0] == "start" and event[1] == runs[-1].key and not killed:
                killed = True
                for pid in _workers_of(os.getpid()):
                    os.kill(pid, signal.SIGKILL)

    study = run_study(PLAN, tmp_path / "study", engine=deadly, workers=1, quiet=True)
    assert "holds other files" in study.failed[runs[0].key]
    assert "its process ended with code -9" in study.failed[runs[-1].key]
    assert len(study.runs) == len(runs) - 2
    page = write_report(study).read_text()
    assert "2 failed" in page
    # The next time, what failed is tried again.
    assert {c.key for c in todo(PLAN, tmp_path / "study")} == {runs[0].key, runs[-1].key}
    shutil.rmtree(blocked)
    study = run_study(PLAN, tmp_path / "study", workers=1, quiet=True)
    assert not study.failed
    assert len(study.runs) == len(runs)


def test_expected_time_is_that_of_like_runs(finished):
    study = Study.open(finished)
    like = [r for r in study.runs.values() if (r.config.method, len(r.config.tasks)) == ("esame", 3)]
    seconds = [r.training["seconds"] + r.rows["seconds"] for r in like]
    other = Config(dataset="planted", method="esame", split=5)
    assert expected_seconds([other] * 3, study) == pytest.approx(3 * sum(seconds) / len(seconds))
    assert expected_seconds([other], None) is None


def test_the_page_needs_no_network_and_escapes_what_comes_from_data(finished, tmp_path):
    page = (finished / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    evil = tmp_path / "<img src=x onerror=alert(1)>"
    plan = Plan(questions=("overview",), datasets=(str(evil),), splits=(0,))
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text(json.dumps(plan.to_json()))
    page = write_report(Study.open(tmp_path / "study")).read_text()
    assert "<img" not in page
    assert "&lt;img" in page


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to look at the page with")
def test_the_page_works_in_a_browser(finished, tmp_path):
    """It renders, its tables sort, and nothing is said on the console."""
    page = (finished / "report.html").read_text()
    watch = "<script>window.errors = []; addEventListener('error', e => errors.push(e.message));</script>"
    act = """<script>
      const table = document.querySelector('#overview + p + div table');
      const column = () => [...table.tBodies[0].rows].map(r => parseFloat(r.cells[2].dataset.value));
      const before = column();
      table.tHead.rows[0].cells[2].querySelector('button').click();
      const up = column();
      table.tHead.rows[0].cells[2].querySelector('button').click();
      const found = {before, up, down: column(), errors, figures: document.querySelectorAll('figure svg').length,
                     wide: document.documentElement.scrollWidth - innerWidth};
      document.body.innerHTML = '<pre id="found">' + JSON.stringify(found) + '</pre>';
    </script>"""
    (tmp_path / "page.html").write_text(page.replace("<head>", "<head>" + watch).replace("</body>", act + "</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    run = subprocess.run(
        [BROWSER, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--window-size=400,800",
         "--dump-dom", f"file://{tmp_path / 'page.html'}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', run.stdout)[1])
    assert found["errors"] == []
    assert "CONSOLE" not in run.stderr
    assert found["up"] == sorted(found["before"])
    assert found["down"] == sorted(found["before"], reverse=True)
    assert found["figures"] >= 3
    assert found["wide"] <= 0


def test_the_demo_shows_training_above_the_floors(tmp_path):
    code, out, err = same("demo", "--out", tmp_path / "demo")
    assert code == 0, err
    rows = {}
    for line in out.splitlines():
        cells = [c.strip() for c in line.split("│")[1:-1]]
        if len(cells) == 5:
            rows[cells[0], cells[1]] = [float(c.split()[0]) for c in cells[2:]]
    for method in ("iSAME", "eSAME", "Cl"):
        trained = rows[method, "linear probe"]
        for floor in (rows["majority", ""], rows["raw features", "linear probe"], rows["untrained", "linear probe"]):
            assert all(t > f for t, f in zip(trained, floor, strict=True)), (method, rows)
    assert (tmp_path / "demo" / "planted.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "study" / "report.html").is_file()
