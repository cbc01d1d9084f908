"""Injects faults (commands killed at random moments, damaged files), and checks that the outcome is unchanged."""

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from same.config import Config
from same.experiment import run
from same.files import load_tensors, read_json
from same.study.results import RUNS_TABLE, Results
from same.training import InterruptedTraining
from same.tuning.search import Tuning
from trust.bad_data import run_command

SAME = (sys.executable, "-c", "from same.cli import main; main()")
TINY = ("width=8", "validate_every=1", "batch_size=105", "validation_episodes=1", "patience=99")
HOOK = Path(__file__).with_name("hook")
WRITES = {"train": 60, "study": 10, "tune": 8}
"""Maximum number of the write in which a process is killed."""


def command(verb: str, folder: Path, workers: int = 2) -> list[str]:
    """A command on the embedded set that takes seconds."""
    arguments = {
        "train": ["planted", "-m", "classical", "-t", "nc", "--set", "max_epochs=60"],
        "study": ["--datasets", "planted", "--questions", "Q1", "--tasks", "nc", "--splits", "0"],
        "tune": ["planted", "-m", "classical", "-t", "nc", "--trials", "5", "--sampler", "random"],
    }[verb]
    if verb != "train":
        arguments += ["--workers", str(workers), "--set", "max_epochs=6"]
    settings = [part for setting in TINY for part in ("--set", setting)]
    return [*SAME, verb, *arguments, *settings, "--out", str(folder)]


def outcome(verb: str, folder: Path) -> object:
    """Results that must not depend on interruptions: weights and histories, scores and tables, or trials."""
    runs = [folder] if verb == "train" else sorted(path.parent for path in folder.glob("runs/*/result.json"))
    weights = {}
    for place in runs:
        tensors, _ = load_tensors(place / "model.safetensors")
        weights[place.relative_to(folder)] = {name: value.numpy().tobytes() for name, value in tensors.items()}
    histories = [(place / "history.jsonl").read_text() for place in runs]
    if verb == "study":
        tables = {path.name: path.read_text() for path in sorted((folder / "tables").iterdir())}
        return Results.read(folder).scores, tables
    if verb == "tune":
        trials = [(t.number, t.values, t.state, t.score, t.epochs) for t in Tuning.open(folder).trials]
        return weights, histories, trials, (folder / "best.toml").read_text()
    return weights, histories


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def is_left_over(path: Path) -> bool:
    return path.name.startswith(".") and path.suffix == ".part"


def assert_whole(folder: Path) -> None:
    """Check that no file is partial, except temporary ones."""
    for path in files(folder):
        try:
            if is_left_over(path):
                continue
            if path.suffix == ".json":
                read_json(path)
            elif path.suffix == ".safetensors":
                load_tensors(path)
            elif path.suffix == ".jsonl":
                list(map(json.loads, path.read_text().splitlines()))
            elif path.name == RUNS_TABLE:
                Results.read(path.parent)
        except FileNotFoundError:
            continue  # A worker works on for a moment after its driver was killed.


@dataclass
class Campaign:
    """Number of kills, of kills in the middle of a write, and of kills that changed nothing."""

    injected: int = 0
    in_writes: int = 0
    survived: int = 0


def kill_at_random(verb: str, kills: int, seed: int, folder: Path) -> Campaign:
    """Kill a command a number of times, restart it each time, and compare its results with an undisturbed run.

    Every other kill comes in the middle of a write.
    """
    rng, campaign = random.Random(f"{verb} {seed}"), Campaign()
    subprocess.run(command(verb, folder / "whole"), check=True, capture_output=True)
    expected, chain = outcome(verb, folder / "whole"), 0
    while campaign.injected < kills:
        place, chain, hits = folder / f"killed-{chain}", chain + 1, 0
        while hits < 10 and campaign.injected + hits < kills:
            in_write = hits % 2 == 0
            if not _start_and_kill(verb, place, rng, in_write):
                break
            hits += 1
            campaign.in_writes += in_write
            assert_whole(place)
        done = subprocess.run(command(verb, place), check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        campaign.injected += hits
        clean = not any(map(is_left_over, place.rglob(".*")))
        if clean and outcome(verb, place) == expected:
            campaign.survived += hits
        shutil.rmtree(place)
    return campaign


def _start_and_kill(verb: str, place: Path, rng: random.Random, in_write: bool) -> bool:
    """Start a command and kill it, in the middle of a write or at any moment; return whether it was still running."""
    before, environment = _stamp(place), dict(os.environ)
    if in_write:
        paths = (str(HOOK), environment.get("PYTHONPATH"))
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        environment["TRUST_KILL"] = f"{rng.randint(1, WRITES[verb])} {rng.choice(('half', 'before', 'after'))}"
    process = subprocess.Popen(
        command(verb, place),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if in_write:
        return process.wait() == -signal.SIGKILL
    if rng.random() < 0.2:  # Perhaps while it starts.
        _wait(process, lambda: False, rng.uniform(0, 3))
    else:
        _wait(process, lambda: _stamp(place) != before, 60)
        _wait(process, lambda: False, rng.uniform(0, 0.6 if verb == "train" else 3))
    if process.poll() is not None:
        return False
    # With its workers, or without: then they notice, and end.
    os.killpg(process.pid, signal.SIGKILL) if rng.random() < 0.7 else process.kill()
    process.wait()
    return True


def _stamp(place: Path) -> list[tuple[str, int]]:
    stamps = []
    for path in files(place):
        try:
            stamps.append((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return sorted(stamps)


def _wait(process: subprocess.Popen, enough: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        try:
            if enough():
                return
        except OSError:
            pass
        time.sleep(0.0005)


def signalled(verb: str, number: int, folder: Path) -> tuple[float, int, str]:
    """Send a signal to a working command; return the seconds until it ends, its exit code and its messages."""
    arguments = [part for part in command(verb, folder) if not part.startswith("max_epochs")]
    arguments = [part for i, part in enumerate(arguments) if not (part == "--set" and arguments[i + 1] == "--set")]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _wait(process, lambda: any(folder.rglob("history.jsonl")), 120)
    assert process.poll() is None, process.stderr
    start = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return time.monotonic() - start, process.returncode, err


def second_of_two(verb: str, folder: Path) -> tuple[int, str]:
    """Exit code and messages of a command in whose folder another process is working."""
    arguments = [*command(verb, folder), "--set", "max_epochs=100000", "--set", "patience=100000"]
    first = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(first, lambda: any(folder.rglob("history.jsonl")), 120)
        assert first.poll() is None
        return run_command(arguments[len(SAME) :])
    finally:
        os.killpg(first.pid, signal.SIGKILL)  # With its workers, which would write on for a moment.
        first.wait()


LIMITS = {
    # Like a quota; needs no privileges.
    "files of 4 kB at most": ["sh", "-c", 'ulimit -f 8 && exec "$@"', "sh"],
    # In a new mount namespace, where the system allows one.
    "a disk of 16 kB": ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=16k none "$0" && exec "$@"'],
    "a disk that is read-only": ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"'],
}
"""Prefixes of a command that keep it from writing to a folder."""


def without_room(limit: str, folder: Path) -> tuple[int, str] | None:
    """Exit code and messages of a training that cannot write its files; None where that cannot be set up."""
    folder.mkdir(parents=True)
    before = [*LIMITS[limit], *([str(folder)] if "disk" in limit else [])]
    if (
        shutil.which(before[0]) is None
        or subprocess.run([*before, "true"], capture_output=True, check=False).returncode
    ):
        return None
    arguments = [*before, *command("train", folder / "run"), "--set", "max_epochs=3"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


HARMS = ("deleted", "emptied", "truncated", "flipped")
CONFIG = Config(method="classical", tasks=("nc",), width=8, max_epochs=4, validate_every=1, batch_size=105)


def harm(path: Path, kind: str, rng: random.Random) -> None:
    """Damage a file."""
    content = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
        return
    if kind == "emptied":
        content.clear()
    elif kind == "truncated":
        del content[rng.randrange(1, len(content)) :]
    else:
        place = rng.randrange(len(content))
        content[place] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


@contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """The warnings that the package logs."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    lines: list[str] = []
    handler, log = Handler(logging.WARNING), logging.getLogger("same")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.WARNING)
    try:
        yield lines
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def make_runs(folder: Path) -> None:
    """Make a finished run, and one that was stopped after two checkpoints."""
    run(CONFIG, folder / "finished")
    polls = 0

    def stop() -> bool:
        nonlocal polls
        polls += 1
        return polls == 5

    try:
        run(CONFIG, folder / "stopped", stop=stop)
    except InterruptedTraining:
        return
    raise AssertionError("the run was not stopped")


DAMAGED = [
    ("finished", name)
    for name in ("config.json", "history.jsonl", "checkpoint.safetensors", "model.safetensors", "result.json")
] + [("stopped", name) for name in ("history.jsonl", "checkpoint.safetensors", "checkpoint.previous.safetensors")]


def damage_run(runs: Path, which: str, name: str, kind: str, rng: random.Random, work: Path) -> tuple[bool, bool]:
    """Damage a file of a run and run it again; return whether it ends as it should, and whether it warned."""
    place = work / f"{which}-{name}-{kind}-{rng.random()}"
    shutil.copytree(runs / which, place)
    harm(place / name, kind, rng)
    with captured_warnings() as lines:
        result = run(CONFIG, place)
    good = {k: v for k, v in read_json(runs / "finished" / "result.json").items() if "seconds" not in k}
    same = {k: v for k, v in result.items() if "seconds" not in k} == good
    tensors, expected = (load_tensors(f / "model.safetensors")[0] for f in (place, runs / "finished"))
    same &= all(torch.equal(tensors[key], expected[key]) for key in expected)
    same &= (place / "history.jsonl").read_text() == (runs / "finished" / "history.jsonl").read_text()
    shutil.rmtree(place)
    return same, bool(lines)
