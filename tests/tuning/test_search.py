"""Searches on the embedded dataset: interrupted, resumed, failing, stopped early, and blind to test graphs."""

import json
import logging
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

import same.experiment
from commands import COMMAND
from same.cli import app
from same.errors import DamagedError, InputError
from same.graphs import load, split
from same.tuning.samplers import SAMPLERS, random_search
from same.tuning.search import Tuning, read_search, write_search
from same.tuning.space import Parameter, Space
from same.tuning.stopping import MedianRule, scores_so_far
from same.tuning.tuned import read_tuned
from tuning.searches import SEARCH, SPACE, TINY, inline, outcomes, run_folder, run_search


def test_search_is_written_and_read(tmp_path):
    search = replace(SEARCH, split=2, settings={"weights": {"nc": 0.5}, "width": 8})
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


def test_progress_names_the_best_trial_so_far(tmp_path, capsys):
    best = run_search(tmp_path, 2, quiet=False).done[0]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 of 2 runs are done"
    assert lines[-1] == f"best of 2 trials: {100 * best.score:.1f} % (trial {best.number})"


def test_unpromising_trials_are_stopped_early(tuning):
    stopped = [trial for trial in tuning.trials if trial.state == "stopped"]
    assert stopped
    for trial in stopped:
        assert not (run_folder(tuning, trial) / "result.json").exists()
        assert trial.epochs < 4
        assert trial not in tuning.done


def test_killed_before_its_result_was_written_a_complete_trial_is_not_stopped(tuning, tmp_path, monkeypatch):
    """The last validation comes too late to stop a trial, whether its result has been written or not."""
    shutil.copytree(tuning.folder, tmp_path / "t")
    monkeypatch.setattr("same.tuning.search._rule", lambda *_: MedianRule(((4, 2.0),)))  # Stops all at the last epoch.
    assert {trial.state for trial in Tuning.open(tmp_path / "t").trials if trial.epochs == 4} == {"done"}
    for path in (tmp_path / "t").glob("runs/*/result.json"):
        path.unlink()
    states = {trial.state for trial in Tuning.open(tmp_path / "t").trials if trial.epochs == 4}
    assert states == {"open"}


def test_unasked_trials_of_the_last_round_are_not_part_of_the_search(tuning, tmp_path):
    shutil.copytree(tuning.folder, tmp_path / "t")
    more = run_search(tmp_path / "t", 9)  # A search grows; earlier trials stay the same.
    assert outcomes(more)[:8] == outcomes(tuning)
    assert len(read_search(tmp_path / "t")[1]) == 12
    assert outcomes(Tuning.open(tmp_path / "t")) == outcomes(more)


def test_interrupted_anywhere_a_search_ends_the_same(tuning, tmp_path):
    class KilledError(Exception):
        pass

    def deadly(events):
        def engine(jobs, workers):
            for number, event in enumerate(inline(jobs, workers)):
                if number == events:
                    raise KilledError
                yield event

        return engine

    for events in (0, 1, 3, 6, 2, 4):
        with suppress(KilledError):
            run_search(tmp_path, engine=deadly(events))
    assert outcomes(run_search(tmp_path)) == outcomes(tuning)


def test_killed_and_resumed_a_search_ends_the_same(tuning, tmp_path):
    """With kill -9, in other processes, and two workers."""
    (tmp_path / "space.json").write_text(json.dumps(SPACE.to_json()))
    settings = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    command = [COMMAND, "-q", "tune", "planted", "-m", "classical", "-t", "nc", "--trials", "8", "--workers", "2"]
    command += ["--sampler", "random", "--space-file", tmp_path / "space.json", "--out", tmp_path / "t", *settings]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list((tmp_path / "t").glob("runs/*/result.json"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # The workers notice and exit.
    result = CliRunner().invoke(app, [*map(str, command[1:]), "--json"])
    assert result.exit_code == 0
    assert outcomes(Tuning.open(tmp_path / "t")) == outcomes(tuning)
    page = (tmp_path / "t" / "report.html").read_text()
    assert CliRunner().invoke(app, ["report", str(tmp_path / "t")]).exit_code == 0
    assert (tmp_path / "t" / "report.html").read_text() == page
    assert json.loads(result.stdout)["best"]["score"] == tuning.done[0].score
    assert set(read_tuned(tmp_path)) == {"planted-classical-nc"}
    assert "<svg" in page


@pytest.mark.parametrize("damage", [b"", b"{", "flipped", "gone"])
def test_damaged_files_are_reported_and_made_again(tuning, tmp_path, caplog, damage):
    shutil.copytree(tuning.folder, tmp_path / "t")
    run = next(path for path in sorted((tmp_path / "t" / "runs").iterdir()) if (path / "result.json").is_file())
    for path in [tmp_path / "t" / "tune.json", *(run / n for n in ("result.json", "history.jsonl"))]:
        if damage == "gone":
            path.unlink() if path.name != "tune.json" else None
        else:
            _damage(path, damage)
    checkpoint = run / "checkpoint.safetensors"
    checkpoint.unlink() if damage == "gone" else _damage(checkpoint, damage)
    with caplog.at_level(logging.WARNING, "same"):
        assert outcomes(run_search(tmp_path / "t")) == outcomes(tuning)
    if damage != "gone":
        for name in ("tune.json", "result.json", "checkpoint.safetensors"):
            assert f"{name}: is damaged" in caplog.text
    assert (run / "history.jsonl").read_bytes() == (tuning.folder / "runs" / run.name / "history.jsonl").read_bytes()


def _damage(path, damage):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 2
    path.write_bytes(content if damage == "flipped" else damage)


def test_order_in_which_trials_finish_does_not_matter(tuning, tmp_path):
    def shuffled(jobs, workers):
        yield from inline(random.Random(1).sample(jobs, len(jobs)), workers)

    assert outcomes(run_search(tmp_path, engine=shuffled)) == outcomes(tuning)


def test_test_graphs_are_never_read(tmp_path, monkeypatch):
    """Spoil everything in the test graphs except their classes, which stratify the splits: nothing changes."""
    space = Space((*SPACE.parameters, Parameter("degree", choices=(0, 4)), Parameter("pair", choices=("symmetric",))))
    search = replace(SEARCH, method="esame", tasks=("gc", "nc", "lp"), space=space)
    plain = run_search(tmp_path / "plain", 5, search)

    def spoil(part):
        def load_spoiled(source, data=None):
            store = load(source, data)
            return _spoil(store, getattr(split(store, 0), part))

        monkeypatch.setattr(same.experiment, "load", load_spoiled)

    spoil("test")
    assert outcomes(run_search(tmp_path / "spoiled", 5, search)) == outcomes(plain)
    for run in (tmp_path / "plain" / "runs").iterdir():
        other = tmp_path / "spoiled" / "runs" / run.name
        assert (run / "history.jsonl").read_text() == (other / "history.jsonl").read_text()
        a, b = (load_file(folder / "checkpoint.safetensors") for folder in (run, other))
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not list(tmp_path.rglob("evaluation.json"))
    spoil("validation")  # A search that reads spoiled graphs fails.
    with pytest.raises(InputError, match="all of the first 1 trials failed; trial 0: "):
        run_search(tmp_path / "noticed", 1, search)


def _spoil(store, graphs):
    """NaN attributes, reversed node classes, and random edges."""
    x, node_y, edges = np.array(store.x), np.array(store.node_y), np.array(store.edges)
    rng = np.random.default_rng(0)
    for g in graphs:
        nodes, links = (slice(p[g], p[g + 1]) for p in (store.node_ptr, store.edge_ptr))
        x[nodes] = np.nan
        node_y[nodes] = node_y[nodes].max() - node_y[nodes]
        edges[:, links] = rng.permutation(edges[:, links].reshape(-1)).reshape(2, -1)
    assert np.isnan(x).any()
    labels = {**store.labels, "node_y": replace(store.labels["node_y"], y=node_y)}
    return replace(store, x=x, labels=labels, edges=edges)


def test_samplers_learn_of_failed_trials_and_the_search_continues(tmp_path, monkeypatch):
    calls = []

    def recording(space, seed, records, count):
        calls.append(records)
        return random_search(space, seed, records, count)

    monkeypatch.setitem(SAMPLERS, "random", recording)
    search = replace(SEARCH, method="esame", space=Space((Parameter("inner_lr", choices=(0.1, 1e38)),)))
    tuning = run_search(tmp_path, 6, search)
    failed = [trial for trial in tuning.trials if trial.state == "failed"]
    assert 0 < len(failed) < 6
    assert all("is not finite" in trial.error and trial.values["inner_lr"] == 1e38 for trial in failed)
    assert len(tuning.trials) == 6
    assert [(trial.values, trial.score) for trial in tuning.trials[:4]] == calls[1]
    assert {score is None for values, score in calls[1] if values["inner_lr"] == 1e38} == {True}
    stamp = (tmp_path / "errors").stat().st_mtime_ns
    assert outcomes(run_search(tmp_path, 6, search)) == outcomes(tuning)  # Failed trials are not repeated.
    assert (tmp_path / "errors").stat().st_mtime_ns == stamp


def test_early_stopping_can_be_switched_off(tuning, tmp_path):
    patient = run_search(tmp_path, search=replace(SEARCH, stop_early=False))
    assert {trial.state for trial in patient.trials} == {"done"}
    assert [t.values for t in patient.trials] == [t.values for t in tuning.trials]


def test_round_size_is_part_of_the_search(tmp_path):
    """All trials of a round are submitted at once."""
    submitted = []

    def counting(jobs, workers):
        submitted.append(len(jobs))
        return inline(jobs, workers)

    wide = replace(SEARCH, round=8)
    tuning = run_search(tmp_path / "wide", search=wide, engine=counting)
    assert submitted == [8]
    assert len(tuning.trials) == 8
    assert read_search(tmp_path / "wide")[0] == wide
    with pytest.raises(InputError, match="contains a search with different round"):
        run_search(tmp_path / "wide")
