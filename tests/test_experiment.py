"""Every method trains, repeats to the bit, and continues after any interruption."""

import json
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from same.config import Config, make_config
from same.episodes import validation_episodes, whole_episode
from same.errors import InputError
from same.experiment import embed_set, fit, prepare, run
from same.graphs import GraphStore, Split, planted, split
from same.graphs.io.folder import save_store, write_store
from same.methods import get
from same.nn.embedding import embed_graphs
from same.saved import load_trained
from same.training import DivergedError, InterruptedTraining, Rule

SMALL = Config(width=8, max_epochs=2, validate_every=1, batch_size=60)
SAME_COMMAND = Path(sys.executable).with_name("same")


def small(**changes) -> Config:
    return make_config(SMALL.model_dump() | changes)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def assert_same_bits(a: Path, b: Path) -> None:
    one, other = weights(a), weights(b)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (a / "history.jsonl").read_text() == (b / "history.jsonl").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "classical"},
        {"method": "classical", "tasks": "nc"},
        {"method": "classical", "weighting": "gradnorm"},
        {"method": "classical", "weighting": "uncertainty"},
        {"method": "isame", "weighting": "balanced"},
        {"method": "classical", "weighting": "upgrad"},
        {"method": "esame", "weighting": "uncertainty"},
        {"method": "esame", "weighting": "pcgrad"},
        {"method": "isame", "weighting": "gradnorm", "tasks": "gc,lp"},
        {"method": "esame", "tasks": "lp"},
        {"method": "traditional"},
        {"method": "traditional", "adapts": "head", "weighting": "uncertainty"},
        {"method": "finetuned", "tasks": "gc,nc"},
        {"method": "infomax"},
        {"method": "untrained"},
        {"method": "isame", "encoder": "gin", "walk": 3, "scaling": "row"},
        {"method": "esame", "inner_steps": 2},
        {"method": "finetuned", "tasks": "gc,nc", "weighting": "gradnorm"},
    ],
    ids=lambda changes: ",".join(map(str, changes.values())),
)
def test_every_method_trains_and_repeats(tmp_path, changes):
    config = small(**changes)
    result = run(config, tmp_path / "a")
    run(config, tmp_path / "b")
    assert_same_bits(tmp_path / "a", tmp_path / "b")
    a = weights(tmp_path / "a")
    assert result["epochs"] == (2 if get(config.method).trains else 0)
    first = next(name for name in a if name.startswith("model.encoder.layers.0.") and name.endswith("weight"))
    trained = not torch.equal(a[first], prepare(config).model.get_parameter(first.removeprefix("model.")))
    assert trained == (result["best"]["step"] > 0)


def test_all_methods_start_from_the_same_encoder_and_split():
    methods = ("isame", "classical", "traditional", "infomax", "finetuned", "untrained")
    experiments = [prepare(small(method=method, tasks="gc,nc")) for method in methods]
    for other in experiments[1:]:
        assert (other.split.test == experiments[0].split.test).all()
        for a, b in zip(experiments[0].model.encoder.parameters(), other.model.encoder.parameters(), strict=True):
            assert torch.equal(a, b)


def test_scaling_is_fitted_on_training_graphs_alone():
    experiment = prepare(small(split=3))
    store = experiment.store
    of = np.repeat(np.arange(len(store)), np.diff(store.node_ptr))
    nodes = np.isin(of, experiment.split.train)
    np.testing.assert_allclose(store.inputs.mean, store.x[nodes].mean(0), atol=1e-6)
    np.testing.assert_allclose(store.inputs.scale, store.x[nodes].std(0), atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"tasks": "gc,lp", "method": "finetuned"}], ids=["nc", "first phase"])
def test_a_run_whose_encoder_sees_node_labels_does_not_learn_them(tmp_path, changes):
    with pytest.raises(InputError, match="tasks: nc predicts the node labels that node_labels=input shows to the"):
        run(small(**changes, node_labels="input"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_unused_node_labels_are_named_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, "same")
    store, parts = planted(60), Split(*np.split(np.arange(60), [40, 50]))

    def logged(**changes):
        caplog.clear()
        config = small(**{"batch_size": 20, "method": "classical"} | changes)
        fit(config, store, parts)
        run(config, tmp_path / config.key)
        return [(r.levelname, r.getMessage()) for r in caplog.records if "node labels" in r.getMessage()]

    line = (
        "planted: has node labels, which are not used; train nc as well, or show them to the encoder with "
        "node_labels='input'"
    )
    assert logged(tasks="gc,lp") == [("WARNING", line), ("INFO", line)]
    assert logged(tasks="gc,lp", node_labels="input") == []
    assert logged(tasks="nc") == []
    assert logged(tasks="gc,lp", method="finetuned") == []  # The first phase learns nc.
    store = store.with_labels("node_y", np.ones(store.num_nodes))
    assert logged(tasks="lp")[0][0] == "INFO"  # Of the set that `run` loads.


def test_fine_tuning_reuses_the_three_task_run_beside_it(tmp_path):
    config = small(method="finetuned", tasks="gc,lp")
    run(config, tmp_path / "alone")
    assert (tmp_path / "alone" / "first" / "result.json").is_file()

    first = small(method="classical")
    run(first, tmp_path / "study" / first.key)
    run(config, tmp_path / "study" / config.key)
    assert not (tmp_path / "study" / config.key / "first").exists()
    assert_same_bits(tmp_path / "alone", tmp_path / "study" / config.key)

    history = (tmp_path / "alone" / "history.jsonl").read_text().splitlines()
    end_of_first = json.loads((tmp_path / "alone" / "first" / "result.json").read_text())["best"]["tasks"]
    for task in ("gc", "lp"):
        assert json.loads(history[0])["tasks"][task] == end_of_first[task]


def test_validation_graphs_without_examples_of_a_task_are_refused(tmp_path):
    """The loss of no examples would make the untrained model the best."""
    base = planted(60)
    lonely = split(base, 0).validation
    keep = np.repeat(~np.isin(np.arange(60), lonely), np.diff(base.edge_ptr))
    edges = base.edges + np.repeat(base.node_ptr[:-1], np.diff(base.edge_ptr))
    store = GraphStore.build(
        "lonely",
        x=base.x,
        sizes=np.diff(base.node_ptr),
        edge_index=edges[:, keep],
        graph_y=base.graph_y,
        node_y=base.node_y,
    )
    save_store(store, tmp_path / "lonely")
    config = small(dataset=str(tmp_path / "lonely"), batch_size=20)
    with pytest.raises(InputError, match="no examples of lp"):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "esame"},
        {"method": "isame"},
        {"dropout": 0.3},
        {"method": "classical", "weighting": "pcgrad"},
        {"weighting": "gradnorm"},
        {"weighting": "balanced"},
    ],
    ids=["esame", "isame", "dropout", "pcgrad", "gradnorm", "balanced"],
)
def test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_bits(tmp_path, changes):
    config = small(**{"max_epochs": 4, "validate_every": 2, "batch_size": 105, **changes})
    run(config, tmp_path / "whole")
    for stop_at in (1, 3):
        folder = tmp_path / f"stopped-{stop_at}"
        while True:
            polls = 0

            def stop(stop_at=stop_at):
                nonlocal polls
                polls += 1
                return polls == stop_at + 1

            try:
                run(config, folder, stop=stop)
                break
            except InterruptedTraining:
                pass
        assert_same_bits(tmp_path / "whole", folder)


def test_seeds_and_splits_give_other_weights(tmp_path):
    for name, changes in {"a": {}, "seed": {"seed": 1}, "split": {"split": 1}}.items():
        run(small(max_epochs=1, **changes), tmp_path / name)
    first = weights(tmp_path / "a")["model.encoder.layers.1.weight"]
    for other in ("seed", "split"):
        assert not torch.equal(first, weights(tmp_path / other)["model.encoder.layers.1.weight"])


def test_kill_9_and_resume_ends_with_the_same_bits(tmp_path):
    """The command itself, killed twice while it trains."""
    settings = {"width": 32, "max_epochs": 24, "validate_every": 2, "batch_size": 60, "validation_episodes": 1}
    run(Config(**settings), tmp_path / "whole")
    command = [SAME_COMMAND, "train", "planted", *(f"--set={name}={value}" for name, value in settings.items())]
    killed = 0
    for validations in (3, 7):
        process = subprocess.Popen([*command, "--out", tmp_path / "killed"], stderr=subprocess.DEVNULL)
        history = tmp_path / "killed" / "history.jsonl"
        while process.poll() is None:
            if history.is_file() and history.read_text().count("\n") >= validations:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            time.sleep(0.005)
    assert killed == 2
    assert not (tmp_path / "killed" / "result.json").exists()
    run(Config(**settings), tmp_path / "killed")
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")


def test_sigterm_saves_the_run_and_names_the_command_to_continue(tmp_path):
    command = [SAME_COMMAND, "train", "planted", "--set=width=32", "--out", tmp_path / "run"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "history.jsonl").is_file():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command" in err
    assert "Traceback" not in err


def test_rates_that_blow_up_are_reported(tmp_path):
    with pytest.raises(DivergedError, match=r"step 0: the validation loss of \w+ is not finite"):
        run(small(inner_lr=1e30), tmp_path / "run")


def test_a_finished_run_is_not_done_again_and_another_is_not_overwritten(tmp_path):
    first = run(SMALL, tmp_path / "run")
    stamp = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert run(SMALL, tmp_path / "run") == first
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == stamp
    with pytest.raises(InputError, match=r"holds another run \(width: 8, not 16\)"):
        run(small(width=16), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        run(SMALL, tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("method", ["isame", "esame"])
def test_training_on_planted_beats_the_untrained_encoder_on_unseen_graphs(tmp_path, method):
    """Target losses on the test graphs, after adapting to their support sets, by at least a tenth for every task."""
    config = Config(method=method, width=32, max_epochs=40, patience=40, outer_lr=5e-3, validation_episodes=1)
    experiment = prepare(config)
    episodes = validation_episodes(whole_episode, experiment.store, experiment.tasks, experiment.split.test, count=3)
    run(config, tmp_path / "run")

    def losses():
        rows = [experiment.method.evaluate(experiment.model, episode) for episode in episodes]
        return np.array([[row[task][0] for task in config.tasks] for row in rows]).mean(axis=0)

    untrained, state = losses(), weights(tmp_path / "run")
    experiment.model.load_state_dict({name: state[f"model.{name}"] for name in experiment.model.state_dict()})
    assert (losses() < 0.9 * untrained).all(), (untrained, losses())


def test_the_files_of_a_run(tmp_path):
    result = run(small(max_epochs=3, validate_every=2), tmp_path / "run")
    files = sorted(path.name for path in (tmp_path / "run").iterdir())
    expected = ["checkpoint.safetensors", "config.json", "history.jsonl", "model.safetensors", "result.json"]
    assert files == expected
    assert len({path.stat().st_mode for path in (tmp_path / "run").iterdir()}) == 1
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in history] == [0, 2, 3]
    assert min(history, key=lambda record: record["objective"]) == result["best"]
    assert set(result["best"]["tasks"]) == {"gc", "nc", "lp"}
    assert (result["cap"], result["ended"]) == (3, "cap")
    # Each task sees a third of the graphs in every epoch.
    assert result["examples"]["gc"] == pytest.approx(3 * 210 / 3, abs=12)


def test_the_default_cap_is_a_number_of_epochs_or_of_steps(monkeypatch):
    def schedule(**changes):
        return prepare(Config(width=8, batch_size=20, **changes)).schedule()

    ordinary = schedule()
    assert ordinary.steps_per_epoch > 5
    assert (ordinary.epochs, ordinary.validate_every, ordinary.max_seconds) == (200, 5, None)
    assert schedule(method="untrained").epochs == 0
    assert schedule(max_seconds=3).max_seconds == 3
    monkeypatch.setattr("same.experiment.MAX_STEPS", 30 * ordinary.steps_per_epoch + 1)
    assert schedule(max_epochs=100).epochs == 100  # A number means that number.
    large = schedule()
    assert (large.epochs, large.steps) == (30, 30 * ordinary.steps_per_epoch)
    assert sum(large.validates(step) for step in range(1, large.steps + 1)) == 10
    assert schedule(episodes_per_step=2).epochs == 60
    assert schedule(validate_every=1).validate_every == 1
    monkeypatch.setattr("same.experiment.MAX_STEPS", 1)
    assert schedule().epochs == 1


def test_a_run_ends_after_its_seconds_as_a_finished_run(tmp_path):
    config = small(max_epochs=10**6, patience=10**6, validate_every=10**6, max_seconds=0.3)
    result = run(config, tmp_path / "run")
    assert result["ended"] == "seconds"
    assert result["seconds"] > 0.3
    assert [record["step"] for record in load_trained(tmp_path / "run").history] == [0, result["steps"]]
    assert run(config, tmp_path / "run") == result


def test_only_training_in_memory_logs_an_estimate(tmp_path, monkeypatch):
    """Progress shows it for a run in a folder, and workers of a study must not log."""
    made = []
    monkeypatch.setattr("same.experiment.Estimate", lambda: made.append(1) or Rule())
    run(SMALL, tmp_path / "run")
    assert not made
    fit(SMALL, planted(), split(planted(), 0))
    assert made


@pytest.mark.parametrize("changes", [{}, {"tasks": "gc,lp", "node_labels": "input"}], ids=["attributes", "labels"])
def test_a_mapped_set_gives_the_bits_of_one_in_memory(tmp_path, monkeypatch, changes):
    write_store(tmp_path / "set", [planted()])
    run(small(**changes), tmp_path / "built-in")
    monkeypatch.setattr("same.graphs.inputs._CACHE_BYTES", 0)
    run(small(**changes, dataset=str(tmp_path / "set")), tmp_path / "mapped")
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("mapped", "built-in")]
    assert models[0] == models[1]


def test_a_set_is_embedded_by_the_encoder_of_a_run(tmp_path):
    save_store(planted(30), tmp_path / "set")
    run(SMALL, tmp_path / "run")
    nodes = embed_set(tmp_path / "run", str(tmp_path / "set"), tmp_path / "e.npz")
    trained = load_trained(tmp_path / "run")
    h, means = embed_graphs(trained.encoder, planted(30).with_inputs(trained.inputs))
    with np.load(tmp_path / "e.npz") as arrays:
        assert np.array_equal(arrays["embeddings"], h)
        assert np.array_equal(arrays["graph_means"], means)
    assert nodes == len(h)


PINNED: dict[str, dict[str, tuple[float, ...]]] = {
    "classical": {
        "gc": (1.07375, 0.285714, 0.294118, 1e-05),
        "nc": (1.00358, 0.363057, 0.329114, 1e-05),
        "lp": (0.893001, 0.683663, 0.685023, 0.1),
        "stop": (4, 0, 2.88644),
    },
    "isame": {
        "gc": (1.02273, 0.428571, 0.470588, 0.1),
        "nc": (1.02237, 0.363057, 0.367089, 1e-05),
        "lp": (0.938504, 0.649584, 0.627678, 100.0),
        "stop": (6, 4, 2.98679),
    },
    "esame": {
        "gc": (1.01869, 0.428571, 0.529412, 0.1),
        "nc": (1.01909, 0.375796, 0.372152, 1e-05),
        "lp": (0.930876, 0.657128, 0.628268, 100.0),
        "stop": (6, 4, 2.98884),
    },
}
"""By method and task: loss and score that validation shows at the end, score of `predict`, and C of the linear head;
and the last epoch, the epoch that was kept, and its objective.

What is predicted, what validation shows and what stops training are settled: every later measurement depends on them.
"""


@pytest.mark.parametrize("method", ["classical", "isame", "esame"])
def test_three_tiny_runs_are_pinned(method):
    options = {"width": 16, "batch_size": 24, "max_epochs": 6, "validate_every": 2, "patience": 4, "outer_lr": 0.02}
    config = Config(method=method, **options)
    store = planted(80)
    trained = fit(config, store, split(store, 0))
    test = store[split(store, 0).test].with_inputs(trained.inputs)
    last, seen = trained.history[-1], {}
    for task in trained.tasks:
        values = last["tasks"][task.name]
        seen[task.name] = (values["loss"], values["score"], trained.score(task, test), trained.linear[task.name].C)
    seen["stop"] = (last["epoch"], trained.training["best"]["epoch"], trained.training["best"]["objective"])
    assert {name: pytest.approx(values, rel=1e-4) for name, values in PINNED[method].items()} == seen
