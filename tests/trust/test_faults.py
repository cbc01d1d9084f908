"""Nothing is lost: kills, signals, full disks, damaged files and two processes at once."""

import errno
import json
import os
import random
import re
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from same import files
from same.errors import DamagedError, InputError
from same.experiment import run
from same.files import atomic, clean, load_tensors, locked, read_json, save_tensors, seal, unseal, write_json
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
    command,
    damage_run,
    harm,
    heard,
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
def test_a_damaged_file_of_a_run_is_said_and_mended(runs, tmp_path, which, name):
    rng = random.Random(f"{which} {name}")
    for how in (*HARMS, "flipped", "truncated"):
        same, said = damage_run(runs, which, name, how, rng, tmp_path)
        assert same, how
        # A run without a result is not finished, and a deleted checkpoint may never have been there. What a finished
        # run's checkpoint holds is not used, and what comes before a sound one neither.
        needed = (which, name) != ("finished", "checkpoint.safetensors") and "previous" not in name
        expected = needed and (how != "deleted" or name not in ("result.json", "checkpoint.safetensors"))
        assert said or how == "flipped" or not expected, how


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "result.json"])
def test_a_finished_run_with_a_flipped_bit_is_not_used(runs, tmp_path, name):
    good, rng, refused = load_trained(runs / "finished"), random.Random(name), []
    for i in range(12):
        place = tmp_path / f"{i}"
        shutil.copytree(runs / "finished", place)
        harm(place / name, "flipped", rng)
        try:
            found = load_trained(place)
        except InputError as error:
            refused.append(str(error))
        else:  # In a space, or in the name of the checksum.
            assert found.config == good.config
            assert all((found.state[key] == good.state[key]).all() for key in good.state)
    assert len(refused) > 6
    assert all(name in line and "\n" not in line for line in refused)


def test_sealed_values_come_back_or_not_at_all(tmp_path):
    values = {"a": [1, 2.5, None], "b": {"ü": "x"}, "c": (1, 2)}
    write_json(tmp_path / "a.json", values)
    assert read_json(tmp_path / "a.json") == {**values, "c": [1, 2]}
    text = seal(values)
    assert unseal(json.dumps({"a": 1})) == {"a": 1}  # Without a checksum, as older versions wrote it.
    for i, letter in enumerate(text):
        other = text[:i] + chr(ord(letter) ^ 1) + text[i + 1 :]
        try:
            found = unseal(other)
        except ValueError:
            continue
        assert {key: found[key] for key in values if key in found} == json.loads(json.dumps(values))
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(DamagedError, match=r"a\.json: is damaged"):
        read_json(tmp_path / "a.json")


def test_tensors_of_every_kind_come_back(tmp_path):
    tensors = {
        "empty": torch.empty(0, 3, dtype=torch.float64),
        "scalar": torch.tensor(3),
        "bool": torch.tensor([True]),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "turned": torch.arange(6.0).reshape(2, 3).T.contiguous(),
    }
    save_tensors(tensors, tmp_path / "file", {"a": 1})
    found, about = load_tensors(tmp_path / "file")
    assert about == {"a": 1}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in tensors.items())


def test_what_was_left_half_written_is_removed_at_the_next_start(runs, tmp_path):
    shutil.copytree(runs / "stopped", tmp_path / "run")
    (tmp_path / "run" / ".result.json.0a1b2c3d.part").write_bytes(b"half")
    for name in (".mine", ".download.part"):
        (tmp_path / "run" / name).write_text("stays")
    run(CONFIG, tmp_path / "run")
    there = sorted(path.name for path in (tmp_path / "run").iterdir() if path.name.startswith("."))
    assert there == [".download.part", ".mine"]
    half = tmp_path / ".store.0a1b2c3d.part"
    half.mkdir()
    clean(tmp_path, seconds=60)
    assert half.is_dir()
    clean(tmp_path)
    assert not half.exists()


def test_killed_in_its_first_write(tmp_path):
    """What was left there is no reason to refuse the folder."""
    space = Space((Parameter("layers", low=1, high=3),))
    begin = {
        "train": lambda folder: run(CONFIG, folder),
        "study": lambda folder: remember(Plan(questions=("Q1",), datasets=("planted",)), folder),
        "tune": lambda folder: resume(Search("planted", "esame", ("gc",), space, sampler="random"), folder),
    }
    for verb, it in begin.items():
        (tmp_path / verb).mkdir()
        (tmp_path / verb / ".first.json.0a1b2c3d.part").write_text("{")
        it(tmp_path / verb)


@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_nothing_is_removed_from_a_folder_that_is_refused(tmp_path, verb):
    (tmp_path / "deep").mkdir()
    for name in ("thesis.txt", ".thesis.0a1b2c3d.part", "deep/.thesis.0a1b2c3d.part"):
        (tmp_path / name).write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    code, said = run_command(command(verb, tmp_path)[len(SAME) :])
    assert code == 2
    assert "holds other files; choose another folder" in said.splitlines()[-1]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_is_for_one_process_at_a_time(tmp_path):
    with locked(tmp_path / "new"):
        with pytest.raises(InputError, match="another process is at work here"), locked(tmp_path / "new", wait=0.2):
            pass
        (tmp_path / "new" / "file").write_text("")
    with locked(tmp_path / "new"), locked(tmp_path / "empty"):
        pass
    assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "empty").exists()


def test_a_folder_that_cannot_be_locked_is_said(tmp_path, monkeypatch):
    import fcntl

    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with heard() as said, locked(tmp_path):
        pass
    assert "cannot be locked (No locks available)" in said[0]


@pytest.mark.parametrize("verb", ["train", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("study", "tune"))])
def test_the_second_of_two_processes_is_told(tmp_path, verb):
    code, said = second_of_two(verb, tmp_path / "out")
    assert code == 2, said
    assert "another process is at work here" in said.splitlines()[-1]
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "limit", [pytest.param(limit, marks=[pytest.mark.slow] * ("disk" in limit)) for limit in LIMITS]
)
def test_no_room_is_said_and_the_run_goes_on_when_there_is_some(tmp_path, limit):
    found = without_room(limit, tmp_path / "here")
    if found is None:
        pytest.skip("needs a mount namespace")
    code, said = found
    assert code == 2, said
    last = said.splitlines()[-1]
    # Which file is the first that finds no room is a matter of pages.
    full = r"run/(checkpoint.safetensors|history.jsonl): the disk is full; free some space"
    expected = r"run: cannot be written \(Read-only" if "read-only" in limit else full
    assert re.match(f"same: .*{expected}", last), last
    assert "Traceback" not in said
    assert not any(map(is_left_over, tmp_path.rglob("*")))
    again = [*command("train", tmp_path / "here" / "run"), "--set", "max_epochs=3"]
    assert run_command(again[len(SAME) :])[0] == 0


@pytest.mark.parametrize(
    ("number", "message"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "cannot be written"), (errno.EIO, None)]
)
def test_what_the_system_refuses_is_said_and_nothing_is_left(runs, tmp_path, monkeypatch, number, message):
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
    """A folder of somebody to whom a folder can be read-only; and the rights of that somebody."""
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


def test_a_read_only_folder_is_said(nobody):
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


def test_what_is_no_file_is_not_replaced(tmp_path):
    """A pipe stands for everything that is no file, devices among them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    for name, what in (("pipe", "no file"), ("link", "no file"), ("folder", "a folder")):
        with pytest.raises(InputError, match=f"{name}: is {what}; choose another name"), atomic(tmp_path / name):
            pass
    for verb in ("train", "study", "tune"):
        code, said = run_command(command(verb, tmp_path / "pipe")[len(SAME) :])
        assert code == 2
        assert "pipe: cannot be written" in said.splitlines()[-1]
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_a_link_stays_a_link(tmp_path):
    write_json(tmp_path / "file", {})
    (tmp_path / "link").symlink_to("file")
    write_json(tmp_path / "link", {"a": 1})
    assert (tmp_path / "link").is_symlink()
    assert read_json(tmp_path / "file") == {"a": 1}


def test_a_write_that_is_interrupted_leaves_what_was_there(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    with suppress(KeyboardInterrupt), atomic(tmp_path / "a.json") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert read_json(tmp_path / "a.json") == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_killed_and_damaged_at_once(runs, tmp_path):
    """Both checkpoints are damaged: the run starts again, and ends the same."""
    shutil.copytree(runs / "stopped", tmp_path / "run")
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (tmp_path / "run" / name).write_bytes(b"\0" * 99)
    with heard() as said:
        run(CONFIG, tmp_path / "run")
    assert len([line for line in said if "going on from an earlier state" in line]) == 2
    a, b = (load_tensors(place / "model.safetensors")[0] for place in (runs / "finished", tmp_path / "run"))
    assert all((a[name] == b[name]).all() for name in a)


def test_a_run_without_checksums_is_taken_as_it_is(runs, tmp_path):
    """As they were before there were any."""
    place = tmp_path / "run"
    shutil.copytree(runs / "finished", place)
    result = read_json(place / "result.json")
    del result["files"]
    (place / "result.json").write_text(json.dumps(result))
    for name in ("model.safetensors", "checkpoint.safetensors"):
        tensors, about = load_tensors(place / name)
        about.pop("key", None)
        save_file(tensors, place / name, {"state": json.dumps(about)} if about else None)
    with heard() as said:
        assert run(CONFIG, place) == result
        assert load_trained(place).config == CONFIG
        assert read_history(place) == read_history(runs / "finished")
    assert not said


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_killed_at_random_moments(tmp_path, verb):
    found = kill_at_random(verb, 4, 0, tmp_path)
    assert found.survived == found.injected == 4


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", ["train", "study", "tune"])
def test_signals_stop_it_within_seconds(tmp_path, verb, number):
    seconds, code, said = signalled(verb, number, tmp_path / "out")
    assert code == 130
    assert "run the same command to continue" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert seconds < 20  # On a machine that does other things, too.


def test_outcomes_tell_runs_apart(runs, tmp_path):
    """What the harness compares is not always equal."""
    run(CONFIG.model_copy(update={"seed": 1}), tmp_path / "other")
    assert outcome("train", runs / "finished") != outcome("train", tmp_path / "other")
