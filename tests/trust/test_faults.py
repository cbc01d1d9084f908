"""Nothing is lost to kills, signals, full disks, damaged files or two processes at once."""

import errno
import json
import os
import random
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from same import files
from same.errors import InputError
from same.experiment import run
from same.files import atomic, load_tensors, read_json
from same.saved import load_trained, read_history
from same.study.plan import Plan, remember
from same.tuning.search import Search, resume
from same.tuning.space import Parameter, Space
from trust.bad_data import run_command
from trust.faults import (
    CONFIG,
    DAMAGED,
    HARMS,
    LIMITS,
    SAME,
    captured_warnings,
    command,
    damage_run,
    harm,
    is_left_over,
    kill_at_random,
    make_runs,
    outcome,
    second_of_two,
    signalled,
    without_room,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    make_runs(folder)
    return folder


@pytest.mark.parametrize(("which", "name"), DAMAGED, ids=lambda part: part)
def test_a_damaged_file_of_a_run_is_reported_and_repaired(runs, tmp_path, which, name):
    rng = random.Random(f"{which} {name}")
    for kind in (*HARMS, "flipped", "truncated"):
        same, warned = damage_run(runs, which, name, kind, rng, tmp_path)
        assert same, kind
        # A run without a result is not finished, and a deleted checkpoint may never have existed. The checkpoint of
        # a finished run is not used, nor is the one before a valid checkpoint.
        needed = (which, name) != ("finished", "checkpoint.safetensors") and "previous" not in name
        expected = needed and (kind != "deleted" or name not in ("result.json", "checkpoint.safetensors"))
        assert warned or kind == "flipped" or not expected, kind


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "result.json"])
def test_a_finished_run_with_a_flipped_bit_is_not_used(runs, tmp_path, name):
    good, rng, refused = load_trained(runs / "finished"), random.Random(name), []
    for i in range(12):
        place = tmp_path / f"{i}"
        shutil.copytree(runs / "finished", place)
        harm(place / name, "flipped", rng)
        try:
            loaded = load_trained(place)
        except InputError as error:
            refused.append(str(error))
        else:  # The bit was in a space, or in the name of the checksum.
            assert loaded.config == good.config
            tensors, expected = loaded.tensors(), good.tensors()
            assert all(torch.equal(tensors[key], expected[key]) for key in expected)
    assert len(refused) > 6
    assert all(name in line and "\n" not in line for line in refused)


def test_partial_files_are_removed_at_the_next_start(runs, tmp_path):
    shutil.copytree(runs / "stopped", tmp_path / "run")
    (tmp_path / "run" / ".result.json.0a1b2c3d.part").write_bytes(b"half")
    for name in (".mine", ".download.part"):
        (tmp_path / "run" / name).write_text("stays")
    run(CONFIG, tmp_path / "run")
    hidden = sorted(path.name for path in (tmp_path / "run").iterdir() if path.name.startswith("."))
    assert hidden == [".download.part", ".mine"]


def test_a_folder_left_by_a_kill_in_the_first_write_is_accepted(tmp_path):
    space = Space((Parameter("layers", low=1, high=3),))
    begin = {
        "train": lambda folder: run(CONFIG, folder),
        "study": lambda folder: remember(Plan(questions=("Q1",), datasets=("planted",)), folder),
        "tune": lambda folder: resume(Search("planted", "esame", ("gc",), space, sampler="random"), folder),
    }
    for verb, start in begin.items():
        (tmp_path / verb).mkdir()
        (tmp_path / verb / ".first.json.0a1b2c3d.part").write_text("{")
        start(tmp_path / verb)


@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_nothing_is_removed_from_a_folder_that_is_refused(tmp_path, verb):
    (tmp_path / "deep").mkdir()
    for name in ("thesis.txt", ".thesis.0a1b2c3d.part", "deep/.thesis.0a1b2c3d.part"):
        (tmp_path / name).write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    code, err = run_command(command(verb, tmp_path)[len(SAME) :])
    assert code == 2
    assert "holds other files; choose another folder" in err.splitlines()[-1]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("verb", ["train", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("study", "tune"))])
def test_the_second_of_two_processes_is_refused(tmp_path, verb):
    code, err = second_of_two(verb, tmp_path / "out")
    assert code == 2, err
    assert "another process is working here" in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "limit", [pytest.param(limit, marks=[pytest.mark.slow] * ("disk" in limit)) for limit in LIMITS]
)
def test_a_full_disk_is_reported_and_the_run_continues_later(tmp_path, limit):
    result = without_room(limit, tmp_path / "disk")
    if result is None:
        pytest.skip("needs a mount namespace")
    code, err = result
    assert code == 2, err
    last = err.splitlines()[-1]
    # Which file is the first that does not fit depends on the size of pages.
    full = r"run/(checkpoint.safetensors|history.jsonl): the disk is full; free some space"
    expected = r"run: cannot be written \(Read-only" if "read-only" in limit else full
    assert re.match(f"same: .*{expected}", last), last
    assert "Traceback" not in err
    assert not any(map(is_left_over, tmp_path.rglob("*")))
    again = [*command("train", tmp_path / "disk" / "run"), "--set", "max_epochs=3"]
    assert run_command(again[len(SAME) :])[0] == 0


@pytest.mark.parametrize(
    ("number", "message"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "cannot be written"), (errno.EIO, None)]
)
def test_a_failed_write_is_reported_and_leaves_nothing(runs, tmp_path, monkeypatch, number, message):
    shutil.copytree(runs / "stopped", tmp_path / "run")
    before = {path.name for path in (tmp_path / "run").iterdir()}

    def refuse(self, *args, **kwargs):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(files.Path, "write_text", refuse)
    with pytest.raises(InputError if message else OSError, match=message):
        run(CONFIG, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == before
    monkeypatch.undo()
    run(CONFIG, tmp_path / "run")


@pytest.fixture
def nobody():
    """Run as a user to whom a folder can be read-only, and give a folder of that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid():
            yield folder
            return
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(0)


def test_a_read_only_folder_is_reported(nobody):
    run(CONFIG, nobody / "good")
    nobody.chmod(0o555)
    with pytest.raises(InputError, match="new: cannot be written"):
        run(CONFIG, nobody / "new")
    with pytest.raises(InputError, match="file: cannot be written"), atomic(nobody / "file"):
        pass
    (nobody / "good" / "result.json").unlink()
    (nobody / "good").chmod(0o555)
    with pytest.raises(InputError, match="cannot be written"):
        run(CONFIG, nobody / "good")
    for folder in (nobody, nobody / "good"):
        folder.chmod(0o755)
    run(CONFIG, nobody / "good")


def test_a_pipe_or_folder_is_not_replaced(tmp_path):
    """A pipe stands for everything that is not a regular file, such as devices."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    for name, what in (("pipe", "not a regular file"), ("link", "not a regular file"), ("folder", "a folder")):
        with pytest.raises(InputError, match=f"{name}: is {what}; choose another name"), atomic(tmp_path / name):
            pass
    for verb in ("train", "study", "tune"):
        code, err = run_command(command(verb, tmp_path / "pipe")[len(SAME) :])
        assert code == 2
        assert "pipe: cannot be written" in err.splitlines()[-1]
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_a_run_with_two_damaged_checkpoints_starts_again_and_ends_the_same(runs, tmp_path):
    shutil.copytree(runs / "stopped", tmp_path / "run")
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (tmp_path / "run" / name).write_bytes(b"\0" * 99)
    with captured_warnings() as lines:
        run(CONFIG, tmp_path / "run")
    assert len([line for line in lines if "continuing from an earlier state" in line]) == 2
    a, b = (load_tensors(place / "model.safetensors")[0] for place in (runs / "finished", tmp_path / "run"))
    assert all((a[name] == b[name]).all() for name in a)


def test_a_run_without_checksums_is_accepted(runs, tmp_path):
    """Early versions wrote none."""
    place = tmp_path / "run"
    shutil.copytree(runs / "finished", place)
    result = read_json(place / "result.json")
    del result["files"]
    (place / "result.json").write_text(json.dumps(result))
    for name in ("model.safetensors", "checkpoint.safetensors"):
        tensors, header = load_tensors(place / name)
        header.pop("key", None)
        save_file(tensors, place / name, {"state": json.dumps(header)} if header else None)
    with captured_warnings() as lines:
        assert run(CONFIG, place) == result
        assert load_trained(place).config == CONFIG
        assert read_history(place) == read_history(runs / "finished")
    assert not lines


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_commands_killed_at_random_moments_continue(tmp_path, verb):
    campaign = kill_at_random(verb, 4, 0, tmp_path)
    assert campaign.survived == campaign.injected == 4


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_signals_stop_a_command_within_seconds(tmp_path, verb, number):
    seconds, code, err = signalled(verb, number, tmp_path / "out")
    assert code == 130
    assert "run the same command to continue" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert seconds < 20  # Also on a busy machine.


def test_outcomes_of_different_runs_differ(runs, tmp_path):
    run(CONFIG.model_copy(update={"seed": 1}), tmp_path / "other")
    assert outcome("train", runs / "finished") != outcome("train", tmp_path / "other")
