import copy
import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import random_store
from same import GraphEncoder, InputError
from same.config import Config
from same.experiment import run
from same.graphs import GraphStore, Labels, planted
from same.graphs.splits import hold_out
from same.linear import LinearHead
from same.nn import pair_features
from same.nn.embedding import in_pieces
from same.saved import AddedTask

SMALL = {"width": 16, "max_epochs": 2, "method": "untrained"}
GRAPHS = planted(60)
NEW = planted(30, seed=1)
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def fitted() -> GraphEncoder:
    return GraphEncoder(**SMALL).fit(GRAPHS)


@pytest.fixture
def model(fitted) -> GraphEncoder:
    """A model to add tasks to: adding replaces `trained_` and changes nothing in it."""
    return copy.copy(fitted)


def some_pairs(graphs: GraphStore, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs of nodes of the same graph, and whether their classes are equal."""
    rng = np.random.default_rng(0)
    graph = rng.integers(0, len(graphs), count)
    pairs = np.stack([graphs.node_ptr[graph] + rng.integers(0, np.diff(graphs.node_ptr)[graph]) for _ in range(2)])
    return pairs, (graphs.node_y[pairs[0]] == graphs.node_y[pairs[1]]).astype(int)


def agree(head: LinearHead, other: LinearHead) -> None:
    np.testing.assert_allclose(head.weight, other.weight, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(head.bias, other.bias, rtol=1e-3, atol=1e-4)
    assert (head.C, head.validated) == (other.C, other.validated)
    assert head.slope == pytest.approx(other.slope, rel=1e-3)


@pytest.mark.parametrize(("task", "column"), [("gc", "y"), ("nc", "node_y"), ("lp", None)])
def test_a_trained_task_added_again_gets_the_same_head(model, task, column):
    added = model.add_task("again", GRAPHS, GRAPHS.labels.get(column))
    heads = model.trained_.linear
    agree(heads["again"], heads[task])
    assert heads["again"].pool == heads[task].pool
    if task != "lp":
        assert (model.predict(NEW, task="again") == model.predict(NEW, task=task)).all()
    assert added.kind == ("links" if task == "lp" else "classes")
    y = None if column is None else NEW.labels[column].values
    assert model.score(NEW, y, task="again") == pytest.approx(model.score(NEW, task=task), abs=1e-6)


def test_the_head_is_a_linear_head_on_the_embeddings(model):
    h, graph = model.node_embeddings(GRAPHS)
    held = np.isin(graph, hold_out(GRAPHS, 0.2, 0).validation)
    y = np.sin(h[:, 0]) + h[:, 1] ** 2
    added = model.add_task("curve", GRAPHS, y, validation=0.2)
    expected = LinearHead.fit("numbers", h[~held], y[~held], (h[held], y[held]))
    agree(model.trained_.linear["curve"], expected)
    np.testing.assert_allclose(model.predict(GRAPHS, task="curve"), expected.decision(h), rtol=1e-4, atol=1e-4)
    assert (added.train, added.validation) == ((~held).sum(), held.sum())
    r2 = 1 - np.square(expected.decision(h[held]) - y[held]).sum() / np.square(y[held] - y[held].mean()).sum()
    assert added.score == pytest.approx(r2, abs=1e-3)

    mean = model.graph_embeddings(GRAPHS)
    model.add_task("sum", GRAPHS, mean.sum(axis=1), validation=None)
    agree(model.trained_.linear["sum"], LinearHead.fit("numbers", mean, mean.sum(axis=1)))
    assert model.score(NEW, model.graph_embeddings(NEW).sum(axis=1), task="sum") > 0.9


def test_classes_keep_their_values(model):
    names = np.array(["red", "green", "blue"])
    model.add_task("colour", GRAPHS, names[GRAPHS.graph_y])
    predicted = model.predict(NEW, task="colour")
    assert set(predicted) <= set(names)
    chances = model.predict_proba(NEW, task="colour")
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    assert (np.array(["blue", "green", "red"])[chances.argmax(axis=1)] == predicted).all()
    assert model.decision_function(NEW, task="colour").shape == (len(NEW), 3)
    y = names[NEW.graph_y]
    assert model.score(NEW, y, task="colour") == pytest.approx(np.mean(predicted == y))
    few = NEW[NEW.graph_y != 1]  # A set that lacks a class.
    assert model.score(few, y[NEW.graph_y != 1], task="colour") == pytest.approx(
        np.mean(model.predict(few, task="colour") == y[NEW.graph_y != 1])
    )
    model.add_task("even", GRAPHS, torch.from_numpy(GRAPHS.node_y % 2 == 0))
    assert model.predict(NEW, task="even").dtype == bool


def test_units_do_not_matter(model):
    y, new = (np.sin(5 * model.graph_embeddings(graphs)).sum(axis=1) for graphs in (GRAPHS, NEW))
    scores = []
    for scale, shift in ((1, 0), (1000, 5000)):
        added = model.add_task("waves", GRAPHS, y * scale + shift)
        scores.append((model.score(NEW, new * scale + shift, task="waves"), added.score))
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)
    assert scores[0][0] > 0.3
    with pytest.raises(InputError, match="waves predicts numbers"):
        model.predict_proba(NEW, task="waves")
    model.add_task("both", GRAPHS, np.stack([y, -y], axis=1))
    assert model.predict(NEW, task="both").shape == (len(NEW), 2)


def test_links_between_given_pairs(model):
    (pairs, y), (other, other_y) = some_pairs(GRAPHS, 600), some_pairs(NEW, 300)
    added = model.add_task("alike", GRAPHS, y.astype(bool), pairs=pairs)
    held = np.isin(np.searchsorted(GRAPHS.node_ptr, pairs[0], side="right") - 1, hold_out(GRAPHS, 0.1, 0).validation)
    assert (added.train, added.validation) == ((~held).sum(), held.sum())
    x = pair_features(torch.from_numpy(model.transform(GRAPHS)), torch.from_numpy(pairs), "symmetric").numpy()
    agree(model.trained_.linear["alike"], LinearHead.fit("links", x[~held], y[~held], (x[held], y[held])))
    score = model.score(NEW, other_y, task="alike", pairs=other)
    chances = model.predict_proba(NEW, task="alike", pairs=other)[:, 1]
    wins = chances[other_y == 1][:, None] - chances[other_y == 0]
    assert score == pytest.approx(np.mean((wins > 0) + 0.5 * (wins == 0)))
    with pytest.raises(InputError, match=r"alike needs given pairs and their labels \(pass pairs and y\)"):
        model.score(NEW, task="alike")


def test_labels_that_the_graphs_have_are_the_default(model):
    shown = GRAPHS.with_labels("size", np.diff(GRAPHS.node_ptr) > 20)
    assert repr(model.add_task("size", shown)).startswith("AddedTask(size: 54 graphs, 2 classes;")
    assert model.score(NEW.with_labels("size", np.diff(NEW.node_ptr) > 20), task="size") > 0.5


def test_it_says_what_it_was_fitted_to_and_what_a_constant_scores(model):
    y = np.where(np.arange(60) % 4 == 0, "rare", "common")
    added = model.add_task("quarter", GRAPHS, y)
    held = hold_out(GRAPHS.with_labels("y", y), 0.1, 0).validation
    assert (added.train, added.validation, added.classes) == (54, 6, ("common", "rare"))
    assert added.score == pytest.approx(np.mean(model.predict(GRAPHS[held], task="quarter") == y[held]))
    assert added.baseline == pytest.approx(np.mean(y[held] == "common"))
    assert repr(added) == (
        f"AddedTask(quarter: 54 graphs, 2 classes; accuracy {added.score:.2f} on 6 held-out graphs, "
        f"constant baseline {added.baseline:.2f})"
    )
    assert model.add_task("edges", GRAPHS).baseline == 0.5
    assert model.add_task("size", GRAPHS, np.diff(GRAPHS.node_ptr) / 1).baseline <= 0


@pytest.mark.parametrize(("graphs", "validation"), [(GRAPHS[:9], 0.1), (GRAPHS, 0), (GRAPHS, None)])
def test_without_held_out_graphs_it_says_so(model, caplog, graphs, validation):
    added = model.add_task("few", graphs, np.arange(len(graphs)) % 3, validation=validation)
    head = model.trained_.linear["few"]
    assert (head.C, head.slope, head.validated) == (1.0, 1.0, False)
    expected = f"AddedTask(few: {len(graphs)} graphs, 3 classes; nothing held out, so C = 1, not calibrated)"
    assert (repr(added), added.score, added.baseline) == (expected, None, None)
    assert "few: nothing is held out for validation: C = 1" in caplog.text


def test_a_class_is_never_held_out_as_a_whole(model):
    for number in range(8):
        y = np.zeros(60, int)
        y[number * 7 : number * 7 + 1] = 1
        model.add_task("one", GRAPHS, y, validation=0.4)
        assert model.trained_.linear["one"].classes.tolist() == [0, 1]
        added = model.add_task("node", GRAPHS, np.repeat(y, np.diff(GRAPHS.node_ptr)), validation=0.4)
        assert model.trained_.linear["node"].classes.tolist() == [0, 1]
        assert added.train + added.validation == GRAPHS.num_nodes
    model.add_task("x", GRAPHS, np.arange(60) / 60, validation=0.4)
    assert len(model.predict(NEW, task="x")) == len(NEW)


def test_the_rest_of_the_model_stays_as_it_is(model):
    before, embeddings, score = model.trained_, model.transform(NEW), model.score(NEW)
    predicted = model.predict_proba(NEW, task="gc")
    model.add_task("new", GRAPHS, GRAPHS.node_y)
    assert [task.name for task in before.tasks] == ["gc", "nc", "lp"]
    assert "new" not in before.linear | before.like.labels | before.training["linear"]
    assert np.array_equal(model.transform(NEW), embeddings)
    assert np.array_equal(model.predict_proba(NEW, task="gc"), predicted)
    assert model.score(NEW) == score  # The mean over the trained tasks.
    with pytest.raises(InputError, match="new: method=untrained leaves no head of its own"):
        model.predict(NEW, task="new", head="own")


def test_each_graph_is_encoded_once_and_large_sets_in_pieces(model, monkeypatch):
    rows = []
    hook = model.model_.encoder.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    whole = model.add_task("role", GRAPHS, GRAPHS.node_y)
    once = list(rows)
    rows.clear()
    monkeypatch.setattr("same.saved.added.in_pieces", lambda encoder: in_pieces(encoder, 200))
    weight = model.trained_.linear["role"].weight
    assert model.add_task("role", GRAPHS, GRAPHS.node_y) == whole
    hook.remove()
    assert once == [GRAPHS.num_nodes]
    assert sum(rows) == GRAPHS.num_nodes
    assert max(rows) <= 200
    np.testing.assert_allclose(model.trained_.linear["role"].weight, weight, rtol=1e-3, atol=1e-4)


def test_of_a_very_large_set_a_sample_is_used(model, monkeypatch, caplog):
    monkeypatch.setattr("same.saved.added.HEAD_NODES", 300)
    with caplog.at_level(logging.INFO, "same"):
        added = model.add_task("role", GRAPHS, GRAPHS.node_y)
    assert 200 < added.train <= 300
    assert "role: a random sample of" in caplog.text


def add_all(model: GraphEncoder) -> None:
    pairs, y = some_pairs(GRAPHS, 200)
    model.add_task("colour", GRAPHS, np.array(["red", "green", "blue"])[GRAPHS.graph_y])
    model.add_task("role", GRAPHS, GRAPHS.node_y)
    model.add_task("size", GRAPHS, np.log(np.diff(GRAPHS.node_ptr)))
    model.add_task("two", GRAPHS, np.random.default_rng(0).normal(size=(GRAPHS.num_nodes, 2)))
    model.add_task("edges", GRAPHS)
    model.add_task("alike", GRAPHS, y, pairs=pairs)


@pytest.mark.parametrize("origin", ["fitted", "run", "0.1"])
def test_added_tasks_are_saved_and_loaded(tmp_path, origin):
    if origin == "run":
        run(Config(width=8, max_epochs=1, pair="concat"), tmp_path / "run")
        model = GraphEncoder.load(tmp_path / "run")
    else:
        folder = FIXTURES / "run-0.1"
        model = GraphEncoder(**SMALL).fit(GRAPHS) if origin == "fitted" else GraphEncoder.load(folder)
    trained = [task.name for task in model.trained_.tasks]
    add_all(model)
    model.save(tmp_path / "model")
    loaded = GraphEncoder.load(tmp_path / "model")
    assert [task.name for task in loaded.trained_.tasks] == [
        *trained,
        "colour",
        "role",
        "size",
        "two",
        "edges",
        "alike",
    ]
    pairs, y = some_pairs(NEW, 100)
    for task in loaded.trained_.tasks:
        options = {"task": task.name, "pairs": pairs if task.kind == "links" else None}
        if origin != "0.1" or task.name not in trained:
            assert np.array_equal(loaded.predict(NEW, **options), model.predict(NEW, **options)), task.name
    assert loaded.score(NEW, y, task="alike", pairs=pairs) == model.score(NEW, y, task="alike", pairs=pairs)
    assert loaded.score(NEW, task="edges") == model.score(NEW, task="edges")
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_a_task_that_was_added_is_replaced(tmp_path, model):
    for y in (GRAPHS.graph_y, GRAPHS.node_y / 2, None):
        model.add_task("new", GRAPHS, y)
    assert [task.name for task in model.trained_.tasks] == ["gc", "nc", "lp", "new"]
    assert "new" not in model.trained_.like.labels
    assert len(model.predict(NEW, task="new", pairs=[[0, 1], [2, 3]])) == 2
    model.save(tmp_path / "model")
    assert GraphEncoder.load(tmp_path / "model").trained_.added == {"new": "lp"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "gc"}, "add_task: the name 'gc' is taken by the model; choose another one"),
        ({"name": "node_y"}, "the name 'node_y' is taken"),
        ({"name": "a.b"}, "a name is letters, digits and underscores, as in 'toxic', not 'a.b'"),
        ({"name": None}, "not None"),
        ({"y": [1, 2]}, f"y: 2 labels for 60 graphs with {GRAPHS.num_nodes} nodes"),
        ({"y": 3}, "y: 0 labels for 60 graphs"),
        ({"y": [1] * 60}, "add_task: new needs graphs of at least two classes"),
        ({"y": [1.5] * 60}, "add_task: new: all 54 examples to fit to have the same label"),
        ({"y": [np.nan] * 60}, "y: the target of graph 0 is not finite"),
        ({"y": Labels("graph", np.arange(60) % 2, (0, 1), np.arange(60) > 3)}, "labels without unknown entries"),
        ({"y": np.arange(60) % 2, "validation": 1.5}, "validation: a share of the graphs is between 0 and 1, not 1.5"),
        ({"pairs": [[0], [1]]}, "y: pairs need labels, 1 or 0 for each"),
        ({"pairs": [[0], [1]], "y": [0, 1]}, "y: 2 labels for 1 pairs"),
        ({"pairs": [[0, 0], [1, 2]], "y": [0, 2]}, "y: the labels of pairs are 1 or 0"),
        ({"pairs": [[0, 0], [1, 2]], "y": ["0", "1"]}, "y: the labels of pairs are 1 or 0"),
        ({"pairs": [[0], [-1]], "y": [1]}, "pairs: there is no node -1"),
        ({"pairs": [[0, 0], [1, 2]], "y": [1, 1], "validation": 0}, "all 2 examples to fit to have the same label"),
        ({"graphs": random_store(0, [1] * 20, columns=24)}, "add_task: new needs edges"),
        ({"graphs": random_store(0, [4, 5])}, "its nodes have 3 attributes, the inputs were fitted on 24"),
    ],
    ids=str,
)
def test_bad_tasks_are_refused(model, arguments, message):
    given = {"name": "new", "graphs": GRAPHS} | arguments
    before = model.trained_
    with pytest.raises(InputError, match=message):
        model.add_task(given.pop("name"), given.pop("graphs"), **given)
    assert model.trained_ is before


def test_other_mistakes_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        GraphEncoder().add_task("new", GRAPHS)
    model.add_task("role", GRAPHS, GRAPHS.node_y)
    with pytest.raises(InputError, match=f"y: 30 labels for {NEW.num_nodes} nodes"):
        model.score(NEW, NEW.graph_y, task="role")
    with pytest.raises(InputError, match=r"pairs, .* are needed for links and for nothing else"):
        model.score(NEW, [1], task="role", pairs=[[0], [1]])
    with pytest.raises(InputError, match="y: pairs need labels"):
        model.score(NEW, task="lp", pairs=[[0], [1]])
    model.save(tmp_path / "model")
    text = (tmp_path / "model" / "config.json").read_text(encoding="utf-8")
    assert '"role": "nc"' in text


def test_the_result_is_a_value():
    added = AddedTask("a", "links", "pair", (), 10, 2, 0.75, 0.5)
    assert repr(added) == "AddedTask(a: 10 pairs, links; ROC AUC 0.75 on 2 held-out pairs, constant baseline 0.50)"
    assert added.metric == "ROC AUC"
    with pytest.raises(AttributeError):
        added.score = 1.0
