"""Sets that do not fit into memory: mapped, embedded and probed block by block, and refused if they are forged."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from commands import same
from helpers import random_store
from same.config import Config
from same.episodes import VALIDATION_NODES, validation_episodes, whole_episode
from same.errors import InputError
from same.experiment import embed_set, run
from same.graphs import GraphStore, load, open_store, planted, save_store, write_store
from same.graphs.planted import planted_parts
from same.linear import rows, svm
from same.nn.embedding import embed_graphs
from same.probes import Evaluation, evaluate_run
from same.probes.large import disk_features
from same.saved import load_trained
from same.tasks import make_tasks

SMALL = Config(width=8, max_epochs=2, batch_size=100, validation_episodes=1)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A set on disk, which stands for a large one, and a run on it."""
    folder = tmp_path_factory.mktemp("large")
    write_store(folder / "set", planted_parts(700, part=200))
    run(SMALL.model_copy(update={"dataset": str(folder / "set")}), folder / "run")
    return folder


def test_parts_differ_and_are_planted_all_the_same():
    first, second = planted_parts(200, part=100)
    assert not np.array_equal(first.x[:100], second.x[:100])
    again = next(iter(planted_parts(200, part=100)))
    assert np.array_equal(first.x, again.x)
    assert np.bincount(first.graph_y).tolist() == [34, 33, 33]


def test_a_set_is_made_on_disk(tmp_path):
    code, out, err = same("data", "make", "--graphs", 30, "--out", tmp_path / "made")
    assert code == 0, err
    assert out.startswith(f"{tmp_path / 'made'}: GraphStore('planted', graphs=30")
    made = load(tmp_path / "made")
    assert made.num_graphs == 30
    code, out, _ = same("data", "make", "--graphs", 30, "--out", tmp_path / "again", "--json")
    sizes = {"graphs": 30, "nodes": made.num_nodes, "edges": made.num_edges}
    assert json.loads(out) == {"place": str(tmp_path / "again"), **sizes}
    assert same("data", "make", "--graphs", 30, "--out", tmp_path / "made")[0] == 2


def test_a_set_in_a_folder_is_trained_on_like_one_in_memory(large, tmp_path):
    write_store(tmp_path / "set", [planted()])
    run(SMALL.model_copy(update={"dataset": str(tmp_path / "set")}), tmp_path / "mapped")
    run(SMALL, tmp_path / "built-in")
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("mapped", "built-in")]
    assert models[0] == models[1]


def test_validation_of_a_large_set_is_a_sample():
    store = GraphStore.join([planted(2000, seed) for seed in range(3)])
    ids, tasks = np.arange(store.num_graphs), make_tasks(["gc", "nc"], store)
    assert store.num_nodes > 2 * VALIDATION_NODES
    episodes = validation_episodes(whole_episode, store, tasks, ids, count=2)
    for episode in episodes:
        nodes = sum(part[1].inputs.num_nodes for part in episode if part.task.name == "nc")
        assert 0.99 * VALIDATION_NODES < nodes <= VALIDATION_NODES
    sets = [set(episode[1].support.inputs.graph_ids.tolist()) for episode in episodes]
    assert sets[0] != sets[1]
    again = validation_episodes(whole_episode, store, tasks, ids, count=2)
    assert sets[0] == set(again[0][1].support.inputs.graph_ids.tolist())
    assert len(episodes[0][0].target.y) > 500


def test_embeddings_are_the_same_in_every_form_and_block(large, tmp_path, monkeypatch):
    monkeypatch.setattr("same.nn.embedding.CHUNK", 64)
    nodes = embed_set(large / "run", str(large / "set"), tmp_path / "e.npz")
    embed_set(large / "run", str(large / "set"), tmp_path / "e", kind="npy")
    trained = load_trained(large / "run")
    store = load(large / "set").with_inputs(trained.inputs)
    h, means = embed_graphs(trained.encoder, store)
    expected = {"embeddings": h, "graph_means": means, "node_ptr": store.node_ptr}
    expected["graph"] = np.repeat(np.arange(700), np.diff(store.node_ptr))
    with np.load(tmp_path / "e.npz") as zipped:
        assert set(zipped) == set(expected)
        for name, array in expected.items():
            mapped = np.load(tmp_path / "e" / f"{name}.npy", mmap_mode="r")
            assert np.array_equal(zipped[name], array)
            assert np.array_equal(mapped, array)
            assert mapped.dtype == zipped[name].dtype == array.dtype
    assert nodes == len(h)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "e.npz"]


def test_an_embedding_that_fails_leaves_nothing(large, tmp_path):
    (tmp_path / "e.npz").mkdir()
    with pytest.raises(InputError, match="is a folder; choose another name"):
        embed_set(large / "run", str(large / "set"), tmp_path / "e.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["e.npz"]
    with pytest.raises(InputError, match="format: 'csv' is not one of npz, npy"):
        embed_set(large / "run", str(large / "set"), tmp_path / "e.csv", kind="csv")


def test_a_probe_through_the_disk_scores_what_one_in_memory_does(large, monkeypatch, caplog):
    def main_scores(**options):
        scores = evaluate_run(large / "run", protocols=("paper", "released"), **options)
        return {(s.model, s.probe, s.task, s.protocol): s.score for s in reversed(scores)}

    probes = ("linear", "paper")
    usual, chosen = main_scores(probes=probes), main_scores(probes=probes, choose="loss")
    monkeypatch.setattr("same.probes.large.LARGE_BYTES", 0)
    monkeypatch.setattr(svm, "_MANY_BYTES", 0)
    monkeypatch.setattr(rows, "_KEPT_BYTES", 0)
    for options, expected in (({}, usual), ({"choose": "loss"}, chosen)):
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
    features = disk_features(setting.store, setting.split, evaluation.cases, encode, tmp_path, seed=0, k=0)
    for case, parts in features.items():
        for part, (x, y) in parts.items():
            examples = evaluation.examples[case][part]
            with torch.no_grad():
                expected = case.task.features(encode(examples.inputs), examples).numpy()
            assert isinstance(x, np.memmap)
            np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)
            assert np.array_equal(y, examples.y.numpy())


def _forge(folder, name, place, value):
    path = folder / f"{name}.bin"
    dtype = json.loads((folder / "store.json").read_text())["arrays"][name]["dtype"]
    array = np.fromfile(path, dtype)
    array[place] = value
    array.tofile(path)


@pytest.mark.parametrize("many", [0, 2**24])
@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("edges", 5, 10_000, "edges to nodes that do not exist"),
        ("edges", 4, -1, "edges to nodes that do not exist"),
        ("edges", slice(2, 4), (0, 1), "edges that are not in order"),
        ("labels1", 7, 99, "labels 'node_y' that do not exist"),
        ("labels0", 3, -2, "labels 'y' that do not exist"),
        ("x", 11, np.nan, "attributes that are not finite"),
        ("node_ptr", 2, -5, "node_ptr.bin: does not say where graphs begin"),
        ("edge_ptr", -1, 10**9, "edge_ptr.bin: does not say where graphs begin"),
    ],
)
def test_a_forged_store_is_one_line(tmp_path, monkeypatch, many, name, place, value, message):
    """At once if it is small, and when it is cut if it is large."""
    monkeypatch.setattr("same.graphs.io.folder._CHECKED_NUMBERS", many)
    store = random_store(0, [6] * 40, density=1.0)
    save_store(store, tmp_path / "set")
    assert open_store(tmp_path / "set").checked == bool(many)
    assert np.array_equal(open_store(tmp_path / "set").cut(np.arange(40)).edges, store.cut(np.arange(40)).edges)
    _forge(tmp_path / "set", name, place, value)
    with pytest.raises(InputError, match=message):
        open_store(tmp_path / "set").cut(np.arange(40))
    if "labels" in message or "edges" in message:
        code, _, err = same("train", tmp_path / "set", "--out", tmp_path / "run", "--set", "width=8")
        assert code == 2
        assert message in err
        assert len([line for line in err.splitlines() if line.startswith("same:")]) == 1


def test_arrays_that_do_not_belong_together_are_refused(tmp_path):
    save_store(random_store(0, [6] * 40), tmp_path / "set")
    header = json.loads((tmp_path / "set" / "store.json").read_text())
    for change in ({"labels1": {"dtype": "<i4", "shape": [120, 2]}}, {"x": {"dtype": "<f4", "shape": [720]}}):
        forged = {**header, "arrays": {**header["arrays"], **change}}
        (tmp_path / "set" / "store.json").write_text(json.dumps(forged))
        with pytest.raises(InputError):
            open_store(tmp_path / "set")


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
