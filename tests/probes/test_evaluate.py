import copy
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from commands import same
from helpers import random_store
from same.config import Config
from same.errors import InputError
from same.experiment import embed_set, run
from same.graphs import GraphBatch, GraphStore, Inputs, Split, load, planted, save_store, split
from same.linear import fit_linear, predict_linear
from same.metrics import scores
from same.nn.embedding import embed_graphs
from same.probes import Evaluation, Score, evaluate_run
from same.probes.evaluate import majority
from same.probes.network import predict_network
from same.probes.protocols import probe_examples
from same.saved import load_trained
from same.seeding import stream
from same.tasks import TASKS, Examples

CONFIG = Config(width=16, max_epochs=4, validate_every=2, batch_size=70, tasks=("gc", "nc"), degree=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    run(CONFIG, folder)
    return folder


def main_scores(rows: list[Score]) -> dict[tuple[str, str, str, str], float]:
    """The first score of each model, probe, task and protocol: the main one."""
    scores: dict[tuple[str, str, str, str], float] = {}
    for row in rows:
        scores.setdefault((row.model, row.probe, row.task, row.protocol), row.score)
    return scores


def with_examples(evaluation: Evaluation, examples: dict) -> Evaluation:
    other = copy.copy(evaluation)
    other.examples = examples
    return other


def node_index(batch: GraphBatch) -> torch.Tensor:
    """An embedding that knows nothing but the order of nodes in the file: place / number of nodes."""
    sizes = batch.node_ptr.diff()
    place = torch.arange(batch.num_nodes) - batch.node_ptr[batch.batch]
    return (place / sizes[batch.batch])[:, None].float()


def test_no_more_nodes_than_so_many_are_encoded_at_once(monkeypatch):
    evaluation, seen = Evaluation(CONFIG), []

    def encode(batch):
        seen.append(batch.num_nodes)
        return batch.smoothed

    whole = evaluation.probe("smoothed", encode, ("linear",))
    monkeypatch.setattr("same.probes.evaluate.NODES", 1000)
    pieces = evaluation.probe("smoothed", encode, ("linear",))
    assert seen[0] == sum(seen[1:])
    assert max(seen[1:]) <= 1000 < seen[0]
    assert pieces == whole


def test_the_majority_is_a_constant():
    assert majority("classes", np.array([2, 0, 2]), np.zeros(4)).tolist() == [2, 2, 2, 2]
    assert majority("links", np.array([0.0, 1.0]), np.zeros(3)).tolist() == [0.5, 0.5, 0.5]
    means = majority("numbers", np.array([[1.0, 4.0], [3.0, 4.0]]), np.zeros((2, 2)))
    assert means.tolist() == [[2.0, 4.0], [2.0, 4.0]]


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"batch_norm": True}])
def test_floors_embed_each_graph_alone_and_without_dropout(settings, monkeypatch):
    encoders = {}

    def probe(self, model, encode, probes):
        encoders[model] = encode
        return []

    monkeypatch.setattr(Evaluation, "probe", probe)
    evaluation = Evaluation(CONFIG.model_copy(update=settings), tasks=["gc"])
    evaluation.floors()
    store = evaluation.experiment.store
    both, one = store.cut([0, 1]), store.cut([0])
    assert list(encoders) == ["majority", "raw", "untrained"]
    for encode in encoders.values():
        with torch.no_grad():
            torch.testing.assert_close(encode(both)[: one.num_nodes], encode(one))
    assert torch.equal(encoders["raw"](both), both.x)


def test_every_task_is_probed_next_to_the_floors(trained):
    rows = evaluate_run(trained, probes=("linear", "paper", "network", "own"))
    by = {(row.model, row.probe, row.task) for row in rows}
    expected = {("majority", "none"), ("esame", "network")}
    expected |= {(model, probe) for model in ("raw", "untrained", "esame") for probe in ("linear", "paper")}
    for task in ("gc", "nc", "lp"):
        own = {("esame", "own")} if task in CONFIG.tasks else set()
        assert {(model, probe) for model, probe, of in by if of == task} == expected | own
    assert all(0 <= row.score <= 1 for row in rows)
    assert {(row.part, row.protocol, row.pair) for row in rows} == {("test", "paper", "symmetric")}
    metrics: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        metrics.setdefault((row.model, row.probe, row.task), []).append(row.metric)
    for (_, _, task), names in metrics.items():
        assert names == (["roc_auc", "average_precision"] if task == "lp" else ["accuracy", "macro_f1"])


def test_both_protocols_are_what_each_is_alone_from_one_loading(trained, monkeypatch):
    loadings = []
    real = load

    def counted(*args):
        loadings.append(args)
        return real(*args)

    options = {"probes": ("linear", "own"), "networks": ("lp",), "choose": "loss"}
    paper, released = (evaluate_run(trained, protocols=(protocol,), **options) for protocol in ("paper", "released"))
    monkeypatch.setattr("same.experiment.load", counted)
    both = evaluate_run(trained, protocols=("paper", "released"), **options)
    assert len(loadings) == 1
    assert {row for row in both if row.protocol == "paper"} == set(paper)
    # The protocols differ in link prediction alone; other tasks are evaluated under the first.
    assert {row for row in both if row.protocol == "released"} == {row for row in released if row.task == "lp"}
    assert {row._replace(protocol="paper") for row in released if row.task != "lp"} < set(paper)
    assert next(row for row in released if row.task == "lp").metric == "accuracy"
    networks = {(row.task, row.protocol) for row in both if row.probe == "network"}
    assert networks == {("lp", "paper"), ("lp", "released")}


def test_the_linear_probe_is_one_function_on_the_features(trained):
    evaluation, encode = Evaluation(CONFIG, choose="loss"), load_trained(trained).encoder
    rows = main_scores(evaluation.probe("esame", encode, ("linear",)))
    for case in evaluation.cases:
        parts = {}
        for part, examples in evaluation.examples[case].items():
            with torch.no_grad():
                h = encode(examples.inputs)
            parts[part] = case.task.features(h, examples).numpy(), examples.y.numpy()
        model = fit_linear(case.task.kind, *parts["train"], parts["validation"])
        x, y = parts["test"]
        expected, *_ = scores(case.task.kind, y, predict_linear(case.task.kind, model, x)).values()
        assert rows["esame", "linear", case.task.name, "paper"] == pytest.approx(expected, abs=2e-3)
    with pytest.raises(InputError, match="choose: 'score' is not one of loss"):
        Evaluation(CONFIG, choose="score")


def test_numbers_are_probed_by_ridge_regression_in_any_units():
    store, r2 = planted(), {}
    counts = np.diff(store.node_ptr).astype(np.float64)
    for name, y in (("plain", counts), ("units", 1000 * counts + 5000)):
        x = np.zeros((store.num_graphs, 2), np.float32)
        x[:, 0] = counts
        model = fit_linear("numbers", x[:200], y[:200], (x[200:250], y[200:250]))
        r2[name] = scores("numbers", y[250:], predict_linear("numbers", model, x[250:]))["r2"]
    assert r2["plain"] > 0.99
    assert r2["units"] == pytest.approx(r2["plain"])


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"batch_norm": True}])
def test_an_untrained_run_is_its_own_floor(tmp_path, settings):
    """Without dropout, and without batch statistics of the test graphs."""
    run(CONFIG.model_copy(update={"method": "untrained", **settings}), tmp_path / "run")
    rows = evaluate_run(tmp_path / "run", probes=("linear", "own"))
    assert "own" not in {row.probe for row in rows}
    names = [(row.model, row.probe, row.task, row.metric) for row in rows]
    assert len(set(names)) == len(names)
    alone = evaluate_run(tmp_path / "run", probes=("linear",), floors=False)
    assert [row for row in rows if row.model == "untrained"] == alone


def test_evaluation_repeats_and_does_not_depend_on_what_else_is_probed(trained):
    whole = evaluate_run(trained, networks=("lp",))
    assert evaluate_run(trained, networks=("lp",)) == whole
    some = evaluate_run(trained, tasks=["lp"], floors=False, probes=("linear", "network"))
    assert {row.probe for row in some} == {"linear", "network"}
    assert set(some) < set(whole)


def test_validation_is_touched_only_where_asked(trained, monkeypatch):
    plain = evaluate_run(trained, probes=("linear", "paper"), choose=None)
    chosen = evaluate_run(trained, probes=("linear", "paper"))
    # The choice is for the linear probe alone.
    assert [row for row in chosen if row.probe == "paper"] == [row for row in plain if row.probe == "paper"]
    changed = []

    def change(*args):
        sets = probe_examples(*args)
        for parts in sets.values():
            parts["validation"] = replace(parts["validation"], y=parts["validation"].y.flip(0))
            changed.append(1)
        return sets

    monkeypatch.setattr("same.probes.evaluate.probe_examples", change)
    assert evaluate_run(trained, probes=("linear", "paper"), choose=None) == plain
    assert changed
    assert evaluate_run(trained, probes=("linear", "paper")) != chosen


def test_a_models_own_score_does_not_depend_on_what_else_is_probed(tmp_path):
    run(CONFIG.model_copy(update={"method": "traditional", "tasks": ("gc", "nc", "lp")}), tmp_path / "run")
    whole = evaluate_run(tmp_path / "run", probes=["own"], floors=False)
    assert {row.task for row in whole} == {"gc", "nc", "lp"}
    alone = evaluate_run(tmp_path / "run", probes=["own"], floors=False, tasks=["lp"])
    assert alone == [row for row in whole if row.task == "lp"]
    # A head takes the pair features that it was trained with.
    other = evaluate_run(tmp_path / "run", probes=["own"], floors=False, pair="concat")
    assert [row._replace(pair="symmetric") for row in other] == [row for row in whole if row.task != "lp"]


def test_a_part_of_the_split_can_be_scored():
    evaluation = Evaluation(CONFIG, tasks=["gc"])
    (case,), encode = evaluation.cases, lambda batch: batch.x
    rows = evaluation.probe("raw", encode, ("none", "linear"), networks=("gc",), part="validation")
    assert {row.part for row in rows} == {"validation"}
    y = evaluation.examples[case]["validation"].y.numpy()
    train = evaluation.examples[case]["train"].y.numpy()
    assert main_scores(rows)["raw", "none", "gc", "paper"] == np.mean(y == np.bincount(train).argmax())
    sets = [replace(e, embeddings=e.inputs.x) for e in evaluation.examples[case].values()]
    rng = stream(CONFIG.seed, "network", CONFIG.split, list(TASKS).index("gc"))
    predicted = predict_network(case.task, sets[0], sets[1], sets[1], rng)
    assert main_scores(rows)["raw", "network", "gc", "paper"] == np.mean(predicted == y)


def permuted(store: GraphStore, seed: int) -> tuple[GraphStore, np.ndarray]:
    """The same graphs with the nodes of each in another order; and where each node went."""
    rng = np.random.default_rng(seed)
    sizes = np.diff(store.node_ptr)
    where = np.concatenate([rng.permutation(size) for size in sizes]) + np.repeat(store.node_ptr[:-1], sizes)
    back = np.argsort(where)
    edges = where[store.edges + np.repeat(store.node_ptr[:-1], np.diff(store.edge_ptr))]
    other = GraphStore.build(
        store.name,
        x=store.x[back],
        sizes=sizes,
        edge_index=edges,
        graph_y=store.labels["y"],
        node_y=store.labels["node_y"].take(back),
    )
    return other, where


def moved_examples(examples: Examples, store: GraphStore, where: np.ndarray) -> Examples:
    """The same examples in a set whose nodes were moved: the same graphs, edges, nodes and pairs."""
    old = examples.inputs
    ids = old.graph_ids.numpy()
    new = store.cut(ids)
    offset = torch.from_numpy(
        np.concatenate([where[a:b] - a for a, b in zip(store.node_ptr[ids], store.node_ptr[ids + 1], strict=True)])
    )
    to = offset + old.node_ptr[old.batch]
    kept = {tuple(sorted(e)) for e in to[old.edges].T.tolist()}
    new = new.drop_edges(torch.tensor([tuple(e) not in kept for e in new.edges.T.tolist()], dtype=torch.bool))
    if examples.index is None:
        y = examples.y if len(examples.y) == old.num_graphs else new.node_y
        return Examples(new, y)
    return Examples(new, examples.y, to[examples.index])


def test_the_order_of_nodes_changes_no_score(trained):
    """The same held-out edges and negatives, in a file whose nodes are in another order: all scores stay."""
    evaluation = Evaluation(CONFIG)
    other, where = permuted(planted(), 7)
    other = other.with_inputs(evaluation.experiment.store.inputs)
    examples = {
        case: {part: moved_examples(each, other, where) for part, each in parts.items()}
        for case, parts in evaluation.examples.items()
    }
    shuffled = with_examples(evaluation, examples)
    encoder = load_trained(trained).encoder
    both = [main_scores([*e.floors(), *e.probe("esame", encoder, ("linear",))]) for e in (evaluation, shuffled)]
    assert len(both[0]) == 12
    for key, score in both[0].items():
        assert score == pytest.approx(both[1][key], abs=2e-3), key


def test_the_order_of_graphs_changes_no_score(trained):
    """Graphs and nodes of each part in another order; pairs would be drawn anew, so links are left out."""
    evaluation = Evaluation(CONFIG, tasks=["gc", "nc"])
    rng, parts = np.random.default_rng(0), evaluation.experiment.split
    other = Split(*(rng.permutation(ids) for ids in (parts.train, parts.validation, parts.test)))
    examples = probe_examples(replace(evaluation.experiment, split=other), evaluation.cases)
    shuffled, encoder = with_examples(evaluation, examples), load_trained(trained).encoder
    both = [main_scores([*e.floors(), *e.probe("esame", encoder, ("linear",))]) for e in (evaluation, shuffled)]
    assert len(both[0]) == 8
    for key, score in both[0].items():
        assert score == pytest.approx(both[1][key], abs=2e-3), key


def test_the_released_protocol_measures_the_order_of_nodes_and_ours_does_not():
    """The test that would have caught the published flaw."""
    evaluation = Evaluation(Config(pair="concat"), tasks=["lp"], protocols=("paper", "released"))
    rows = evaluation.probe("index", node_index, ("linear",))
    score = {(row.protocol, row.metric): row.score for row in rows}
    assert score["released", "accuracy"] > 0.99
    assert score["released", "roc_auc"] > 0.99
    assert abs(score["paper", "roc_auc"] - 0.5) < 0.05
    assert ("paper", "accuracy") not in score


def test_a_permutation_changes_scores_under_released():
    evaluation = Evaluation(Config(pair="concat", width=32), tasks=["lp"], protocols=("released",))
    other, _ = permuted(planted(), 3)
    examples = probe_examples(replace(evaluation.experiment, store=other), evaluation.cases)
    # The index that a node had in the file before.
    shuffled = with_examples(evaluation, examples)
    before, after = (e.probe("index", node_index, ("linear",))[0].score for e in (evaluation, shuffled))
    first, second = (e.probe("raw", lambda batch: batch.x, ("linear",))[0].score for e in (evaluation, shuffled))
    assert before > 0.99
    assert after > 0.99
    assert abs(first - second) > 0.01


def test_embed(trained, tmp_path):
    nodes = embed_set(trained, "planted", tmp_path / "e.npz")
    with np.load(tmp_path / "e.npz", allow_pickle=False) as file:
        h, graph, ptr, means = (file[key] for key in ("embeddings", "graph", "node_ptr", "graph_means"))
    store = load("planted")
    assert h.shape == (nodes, 16) == (store.num_nodes, 16)
    assert (np.bincount(graph) == np.diff(ptr)).all()
    np.testing.assert_allclose(means[3], h[graph == 3].mean(0), rtol=1e-4, atol=1e-6)


def test_embed_refuses_other_attributes(trained, tmp_path):
    save_store(random_store(0, [5] * 12), tmp_path / "other")
    with pytest.raises(InputError, match="its nodes have 3 attributes, the inputs were fitted on 24"):
        embed_set(trained, str(tmp_path / "other"), tmp_path / "e.npz")
    with pytest.raises(InputError, match="format: 'csv' is not one of npz, npy"):
        embed_set(trained, "planted", tmp_path / "e.csv", kind="csv")
    assert not list(tmp_path.glob("e.*"))


def test_the_commands(trained, tmp_path):
    code, out, err = same("evaluate", trained, "--json", "--probes", "linear", "--pair", "concat")
    printed = json.loads(out)
    assert (code, err) == (0, "")
    assert (printed["protocol"], printed["pair"], printed["split"]) == ("paper", "concat", 0)
    assert {row["model"] for row in printed["rows"]} == {"majority", "raw", "untrained", "esame"}
    code, out, _ = same("evaluate", trained, "-t", "lp")
    assert code == 0
    assert "protocol paper, pair symmetric" in out
    assert "lp AUC" in out
    code, out, _ = same("embed", trained, "planted", "--out", tmp_path / "e.npz", "--json")
    assert (code, json.loads(out)) == (0, {"file": str(tmp_path / "e.npz"), "format": "npz", "nodes": 7102})
    code, _, err = same("evaluate", tmp_path)
    assert (code, "holds no model" in err) == (2, True)


def test_a_run_that_saw_node_labels_is_not_probed_for_them(tmp_path):
    config = CONFIG.model_copy(update={"tasks": ("gc", "lp"), "node_labels": "input", "max_epochs": 1})
    run(config, tmp_path / "run")
    assert {row.task for row in evaluate_run(tmp_path / "run", floors=False)} == {"gc", "lp"}
    message = "tasks: nc predicts the node labels that node_labels=input shows to the encoder; leave out one of them"
    with pytest.raises(InputError, match=message):
        evaluate_run(tmp_path / "run", tasks=["nc"])
    embed_set(tmp_path / "run", "planted", tmp_path / "e.npz")
    store = planted()
    inputs = Inputs.fit(store, split(store, 0).train, degree=4, node_labels="input")
    h, _ = embed_graphs(load_trained(tmp_path / "run").encoder, store.with_inputs(inputs))
    with np.load(tmp_path / "e.npz") as file:
        assert np.array_equal(file["embeddings"], h)
    save_store(GraphStore.build("bare", x=np.ones((5, 24)), sizes=[5], edge_index=[[0], [1]]), tmp_path / "bare")
    with pytest.raises(InputError, match="bare: node_labels=input shows node classes to the encoder, and its nodes"):
        embed_set(tmp_path / "run", str(tmp_path / "bare"), tmp_path / "b.npz")


def test_mistakes_are_refused(trained):
    for options, message in [
        ({"protocols": ["x"]}, "protocol: 'x' is not one of paper, released"),
        ({"probes": ["linear", "x"]}, "probes: x: not among linear, paper, network, own"),
        ({"choose": "score"}, "choose: 'score' is not one of loss"),
        ({"tasks": ["xx"]}, "tasks: 'xx' is not one of"),
    ]:
        with pytest.raises(InputError, match=message):
            evaluate_run(trained, **options)


@pytest.mark.parametrize("damage", ["model.safetensors", "config.json", "result.json"])
def test_a_damaged_run_is_said(trained, tmp_path, damage):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / damage).write_bytes(b"\x00nonsense")
    if damage == "result.json":
        (tmp_path / "run" / damage).unlink()
    with pytest.raises(InputError, match=damage if damage != "result.json" else "not finished"):
        evaluate_run(tmp_path / "run")


def test_links_that_cannot_be_scored_are_left_out_unless_asked_for(tmp_path, caplog):
    """The only edge of a graph is never held out."""
    save_store(random_store(0, [2] * 40, density=1.0), tmp_path / "pairs")
    config = Config(dataset=str(tmp_path / "pairs"), width=8)
    assert [case.task.name for case in Evaluation(config).cases] == ["gc", "nc"]
    assert "lp cannot be scored, there are too few pairs" in caplog.text
    asked = Evaluation(config, tasks=["lp"])
    with pytest.raises(InputError, match="needs training examples"):
        asked.probe("raw", lambda batch: batch.x, ("linear",))
