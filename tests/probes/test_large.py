"""Probes of sets that do not fit into memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from same.config import Config
from same.errors import InputError
from same.experiment import run
from same.graphs import write_store
from same.graphs.planted import planted_parts
from same.linear import rows, svm
from same.probes import Evaluation, evaluate_run
from same.probes.large import disk_features
from same.saved import load_trained

SMALL = Config(width=8, max_epochs=2, batch_size=100, validation_episodes=1)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A set on disk and a run on it."""
    folder = tmp_path_factory.mktemp("large")
    write_store(folder / "set", planted_parts(700, part=200))
    run(SMALL.model_copy(update={"dataset": str(folder / "set")}), folder / "run")
    return folder


def test_a_probe_through_the_disk_scores_what_one_in_memory_does(large, monkeypatch, caplog):
    def main_scores(**options):
        scores = evaluate_run(large / "run", protocols=("paper", "released"), **options)
        return {(s.model, s.probe, s.task, s.protocol): s.score for s in reversed(scores)}

    probes = ("linear", "paper")
    means = {"pool": "mean"}  # Others would take as much space again.
    usual, chosen = main_scores(probes=probes, choose=None, **means), main_scores(probes=probes, **means)
    monkeypatch.setattr("same.probes.large.LARGE_BYTES", 0)
    monkeypatch.setattr(svm, "_MANY_BYTES", 0)
    monkeypatch.setattr(rows, "_KEPT_BYTES", 0)
    for options, expected in (({"choose": None}, usual), ({}, chosen)):
        through = main_scores(probes=(*probes, "own"), **options)
        assert "own: not for a set of this size, left out" in caplog.text
        assert set(through) == set(expected)
        for key, score in through.items():
            # The same examples in the same order, except for the held-out edges of protocol `paper`.
            drawn = key[2:] == ("lp", "paper")
            assert score == pytest.approx(expected[key], abs=0.05 if drawn else 2e-3), key
    few = main_scores(probes=("linear",), floors=False, most_graphs=100)
    assert {task for _, _, task, _ in few} == {"gc", "nc", "lp"}
    assert {model for model, *_ in few} == {"esame"}
    assert few != {key: value for key, value in usual.items() if key in few}
    with pytest.raises(InputError, match="probes: own: a set of this size has linear probes only"):
        evaluate_run(large / "run", probes=["own"])


def test_features_on_disk_are_those_in_memory(large, tmp_path):
    evaluation = Evaluation(load_trained(large / "run").config, tasks=["gc", "nc"])
    setting, encode = evaluation.experiment, load_trained(large / "run").encoder
    features = disk_features(setting, evaluation.cases, encode, tmp_path)
    for case, parts in features.items():
        for part, ((x,), y) in ((part, (each.x.values(), each.y)) for part, each in parts.items()):
            examples = evaluation.examples[case][part]
            with torch.no_grad():
                expected = case.task.features(encode(examples.inputs), examples).numpy()
            assert isinstance(x, np.memmap)
            np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)
            assert np.array_equal(y, examples.y.numpy())


MEMORY = """
import sys
from pathlib import Path
from same.config import Config
from same.threads import limit_threads
limit_threads()
from same.experiment import embed_set
from same.experiment import run
folder = Path(sys.argv[1])
config = Config(dataset=str(folder / "set"), width=64, max_epochs=1, batch_size=2000, validation_episodes=1)
run(config, folder / "run")
embed_set(folder / "run", str(folder / "set"), folder / "e", kind="npy")
from same.probes import evaluate_run
evaluate_run(folder / "run", probes=["linear"], floors=False, tasks=["gc", "nc"])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc")
def test_ten_times_the_graphs_take_about_the_same_memory(tmp_path):
    """Peak of private memory; the pages of mapped files are the system's to keep or to drop."""
    peaks = []
    for graphs in (20_000, 200_000):
        folder = tmp_path / str(graphs)
        write_store(folder / "set", planted_parts(graphs))
        watched = subprocess.Popen([sys.executable, "-c", MEMORY, folder], stdout=subprocess.DEVNULL)
        peak = 0
        while watched.poll() is None:
            try:
                status = Path(f"/proc/{watched.pid}/status").read_text()
                peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")))
            except (OSError, TypeError, ValueError):
                pass
            try:
                watched.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        assert watched.returncode == 0
        peaks.append(peak / 1024)
    assert peaks[1] < 1.5 * peaks[0], peaks
