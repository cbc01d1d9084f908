"""Studies on Ray: what needs no cluster, and a cluster of two nodes that loses a worker, a node and its driver."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from same.config import Config
from same.errors import InputError
from same.study.engines import Job, execute
from same.study.engines.ray import RayEngine, connect
from same.study.results import RUNS_TABLE, SCORES_TABLE, Results
from study_helpers import COMMAND, same

SMALL = Config(width=8, max_epochs=6, validate_every=1, batch_size=100, validation_episodes=1)
RAY = Path(sys.executable).with_name("ray")
needs_ray = pytest.mark.skipif(not RAY.is_file(), reason="ray is not installed: pip install 'same-gnn[ray]'")


def test_options_are_checked_before_anything_is_written(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
    for arguments, message in [
        (("--engine", "ray", "--address", "nowhere"), "--address: 'nowhere' is not HOST:PORT"),
        (("--engine", "ray", "--address", closed), f"--address: nothing answers at {closed}"),
        (("--address", closed), "--address: needs --engine ray"),
    ]:
        if "ray" in arguments and not RAY.is_file():
            message = "--engine: ray is not installed"
        code, _, err = same("study", "--out", tmp_path / "s", "--datasets", "planted", *arguments)
        assert code == 2, err
        assert err.startswith(f"same: {message}")
        assert len(err.splitlines()) == 1
        assert not (tmp_path / "s").exists()


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(InputError, match=r"ray is not installed: pip install 'same-gnn\[ray\]'"):
        connect(None)


TINY = ("--set", "width=8", "--set", "max_epochs=100", "--set", "batch_size=100", "--set", "validation_episodes=1")
EIGHT = ("--datasets", "planted", "--questions", "overview", "--methods", "esame", "--splits", "0-3", *TINY)


@pytest.fixture
def cluster():
    """Two nodes of one core each: the address, the environment and the two processes."""
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:  # Ray's sockets have short names.
        token = Path(folder, "token")
        token.touch(mode=0o600)
        token.write_text("0123456789abcdef" * 4)
        environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        # Ray would have its workers give way to everything else, which on a busy machine takes hours.
        environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "OMP_NUM_THREADS": "1"}
        host = _own_address()
        with socket.socket() as free:
            free.bind((host, 0))
            address = f"{host}:{free.getsockname()[1]}"
        common = [
            RAY,
            "start",
            "--block",
            "--num-cpus",
            "1",
            "--object-store-memory",
            str(2**27),
            "--disable-usage-stats",
        ]
        head = ["--head", "--port", address.split(":")[1], "--node-ip-address", host, "--include-dashboard", "false"]
        nodes = []
        try:
            for more in ([*head, "--temp-dir", folder], ["--address", address]):
                nodes.append(_start([*common, *more], environment, Path(folder, "node.log")))
            yield address, environment, nodes
        finally:
            for node in reversed(nodes):
                node.terminate()
            for node in nodes:
                try:
                    node.wait(60)
                except subprocess.TimeoutExpired:
                    node.kill()


def _start(command, environment, log):
    """A node that has started; on a busy machine it may give up after 30 seconds, and is started again."""
    for _ in range(4):
        with log.open("wb") as file:
            node = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        while node.poll() is None:
            if "Ray runtime started" in log.read_text():
                return node
            time.sleep(0.2)
    raise AssertionError(f"Ray does not start: {log.read_text()[-500:]}")


def _own_address():
    """Address of this machine for other machines, which Ray's nodes use. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))
            return route.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _wait(condition, seconds, process):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert process.poll() is None, "the process has ended"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)
    return found


def _raylet(parent):
    """The process that is a node of Ray, among the children of the one that started it."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            status, title = (path / "status").read_text(), (path / "cmdline").read_bytes()
        except OSError:
            continue
        if f"PPid:\t{parent}\n" in status and b"raylet/raylet" in title:
            return int(path.name)
    raise AssertionError("there is no node")


def _busy_workers():
    """The processes of this user that do a run of ours for Ray."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            title = (path / "cmdline").read_bytes()
            if path.stat().st_uid == os.getuid() and title.startswith(b"ray::work"):
                found.append(int(path.name))
        except OSError:
            continue
    return found


@needs_ray
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_study_survives_the_loss_of_a_worker_a_node_and_the_driver(cluster, tmp_path):
    address, environment, nodes = cluster
    command = [*COMMAND, "study", "--out", tmp_path / "ray", *EIGHT, "--engine", "ray", "--address", address]
    command += ["--checkpoints", tmp_path / "checkpoints"]

    def done():
        return len(Results.read(tmp_path / "ray").runs)

    def busy():
        return len(_busy_workers()) == 2

    def lost():
        return len(re.findall(r": lost \(", (tmp_path / "err").read_text()))

    times = []
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(command, env=environment, stderr=err, stdout=subprocess.DEVNULL)
        try:
            _wait(lambda: busy() and list(tmp_path.glob("checkpoints/*/checkpoint*")), 900, process)
            os.kill(_busy_workers()[0], signal.SIGKILL)
            times.append(("worker killed", time.monotonic()))
            _wait(lambda: done() >= 2 and busy(), 900, process)
            os.kill(_raylet(nodes[1].pid), signal.SIGKILL)  # Asked politely, a node waits for its runs to end.
            times.append(("node stopped", time.monotonic()))
            _wait(lambda: done() >= 4 and lost() >= 2, 900, process)
        finally:
            process.kill()
            process.wait()
        times.append(("driver killed", time.monotonic()))
    said = (tmp_path / "err").read_text()
    _wait(lambda: not _busy_workers(), 60, nodes[0])  # They leave with their driver.
    before = (tmp_path / "ray" / RUNS_TABLE).read_text().splitlines()[1:]
    assert 4 <= len(before) < 8
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    times.append(("finished", time.monotonic()))
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[-1] == "8 of 8 runs are done, none failed"
    assert "retry 1 of 3" in said
    # Every run once: finished runs are left alone, and the others are done.
    assert set(before) < set((tmp_path / "ray" / RUNS_TABLE).read_text().splitlines())
    ended = [re.findall(r"^\[\d/8\] (.*) done in", text, re.MULTILINE) for text in (said, again.stderr)]
    assert len(ended[1]) == 8 - len(before)
    assert len({*ended[0], *ended[1]}) == len(ended[0]) + len(ended[1])
    code, _, err = same("study", "--out", tmp_path / "local", *EIGHT)
    assert code == 0, err
    assert (tmp_path / "ray" / SCORES_TABLE).read_bytes() == (tmp_path / "local" / SCORES_TABLE).read_bytes()
    print(said, [(what, round(at - times[0][1])) for what, at in times])


SCRIPT = """
import dataclasses, json, os, signal, sys
from pathlib import Path
from same.config import Config
from same.study.engines import Job
from same.study.engines.ray import RayEngine

def die(history):
    os.kill(os.getpid(), signal.SIGKILL)

small = Config(**json.loads(sys.argv[2]))
jobs = [Job(small.model_copy(update={"split": n}), Path(sys.argv[1], "runs", str(n)), keep=True) for n in range(3)]
jobs[1] = dataclasses.replace(jobs[1], give_up=die)
for what, key, value in RayEngine(retries=1)(jobs, 2):
    print(json.dumps([what, [j.config.key for j in jobs].index(key), value if what == "failed" else None]))
"""


@needs_ray
@pytest.mark.ray
def test_a_run_that_kills_its_worker_is_retried_a_limited_number_of_times(tmp_path):
    """On a local Ray, which ends with its driver."""
    values = json.dumps(SMALL.model_dump(mode="json"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, values], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert [e[1] for e in events if e[0] == "start"] == [0, 1, 2]
    assert sorted(e[1] for e in events if e[0] == "done") == [0, 2]
    (failed,) = [e for e in events if e[0] == "failed"]
    assert failed[1] == 1
    assert failed[2].startswith("lost 2 times, the last time by WorkerCrashedError")
    execute(Job(SMALL, tmp_path / "alone"), lambda *_: None, lambda: False)
    assert (tmp_path / "runs" / "0" / "model.safetensors").read_bytes() == (
        tmp_path / "alone" / "model.safetensors"
    ).read_bytes()


def test_number_of_runs_that_fit_into_a_cluster(caplog):
    class Cluster:
        @staticmethod
        def cluster_resources():
            return {"CPU": 7.0, "GPU": 2.0}

        @staticmethod
        def nodes():
            return [{"Alive": True, "Resources": {"CPU": 4.0, "GPU": 1.0}}]

    assert RayEngine(cpus=2)._room(Cluster) == 3
    assert RayEngine(cpus=1, gpus=0.5)._room(Cluster) == 4
    assert RayEngine(cpus=20)._room(Cluster) == 1
    RayEngine(cpus=20)._warn(Cluster)
    assert "--cpus-per-run: no machine has 20 yet (at most 4)" in caplog.text
