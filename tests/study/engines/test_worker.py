"""The worker of the Ray engine, called without Ray."""

import dataclasses
import time

import pytest

from helpers import write_tu, zip_tu
from same.config import Config
from same.errors import InputError
from same.files import atomic
from same.graphs import load
from same.study.engines import Job, execute
from same.study.engines.worker import Driver, RemoteFolder, pack_set, unpack_set, work

SMALL = Config(width=8, max_epochs=6, validate_every=1, batch_size=100, validation_episodes=1)
SHORT = SMALL.model_copy(update={"max_epochs": 1})


def interrupt(history):
    if len(history) == 4:
        raise KeyboardInterrupt
    return False


def name_of(folder, data):
    return folder.name


@pytest.mark.parametrize("address", ["file://{}/remote", "memory://remote-of-a-test", "{}/remote"])
def test_a_run_continues_from_its_remote_folder_with_the_same_bits(tmp_path, address):
    job = Job(SMALL, tmp_path / "runs" / SMALL.key, keep=True)
    driver = Driver(remote=address.format(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        work(dataclasses.replace(job, give_up=interrupt), {}, {}, None, driver)
    assert len(RemoteFolder(driver.remote).download()["history.jsonl"].splitlines()) == 4
    outcome, files, problem = work(job, {}, {}, None, driver)
    assert not problem
    execute(dataclasses.replace(job, folder=tmp_path / "alone"), lambda *_: None, lambda: False)
    assert outcome.training["epochs"] == 6
    assert files["history.jsonl"] == (tmp_path / "alone" / "history.jsonl").read_bytes()
    assert set(files) == {"config.json", "history.jsonl", "model.safetensors", "result.json"}
    assert files["model.safetensors"] == (tmp_path / "alone" / "model.safetensors").read_bytes()
    # A driver that has lost its disk gets finished runs from their remote folders.
    start = time.perf_counter()
    assert work(job, {}, {}, None, driver)[1] == files
    assert time.perf_counter() - start < 2


def test_a_worker_returns_what_the_job_computes_and_files_only_if_they_are_kept(tmp_path):
    job = Job(SHORT, tmp_path / "runs" / SHORT.key, then=name_of)
    outcome, files, problem = work(job, {}, {}, None, Driver())
    assert (outcome.value, files, problem) == (SHORT.key, {}, "")
    assert outcome.training["epochs"] == 1
    assert not (tmp_path / "runs").exists()


def test_a_run_starts_from_the_one_before_and_from_the_files_of_the_driver(tmp_path):
    config = SHORT.model_copy(update={"method": "finetuned", "tasks": ("gc",)})
    first = SHORT.model_copy(update={"method": "classical"})
    _, before, _ = work(Job(first, tmp_path / "runs" / first.key, keep=True), {}, {}, None, Driver())
    tuned = Job(config, tmp_path / "runs" / config.key, after=first.key, keep=True)
    _, files, problem = work(tuned, {}, before, None, Driver())
    assert not problem
    assert not [name for name in files if name.startswith("first")]
    _, alone, _ = work(tuned, {}, {}, None, Driver())
    assert alone["model.safetensors"] == files["model.safetensors"]
    assert work(tuned, files, {}, None, Driver())[1] == files


def test_a_user_error_is_returned_and_another_version_is_rejected(tmp_path):
    job = Job(SHORT, tmp_path / "x", keep=True)
    outcome, files, problem = work(job, {"thesis.txt": b"years of work"}, {}, None, Driver())
    assert outcome is None
    assert "holds other files" in problem
    assert "config.json" not in files
    with pytest.raises(InputError, match=r"has same .*, the driver has 0"):
        work(job, {}, {}, None, Driver(version="0"))


def test_a_store_that_does_not_answer_costs_no_run(tmp_path, monkeypatch, caplog):
    def fail(self, folder):
        raise ConnectionError("no route")

    monkeypatch.setattr(RemoteFolder, "upload", fail)
    outcome, _, problem = work(Job(SHORT, tmp_path / "x"), {}, {}, None, Driver(remote=f"{tmp_path}/remote"))
    assert not problem
    assert outcome.training is not None
    assert "cannot be written (ConnectionError: no route)" in caplog.text


def test_named_datasets_are_sent_to_workers(tmp_path, monkeypatch):
    place = zip_tu(write_tu(tmp_path / "raw"), tmp_path / "TOY.zip")
    packed = pack_set("TOY", tmp_path)
    assert packed == ("TOY", place.read_bytes())
    monkeypatch.setenv("SAME_CACHE", str(tmp_path / "cache"))
    assert (unpack_set(packed) / "TOY.zip").read_bytes() == place.read_bytes()
    place.unlink()
    write_tu(tmp_path / "TOY")
    assert load("TOY", unpack_set(pack_set("TOY", tmp_path))).num_graphs == 2
    assert pack_set("planted", None) is None
    assert pack_set("./TOY", None) is None


def test_files_are_written_whole_and_hidden_ones_stay(tmp_path):
    folder, remote = tmp_path / "run", RemoteFolder(str(tmp_path / "remote"))
    for text in ("one", "two"):
        with atomic(folder / "first" / "history.jsonl") as temporary:
            temporary.write_text(text)
        (folder / ".hidden").write_text("")
        remote.upload(folder)
        assert [p.name for p in (tmp_path / "remote").rglob("*") if p.is_file()] == ["history.jsonl"]
        assert (tmp_path / "remote" / "first" / "history.jsonl").read_text() == text
    remote.check()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nothing://x", "--checkpoints: nothing://x"),
        ("/proc/x", "--checkpoints: /proc/x: cannot be written"),
    ],
)
def test_an_address_that_cannot_be_used_is_rejected(address, message):
    with pytest.raises(InputError, match=message):
        RemoteFolder(address).check()
