import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from commands import same
from helpers import random_store
from same.config import Config
from same.embedding import embed_set
from same.errors import InputError
from same.graphs import GraphBatch, GraphStore, Split, load, planted, split
from same.names import CHOOSE_C
from same.probes import NetworkProbe, evaluate_run
from same.probes.evaluate import GRID, Probing
from same.probes.network import take
from same.probes.protocols import probe_examples, released_links
from same.runs import open_run, run
from same.tasks import Examples, make_tasks

CONFIG = Config(width=16, max_epochs=4, validate_every=2, batch_size=70, tasks=("gc", "nc"), degree=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    run(CONFIG, folder)
    return folder


def node_index(batch: GraphBatch) -> torch.Tensor:
    """An embedding that knows nothing but the order of nodes in the file: place / number of nodes."""
    sizes = batch.node_ptr.diff()
    place = torch.arange(batch.num_nodes) - batch.node_ptr[batch.batch]
    return (place / sizes[batch.batch])[:, None].float()


def test_no_more_nodes_than_so_many_are_encoded_at_once(monkeypatch):
    probing, seen = Probing.of(CONFIG), []

    def encode(batch):
        seen.append(batch.num_nodes)
        return batch.smoothed

    whole = probing.rows("smoothed", encode, ("linear",))
    monkeypatch.setattr("same.probes.evaluate.NODES", 1000)
    pieces = probing.rows("smoothed", encode, ("linear",))
    assert seen[0] == sum(seen[1:])
    assert max(seen[1:]) <= 1000 < seen[0]
    assert pieces == whole


def test_every_task_is_probed_beside_the_floors(trained):
    rows = evaluate_run(trained)
    found = {(row.model, row.probe, row.task) for row in rows}
    for task in ("gc", "nc", "lp"):
        expected = [
            ("majority", "none"),
            ("raw", "linear"),
            ("untrained", "linear"),
            ("esame", "linear"),
            ("esame", "network"),
        ]
        assert {(m, p, task) for m, p in expected} <= found
    assert {t for m, p, t in found if p == "own"} == {"gc", "nc"}
    assert all(0 <= row.main <= 1 for row in rows)
    assert {row.task: list(row.scores) for row in rows} == {
        "gc": ["accuracy", "macro_f1"],
        "nc": ["accuracy", "macro_f1"],
        "lp": ["roc_auc", "average_precision"],
    }


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"batch_norm": True}])
def test_the_untrained_floor_is_the_untrained_encoder_as_it_would_be_used(tmp_path, settings):
    """No dropout, and no batch statistics of the graphs that are told."""
    run(CONFIG.model_copy(update={"method": "untrained", **settings}), tmp_path / "run")
    floor = [row for row in evaluate_run(tmp_path / "run", probes=("linear",)) if row.model == "untrained"]
    assert floor == evaluate_run(tmp_path / "run", probes=("linear",), floors=False)


def test_evaluation_repeats_and_does_not_depend_on_what_else_is_probed(trained):
    whole = {(r.model, r.probe, r.task): r.scores for r in evaluate_run(trained)}
    assert {(r.model, r.probe, r.task): r.scores for r in evaluate_run(trained)} == whole
    for row in evaluate_run(trained, tasks=["lp"], floors=False, probes=("network", "linear")):
        assert whole[row.model, row.probe, row.task] == row.scores


def test_solvers_agree(trained):
    ours, theirs = (evaluate_run(trained, probes=("linear",), solver=s) for s in ("newton", "sklearn"))
    for a, b in zip(ours, theirs, strict=True):
        assert a.main == pytest.approx(b.main, abs=0.01)


def test_validation_is_touched_only_where_asked(trained, monkeypatch):
    spoilt = []

    def spoil(*args, **how):
        sets = probe_examples(*args, **how)
        for parts in sets.values():
            y = parts["validation"].y
            parts["validation"] = replace(parts["validation"], y=y.flip(0))
            spoilt.append(1)
        return sets

    plain = evaluate_run(trained, probes=("linear",))
    chosen = [evaluate_run(trained, probes=("linear",), choose_c=rule) for rule in CHOOSE_C]
    monkeypatch.setattr("same.probes.evaluate.probe_examples", spoil)
    assert evaluate_run(trained, probes=("linear",)) == plain
    assert spoilt
    for rule, before in zip(CHOOSE_C, chosen, strict=True):
        assert evaluate_run(trained, probes=("linear",), choose_c=rule) != before


def test_c_is_chosen_by_the_loss_of_classes_and_the_score_of_links(trained):
    """A literal transcription, by scikit-learn: fit each C on training graphs, keep the best on validation graphs."""
    probing = Probing.of(CONFIG, choose_c="loss")
    encode = open_run(trained).encoder
    found = {row.task: row for row in probing.rows("esame", encode, ("linear",))}
    picked = {}
    for task in probing.tasks:
        x, y = {}, {}
        for part, examples in probing.sets[task.name].items():
            with torch.no_grad():
                nodes = encode(examples.inputs)
            x[part], y[part] = task.features(nodes, examples).numpy(), examples.y.numpy()
        scaler = StandardScaler().fit(x["train"].astype(np.float64))
        rows = {part: scaler.transform(values.astype(np.float64)) for part, values in x.items()}
        models = [LinearSVC(C=c, tol=1e-6, max_iter=50_000).fit(rows["train"], y["train"]) for c in GRID]
        decisions = [model.decision_function(rows["validation"]) for model in models]
        if task.kind == "links":
            best = max(zip(models, decisions, strict=True), key=lambda pair: roc_auc_score(y["validation"], pair[1]))[0]
        else:
            best = min(
                zip(models, decisions, strict=True),
                key=lambda pair: log_loss(y["validation"], softmax(pair[1], axis=1), labels=pair[0].classes_),
            )[0]
        told = best.decision_function(rows["test"]) if task.kind == "links" else best.predict(rows["test"])
        expected = roc_auc_score(y["test"], told) if task.kind == "links" else np.mean(told == y["test"])
        assert found[task.name].main == pytest.approx(expected, abs=2e-3)
        picked[task.name] = best.C
    # Not the C that is taken where nothing is chosen: the test would see if nothing were.
    assert picked["gc"] != 1
    with pytest.raises(InputError, match="choose_c: 'luck' is not one of score, loss"):
        Probing.of(CONFIG, choose_c="luck")


def test_an_untrained_run_is_its_own_floor(tmp_path):
    run(CONFIG.model_copy(update={"method": "untrained"}), tmp_path / "run")
    rows = evaluate_run(tmp_path / "run", probes=("linear",))
    named = [(row.model, row.probe, row.task) for row in rows]
    assert len(set(named)) == len(named)
    alone = evaluate_run(tmp_path / "run", probes=("linear",), floors=False)
    assert [row for row in rows if row.model == "untrained"] == alone


def test_a_models_own_score_does_not_depend_on_what_else_is_probed(tmp_path):
    run(CONFIG.model_copy(update={"method": "traditional", "tasks": ("gc", "nc", "lp")}), tmp_path / "run")
    whole = {r.task: r.scores for r in evaluate_run(tmp_path / "run", probes=["own"], floors=False)}
    (alone,) = evaluate_run(tmp_path / "run", probes=["own"], floors=False, tasks=["lp"])
    assert alone.scores == whole["lp"]


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
        graph_y=store.graph_y,
        node_y=store.node_y[back],
        graph_classes=store.graph_classes,
        node_classes=store.node_classes,
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
    probing = Probing.of(CONFIG)
    base = planted()
    other, where = permuted(base, 7)
    other = other.with_inputs(probing.setting.store.inputs)
    sets = {
        task: {part: moved_examples(examples, other, where) for part, examples in parts.items()}
        for task, parts in probing.sets.items()
    }
    shuffled = replace(probing, sets=sets, setting=replace(probing.setting, store=other))
    encoder = open_run(trained).encoder
    found = [[*p.floors(), *p.rows("esame", encoder, ("linear",))] for p in (probing, shuffled)]
    for a, b in zip(*found, strict=True):
        assert a.main == pytest.approx(b.main, abs=2e-3), (a, b)


def test_the_order_of_graphs_changes_no_score(trained):
    """Graphs and nodes of each part in another order; pairs are drawn anew there, so links are left out."""
    probing = Probing.of(CONFIG, tasks=["gc", "nc"])
    rng, parts = np.random.default_rng(0), probing.setting.split
    other = Split(*(rng.permutation(ids) for ids in (parts.train, parts.validation, parts.test)))
    sets = probe_examples(probing.setting.store, other, probing.tasks, seed=0, k=0)
    encoder = open_run(trained).encoder
    found = [[*p.floors(), *p.rows("esame", encoder, ("linear",))] for p in (probing, replace(probing, sets=sets))]
    for a, b in zip(*found, strict=True):
        assert a.main == pytest.approx(b.main, abs=2e-3), (a, b)


def test_the_released_protocol_measures_the_order_of_nodes_and_ours_does_not():
    """The test that would have caught the published flaw."""
    store = planted()
    parts = split(store, 0)
    found = {}
    for protocol in ("paper", "released"):
        config = Config(pair="concat")
        probing = Probing.of(config, tasks=["lp"], protocol=protocol)
        assert (probing.setting.split.test == parts.test).all()
        (row,) = probing.rows("index", node_index, ("linear",))
        found[protocol] = row.scores
    assert found["released"]["accuracy"] > 0.99
    assert found["released"]["roc_auc"] > 0.99
    assert abs(found["paper"]["roc_auc"] - 0.5) < 0.05


def test_a_permutation_changes_scores_under_released():
    probing = Probing.of(Config(pair="concat", width=32), tasks=["lp"], protocol="released")
    base = planted()
    other, _ = permuted(base, 3)
    sets = probe_examples(other, probing.setting.split, probing.tasks, seed=0, k=0, protocol="released")
    # The index that a node had in the file before.
    shuffled = replace(probing, sets=sets)
    (before,), (after,) = (p.rows("index", node_index, ("linear",)) for p in (probing, shuffled))
    first, second = (p.rows("raw", lambda batch: batch.x, ("linear",))[0].main for p in (probing, shuffled))
    assert before.main > 0.99
    assert after.main > 0.99
    assert abs(first - second) > 0.01


def test_released_links_are_the_last_edges_and_the_first_gaps():
    store = GraphStore.build(
        "path",
        x=np.zeros((6, 1)),
        sizes=[6],
        edge_index=[[0, 1, 2, 3, 4, 0, 0, 0, 1, 1], [1, 2, 3, 4, 5, 2, 3, 4, 4, 5]],
    )
    found = released_links(store.cut([0]))
    pairs = {y: [tuple(p) for p in found.index[:, found.y == y].T.tolist()] for y in (1, 0)}
    assert pairs == {1: [(3, 4), (4, 5)], 0: [(0, 5), (1, 3)]}
    assert found.inputs.edges.shape[1] == 10


def test_held_out_edges_are_in_no_adjacency_used_to_embed():
    store = planted()
    sets = probe_examples(store, split(store, 2), make_tasks(["gc", "nc", "lp"], store), seed=0, k=2)
    for part, examples in sets["lp"].items():
        held_out = examples.index[:, examples.y == 1].T.tolist()
        adjacency = examples.inputs.adjacency.to_dense()
        assert held_out
        assert all(adjacency[u, v] == 0 == adjacency[v, u] for u, v in held_out), part
        assert (examples.y == 1).sum() == (examples.y == 0).sum()


def test_the_network_probe_learns_and_stops():
    store = planted()
    task = make_tasks(["gc"], store)[0]
    parts = split(store, 0)

    # Embeddings that give the class away.
    def sets(ids):
        examples = task.examples(store.cut(ids), np.random.default_rng(0))
        h = torch.nn.functional.one_hot(examples.y, 3).float()[examples.inputs.batch]
        return replace(examples, embeddings=h + 0.1 * torch.randn(h.shape, generator=torch.Generator().manual_seed(0)))

    train, validation, test = (sets(ids) for ids in (parts.train, parts.validation, parts.test))
    told = NetworkProbe().fit_predict(task, train, validation, test, np.random.default_rng(0))
    assert (told == test.y.numpy()).mean() > 0.95
    again = NetworkProbe().fit_predict(task, train, validation, test, np.random.default_rng(0))
    assert (told == again).all()
    # Whatever scale an encoder gives its columns.
    small = [replace(s, embeddings=0.001 * s.embeddings + 2) for s in (train, validation, test)]
    assert (NetworkProbe().fit_predict(task, *small, np.random.default_rng(0)) == told).mean() > 0.98


@pytest.mark.parametrize("name", ["gc", "nc", "lp"])
def test_taking_graphs_of_a_batch_is_cutting_them(name):
    store = random_store(0, [5, 9, 1, 7], density=0.5)
    task = make_tasks([name], store)[0]
    examples = task.examples(store.cut([0, 1, 2, 3]), np.random.default_rng(0))
    examples = replace(examples, embeddings=examples.inputs.x * 2)
    some = take(examples, np.array([3, 1]))
    head = task.head(3)
    whole, part = (head(e.embeddings, e) for e in (examples, some))
    if name == "gc":
        torch.testing.assert_close(part, whole[[3, 1]])
    elif name == "nc":
        torch.testing.assert_close(part, torch.cat([whole[15:22], whole[5:14]]))
    else:
        graph = examples.inputs.batch[examples.index[0]]
        torch.testing.assert_close(part, whole[(graph == 3) | (graph == 1)])
        assert len(some.y) == len(part)


def test_embed(trained, tmp_path):
    nodes = embed_set(trained, "planted", tmp_path / "e.npz")
    with np.load(tmp_path / "e.npz", allow_pickle=False) as file:
        h, graph, ptr, means = (file[key] for key in ("embeddings", "graph", "node_ptr", "graph_means"))
    store = load("planted")
    assert h.shape == (nodes, 16) == (store.num_nodes, 16)
    assert (np.bincount(graph) == np.diff(ptr)).all()
    np.testing.assert_allclose(means[3], h[graph == 3].mean(0), rtol=1e-4, atol=1e-6)


def test_embed_refuses_other_attributes(trained, tmp_path):
    random_store(0, [5] * 12).save(tmp_path / "other")
    with pytest.raises(InputError, match="its nodes have 3 attributes, the inputs were fitted on 24"):
        embed_set(trained, str(tmp_path / "other"), tmp_path / "e.npz")
    with pytest.raises(InputError, match="format: 'csv' is not one of npz, npy, parquet"):
        embed_set(trained, "planted", tmp_path / "e.csv", kind="csv")
    assert not list(tmp_path.glob("e.*"))


def test_the_commands(trained, tmp_path):
    code, out, err = same("evaluate", trained, "--json", "--probes", "linear", "--pair", "concat")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["protocol"], found["pair"], found["split"]) == ("paper", "concat", 0)
    assert {row["model"] for row in found["rows"]} == {"majority", "raw", "untrained", "esame"}
    code, out, _ = same("evaluate", trained)
    assert code == 0
    assert "protocol paper, pair features symmetric" in out
    assert "lp AUC" in out
    code, out, _ = same("embed", trained, "planted", "--out", tmp_path / "e.npz", "--json")
    assert (code, json.loads(out)) == (0, {"file": str(tmp_path / "e.npz"), "format": "npz", "nodes": 7102})
    for arguments, message in [
        (("evaluate", tmp_path), "holds no run"),
        (("evaluate", trained, "--protocol", "x"), "protocol: 'x' is not one of paper, released"),
        (("evaluate", trained, "--probes", "linear,x"), "probes: x: not among"),
        (("evaluate", trained, "--solver", "x"), "solver: 'x' is not one of newton, sklearn"),
        (("evaluate", trained, "-t", "xx"), "tasks: 'xx' is not one of"),
    ]:
        code, _, err = same(*arguments)
        assert code == 2
        assert message in err


@pytest.mark.parametrize("damage", ["model.safetensors", "config.json", "result.json"])
def test_a_damaged_run_is_said(trained, tmp_path, damage):
    import shutil

    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / damage).write_bytes(b"\x00nonsense")
    if damage == "result.json":
        (tmp_path / "run" / damage).unlink()
    with pytest.raises(InputError, match=damage if damage != "result.json" else "not finished"):
        evaluate_run(tmp_path / "run")
