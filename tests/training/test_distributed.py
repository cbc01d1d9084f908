"""Several ranks that train one model do what one process does with several episodes per step."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from same.config import Config
from same.episodes import EpisodeSampler
from same.experiment import prepare, run
from same.files import CHECKPOINT
from same.seeding import stream_seed
from same.training import Training
from same.training.loop import update

SMALL = Config(width=16, max_epochs=6, validate_every=2, batch_size=60, dropout=0.1, batch_norm=True, degree=3)
TORCHRUN = Path(sys.executable).with_name("torchrun")


def torchrun(*arguments, ranks=2):
    return subprocess.Popen(
        [TORCHRUN, "--nproc-per-node", str(ranks), "--master-port", str(_port()), "-m", "same", "train", *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_ranks(*arguments):
    """Exit code, output and errors of each of two ranks, without the extra process of torchrun."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port()), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "same", "train", *arguments],
            env={**os.environ, **address, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    outputs = [rank.communicate(timeout=300) for rank in ranks]
    return [(rank.returncode, *output) for rank, output in zip(ranks, outputs, strict=True)]


def _port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def settings(config):
    changed = config.model_dump(mode="json", exclude_defaults=True)
    return [part for key, value in changed.items() for part in ("--set", f"{key}={json.dumps(value)}")]


@pytest.mark.parametrize("weighting", ["fixed", "gradnorm", "balanced"])
def test_a_step_is_the_mean_of_its_episodes(weighting, monkeypatch):
    """With plain descent, a step on two episodes ends midway between the steps on each, buffers included."""
    monkeypatch.setattr(torch.optim, "Adam", lambda p, lr, **_: torch.optim.SGD(p, lr=lr))
    config = SMALL.model_copy(update={"weighting": weighting})
    both = _after_one_step(config.model_copy(update={"episodes_per_step": 2}), 0)
    one, other = (_after_one_step(config, number) for number in (0, 1))
    assert any(not torch.equal(one[name], other[name]) for name in one)
    for name, value in both.items():
        assert torch.allclose(value.double(), (one[name] + other[name]).double() / 2, rtol=1e-5, atol=1e-7), name


def _after_one_step(config, number):
    """The state of a model after a step that begins with the episode of this number."""
    experiment = prepare(config)
    sampler = EpisodeSampler(
        experiment.store, experiment.split.train, experiment.tasks, config.batch_size, experiment.method.draw
    )
    draw = sampler.draw
    sampler.draw = lambda epoch, step: draw(epoch, step + number)
    training = Training(
        experiment.model,
        weighting=experiment.weighting,
        clip=0.0,
        seeds=lambda episode: stream_seed(0, "dropout", 0, episode + number),
    )
    update(training, experiment.method, sampler, config.episodes_per_step)
    return training.model.state_dict()


def test_epochs_and_validations_count_episodes(tmp_path):
    """Two episodes per step: half the steps, the same epochs."""
    for k, steps in ((1, 24), (2, 12), (5, 5), (100, 1)):
        result = run(SMALL.model_copy(update={"episodes_per_step": k, "width": 8}), tmp_path / str(k))
        assert (result["steps"], result["epochs"]) == (steps, max(6, k * steps // 4))
        history = [json.loads(line) for line in (tmp_path / str(k) / "history.jsonl").read_text().splitlines()]
        assert history[-1]["epoch"] == 6


def test_two_ranks_equal_one_process_also_after_one_was_killed(tmp_path):
    config = SMALL.model_copy(update={"episodes_per_step": 2, "max_epochs": 200, "patience": 4, "outer_lr": 0.05})
    arguments = [*settings(config), "--out", tmp_path / "two", "--rank-timeout", "20"]
    first = torchrun(*arguments)
    while not (tmp_path / "two" / CHECKPOINT).is_file():
        assert first.poll() is None
        time.sleep(0.05)
    ranks = _children(first.pid)
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGKILL)
    killed = time.monotonic()
    _, err = first.communicate(timeout=120)
    assert first.returncode != 0
    assert time.monotonic() - killed < 60
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
    assert "another rank has ended or does not answer" in err or "interrupted and saved" in err
    (code, out, err), (other, *messages) = run_ranks(*arguments)
    assert code == other == 0, err
    assert out.count("done, best validation") == 1
    assert messages == ["", ""]
    assert run(config, tmp_path / "one")["epochs"] < 200
    ours, theirs = (load_file(tmp_path / folder / "model.safetensors") for folder in ("one", "two"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    one, two = ((tmp_path / folder / "history.jsonl").read_text() for folder in ("one", "two"))
    assert one == two


@pytest.mark.slow
def test_three_ranks_equal_one_process_to_rounding(tmp_path):
    # Without batch norm: a bias before it has a gradient of rounding errors alone, which Adam scales up.
    config = SMALL.model_copy(update={"episodes_per_step": 3, "batch_norm": False})
    process = torchrun(*settings(config), "--out", tmp_path / "three", ranks=3)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    run(config, tmp_path / "one")
    ours, theirs = (load_file(tmp_path / folder / "model.safetensors") for folder in ("one", "three"))
    for name, value in ours.items():
        assert np.allclose(value, theirs[name], rtol=1e-3, atol=1e-4), name


def test_a_mistake_ends_all_ranks(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    first, second = run_ranks("planted", "--out", tmp_path / "out", "--set", "width=8")
    assert first[0] == second[0] == 2
    assert "holds other files" in first[2]


def _children(parent):
    pids = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            if int(lines["PPid"]) == parent and b"same" in (status.parent / "cmdline").read_bytes():
                pids.append(int(status.parent.name))
        except OSError:
            continue
    return sorted(pids)
