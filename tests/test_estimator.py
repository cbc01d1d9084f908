import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import same.nn.embedding
import same.saved.trained
from helpers import random_store
from same import GraphEncoder, InputError
from same.config import Config
from same.experiment import run
from same.graphs import GraphStore, Labels, hold_out, planted, split, to_pyg
from same.linear import LinearHead
from same.methods import Classical
from same.probes import Evaluation, evaluate_run
from same.tasks import NodeClassification, NodeRegression
from same.weighting import Uncertainty

FILES = {"config.json", "model.safetensors", "history.jsonl", "result.json"}
SMALL = {"width": 8, "max_epochs": 2, "validate_every": 1, "batch_size": 20}
GRAPHS = planted(60)
NEW = planted(12, seed=1)


@pytest.fixture(scope="module")
def fitted() -> GraphEncoder:
    return GraphEncoder(**SMALL).fit(GRAPHS)


def test_parameters_are_those_of_a_configuration_with_its_defaults():
    others = {"device", "output", "validation", "report"}
    parameters = inspect.signature(GraphEncoder).parameters
    assert set(parameters) - others == set(Config.model_fields) - {"dataset", "split"}
    for name, field in Config.model_fields.items():
        if name in parameters and name != "degree":
            assert (parameters[name].default or None) == (field.default or None), name
    assert set(GraphEncoder().get_params()) == set(parameters)


@pytest.mark.parametrize(
    ("encoder", "degree", "columns"),
    [
        ("gcn", None, 24 + 17),
        ("gcn", 4, 24 + 5),
        (lambda columns: GCN(columns, 8, 1), None, 24 + 17),
        (GCN(24, 8, 1), None, 24),
        (GCN(24 + 5, 8, 1), 4, 24 + 5),
    ],
    ids=["named", "degree", "function", "module", "module and degree"],
)
def test_a_custom_module_gets_the_attributes_alone_by_default(encoder, degree, columns):
    model = GraphEncoder(encoder=encoder, degree=degree, **SMALL | {"method": "untrained"}).fit(GRAPHS)
    assert model.trained_.inputs.num_features == columns


@pytest.mark.parametrize("method", ["esame", "isame", "traditional", "classical"])
def test_fit_gives_the_bits_of_a_run(tmp_path, method):
    """On the training and validation graphs of a split, weights and own-head scores are those of `same train`."""
    changes = SMALL | {"method": method, "seed": 3, "degree": 4, "batch_size": 70, "max_epochs": 6}
    config = Config(**changes)
    run(config, tmp_path / "run")
    store = planted()
    parts = split(store, 0, config.seed)
    used = np.sort(np.concatenate([parts.train, parts.validation]))
    validation = np.flatnonzero(np.isin(used, parts.validation))
    model = GraphEncoder(validation=validation, **changes).fit(store[used])
    assert model.history_[-1]["objective"] < model.history_[0]["objective"]
    weights = load_file(tmp_path / "run" / "model.safetensors")
    for name, value in model.model_.state_dict().items():
        assert torch.equal(value, weights[f"model.{name}"]), name
    loaded = GraphEncoder.load(tmp_path / "run")
    for task in ("gc", "nc", "lp"):
        assert loaded.score(store[parts.test], task=task) == model.score(store[parts.test], task=task)


def test_the_score_is_that_of_the_predictions(fitted):
    for task, column in (("gc", "y"), ("nc", "node_y")):
        labels = NEW.labels[column]
        predicted = fitted.predict(NEW, task=task)
        assert set(predicted) <= set(labels.classes)
        assert fitted.score(NEW, task=task) == pytest.approx(np.mean(predicted == labels.values))
        chances = fitted.predict_proba(NEW, task=task)
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
        assert (np.array(labels.classes)[chances.argmax(axis=1)] == predicted).all()


def test_linear_heads_score_what_evaluate_shows(tmp_path):
    """One function fits the heads that predict and the probes of `same evaluate`."""
    config = Config(tasks=("gc", "nc", "lp"), method="esame", **SMALL)
    run(config, tmp_path / "run")
    rows = evaluate_run(tmp_path / "run", probes=("linear",), floors=False)
    shown = {}
    for row in rows:
        shown.setdefault(row.task, row.score)
    store = same.load("planted")
    test = store[split(store, 0).test]
    model = GraphEncoder.load(tmp_path / "run")
    assert {task: model.score(test, task=task) for task in ("gc", "nc", "lp")} == pytest.approx(shown, abs=1e-6)
    # The heads of the run are used; fitting them again gives the same scores.
    assert Evaluation(config).probe(config.method, model.trained_.encoder, ("linear",)) == rows


def test_linear_heads_are_fitted_to_the_training_graphs_and_calibrated_on_the_others(fitted):
    parts = hold_out(GRAPHS, 0.1)
    x, y = fitted.transform(GRAPHS, output="list"), np.split(GRAPHS.node_y, GRAPHS.node_ptr[1:-1])
    x_train, y_train, x_val, y_val = (
        np.concatenate([each[i] for i in ids]) for ids in (parts.train, parts.validation) for each in (x, y)
    )
    head = LinearHead.fit("classes", x_train, y_train, (x_val, y_val))
    kept = fitted.trained_.linear["nc"]
    assert (kept.C, kept.slope) == (head.C, pytest.approx(head.slope, rel=1e-4))
    expected = head.proba(head.decision(fitted.transform(NEW)))
    np.testing.assert_allclose(fitted.predict_proba(NEW, task="nc"), expected, atol=1e-5)
    classes = np.array(GRAPHS.node_classes, object)
    assert np.array_equal(fitted.predict(NEW, task="nc"), classes[expected.argmax(axis=1)])


def test_decision_functions_agree_with_probabilities(fitted):
    pairs = np.array([[0, 1, 2], [3, 4, 5]])
    for head in ("linear", "own"):
        z, p = (call(NEW, task="gc", head=head) for call in (fitted.decision_function, fitted.predict_proba))
        assert np.array_equal(z.argmax(axis=1), p.argmax(axis=1))
        np.testing.assert_allclose(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), p, rtol=1e-5)
        links, both = (
            call(NEW, task="lp", pairs=pairs, head=head) for call in (fitted.decision_function, fitted.predict_proba)
        )
        np.testing.assert_allclose(1 / (1 + np.exp(-links)), both[:, 1], rtol=1e-5)


def test_the_score_of_numbers_does_not_depend_on_their_units():
    scores = []
    for units, shift in ((1.0, 0.0), (1000.0, 5000.0)):
        sizes = np.diff(GRAPHS.node_ptr) + 0.5
        model = GraphEncoder(method="untrained", tasks="graph_regression", **SMALL).fit(GRAPHS, units * sizes + shift)
        scores.append(model.score(NEW, units * (np.diff(NEW.node_ptr) + 0.5) + shift))
    assert scores[1] == pytest.approx(scores[0], rel=1e-6)


def test_without_validation_graphs_the_last_model_is_kept_and_heads_are_not_calibrated(caplog):
    model = GraphEncoder(validation=None, **SMALL | {"max_epochs": 3}).fit(GRAPHS)
    assert model.trained_.training["best"]["epoch"] == 3
    assert all((head.C, head.validated) == (1.0, False) for head in model.trained_.linear.values())
    assert "no validation graphs: linear heads have C = 1 and are not calibrated" in caplog.text


def test_predictions_of_pairs_do_not_depend_on_order_or_blocks(fitted, monkeypatch):
    rng = np.random.default_rng(0)
    graph = rng.integers(0, len(NEW), 50)
    u, v = (NEW.node_ptr[graph] + rng.integers(0, np.diff(NEW.node_ptr)[graph]) for _ in range(2))
    pairs = np.stack([u, v])
    chances = fitted.predict_proba(NEW, task="lp", pairs=pairs)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    assert (fitted.predict(NEW, task="lp", pairs=pairs) == (chances[:, 1] > 0.5)).all()
    # One by one, reversed, and with the graphs in blocks.
    np.testing.assert_allclose(fitted.predict_proba(NEW, task="lp", pairs=pairs[:, 7:8]), chances[7:8], atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(NEW, task="lp", pairs=pairs[::-1]), chances, atol=1e-6)
    whole = fitted.predict(NEW, task="gc"), fitted.transform(NEW)
    monkeypatch.setattr(same.saved.trained, "CHUNK", 5)
    monkeypatch.setattr(same.nn.embedding, "CHUNK", 5)
    np.testing.assert_allclose(fitted.predict_proba(NEW, task="lp", pairs=pairs), chances, atol=1e-6)
    assert (fitted.predict(NEW, task="gc") == whole[0]).all()
    np.testing.assert_allclose(fitted.transform(NEW), whole[1], atol=1e-6)


def test_all_outputs_have_the_same_embeddings(fitted):
    nodes, graph = fitted.node_embeddings(NEW)
    assert nodes.shape == (NEW.num_nodes, 8)
    assert np.bincount(graph).tolist() == np.diff(NEW.node_ptr).tolist()
    assert np.array_equal(fitted.transform(NEW), nodes)
    arrays = fitted.transform(NEW, output="list")
    assert np.array_equal(np.concatenate(arrays), nodes)
    means = fitted.graph_embeddings(NEW)
    np.testing.assert_allclose(means, np.stack([rows.mean(axis=0) for rows in arrays]), atol=1e-6)
    other = copy.copy(fitted).set_params(output="graphs")
    assert np.array_equal(other.transform(NEW), means)


def test_permuting_nodes_permutes_rows(fitted):
    rng = np.random.default_rng(0)
    graphs, order = [], []
    for data, start in zip(to_pyg(NEW), NEW.node_ptr, strict=False):
        new = torch.from_numpy(rng.permutation(data.num_nodes))
        graphs.append(Data(x=data.x[new], edge_index=torch.argsort(new)[data.edge_index]))
        order.append(start + new.numpy())
    np.testing.assert_allclose(fitted.transform(graphs), fitted.transform(NEW)[np.concatenate(order)], atol=1e-5)


def test_fitting_repeats_and_leaves_the_global_generator_alone(fitted):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    again = clone(fitted).fit(to_pyg(GRAPHS, codes=True))
    assert torch.equal(torch.rand(3), expected)
    assert np.array_equal(again.transform(NEW), fitted.transform(NEW))
    assert again.history_ == fitted.history_
    assert [record["epoch"] for record in again.history_] == [0, 1, 2]
    assert again.n_features_in_ == 24


def test_eight_threads_share_a_model():
    model = GraphEncoder(method="isame", **SMALL).fit(GRAPHS)
    nodes, chances, score = model.transform(NEW), model.predict_proba(NEW, task="gc"), model.score(NEW)
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            (
                pool.submit(model.transform, NEW),
                pool.submit(model.predict_proba, NEW, task="gc"),
                pool.submit(model.score, NEW),
            )
            for _ in range(16)
        ]
    for job in jobs:
        assert np.array_equal(job[0].result(), nodes)
        assert np.array_equal(job[1].result(), chances)
        assert job[2].result() == score


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "isame", "dropout": 0.2},
        {"method": "isame", "pool": "mean+std+size"},
        {"method": "traditional", "weighting": "uncertainty"},
        {"method": "classical", "tasks": "gc"},
        {"method": "finetuned", "tasks": ("gc", "nc")},
        {"method": "infomax"},
        {"node_labels": "input", "tasks": ("gc", "lp"), "scaling": "row"},
        {"method": "untrained", "output": "graphs"},
        {"encoder": "gin", "walk": 2, "weights": {"gc": 2.0}, "validation": [0, 1, 2, 3, 4, 5]},
    ],
    ids=lambda changes: ",".join(map(str, changes.values())) or "default",
)
def test_a_loaded_model_equals_the_saved_one(tmp_path, changes):
    model = GraphEncoder(**SMALL | changes).fit(GRAPHS)
    model.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == FILES
    loaded = GraphEncoder.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(NEW), model.transform(NEW))
    for task in model.trained_.heads:
        assert loaded.score(NEW, task=task) == model.score(NEW, task=task)
    theirs, ours = loaded.get_params(), model.get_params()
    assert theirs.pop("tasks") == (("gc",) if ours["tasks"] == "gc" else ours["tasks"])
    del ours["tasks"]
    assert theirs == ours | {"degree": model.trained_.config.degree}
    assert (loaded.history_, loaded.n_features_in_) == (model.history_, model.n_features_in_)
    loaded.save(tmp_path / "again")
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()
    with pytest.raises(InputError, match="exists already"):
        model.save(tmp_path / "model")


def test_labels_are_text_or_numbers(tmp_path):
    names = np.array(["red", "green", "blue"])[GRAPHS.graph_y]
    model = GraphEncoder(tasks="gc", **SMALL).fit(GRAPHS, names)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    predicted = model.predict(NEW, task="gc")
    assert set(predicted) <= set(names)
    y = np.array(["red", "green", "violet"])[NEW.graph_y]
    assert model.score(NEW, y) == pytest.approx(np.mean(predicted == y))
    model.save(tmp_path / "model")
    assert (GraphEncoder.load(tmp_path / "model").predict(NEW, task="gc") == predicted).all()

    targets = np.linspace(0, 1, len(GRAPHS))
    model = GraphEncoder(tasks="graph_regression", **SMALL).fit(GRAPHS, targets)
    assert model.predict(NEW, task="graph_regression").shape == (len(NEW),)
    assert model.score(NEW, np.linspace(0, 1, len(NEW))) <= 1
    model.save(tmp_path / "numbers")
    loaded = GraphEncoder.load(tmp_path / "numbers")
    assert np.array_equal(loaded.predict(NEW, task="graph_regression"), model.predict(NEW, task="graph_regression"))


def test_graphs_of_one_class_are_scored(fitted):
    alone = NEW[NEW.graph_y == 0]
    expected = np.mean(fitted.predict(alone, task="gc") == "alike")
    assert fitted.score(alone, task="gc") == pytest.approx(expected)


def test_pipeline_and_grid_search_over_a_list_of_data():
    graphs, y = to_pyg(GRAPHS), GRAPHS.graph_y
    pipeline = Pipeline([("same", GraphEncoder(output="graphs", **SMALL)), ("classify", LogisticRegression())])
    search = GridSearchCV(pipeline, {"same__tasks": ["gc", ("gc", "nc")], "classify__C": np.array([1.0, 10.0])}, cv=2)
    search.fit(graphs, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(to_pyg(NEW))) == len(NEW)
    # The pipeline equals the same steps by hand.
    pipeline.fit(graphs, y)
    alone = GraphEncoder(**SMALL).fit(graphs, y)
    by_hand = LogisticRegression().fit(alone.graph_embeddings(graphs), y)
    assert (pipeline.predict(to_pyg(NEW)) == by_hand.predict(alone.graph_embeddings(NEW))).all()


def test_grid_search_of_the_estimator_itself_over_a_store():
    search = GridSearchCV(
        GraphEncoder(**SMALL), {"width": np.array([4, 8]), "tasks": [("gc", "nc")]}, cv=2, error_score="raise"
    )
    search.fit(GRAPHS)
    assert search.best_estimator_.transform(NEW).shape[1] == search.best_params_["width"]
    assert len(cross_val_score(GraphEncoder(tasks="nc", **SMALL), GRAPHS, cv=2, error_score="raise")) == 2


def test_clone_set_params_and_pickle(fitted):
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copied.transform(NEW)
    assert copied.set_params(width=4).width == 4
    with pytest.raises(ValueError, match="widht"):
        copied.set_params(widht=4)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(NEW), fitted.transform(NEW))  # noqa: S301
    assert "max_epochs=2" in repr(fitted)
    with_y = GraphEncoder(**SMALL, tasks="gc").fit(GRAPHS, GRAPHS.graph_y)
    assert with_y.classes_.tolist() == [0, 1, 2]
    assert with_y.fit(GRAPHS).classes_.tolist() == ["alike", "unlike", "any"]


@pytest.mark.parametrize("use", ["transform", "graph_embeddings", "node_embeddings", "score", "save", "push_to_hub"])
def test_a_model_that_is_not_fitted_is_refused(use):
    with pytest.raises(NotFittedError):
        getattr(GraphEncoder(), use)(GRAPHS)


def test_predictions_before_fit_are_refused():
    for use in (GraphEncoder().predict, GraphEncoder().predict_proba):
        with pytest.raises(NotFittedError):
            use(GRAPHS, task="gc")


def test_graphs_that_do_not_match_the_model_are_refused(fitted):
    with pytest.raises(InputError, match="its nodes have 3 attributes, the inputs were fitted on 24"):
        fitted.transform(random_store(0, [4, 5]))
    bare = [Data(edge_index=data.edge_index, num_nodes=data.num_nodes) for data in to_pyg(NEW)]
    with pytest.raises(InputError, match="its nodes have 0 attributes, the inputs were fitted on 24"):
        fitted.predict(bare, task="gc")
    spoilt = to_pyg(NEW)
    spoilt[1].x[0, 2] = torch.nan
    with pytest.raises(InputError, match=r"attribute 2 of node .* is nan; attributes must be finite"):
        fitted.transform(spoilt)
    with pytest.raises(InputError, match="gc needs graphs of at least two classes, and graphs has none"):
        fitted.score([Data(x=data.x, edge_index=data.edge_index) for data in spoilt[2:]], task="gc")


def test_graphs_without_attributes_have_their_degrees_as_inputs(tmp_path):
    bare = GraphStore.build(
        "bare",
        x=np.empty((GRAPHS.num_nodes, 0)),
        sizes=np.diff(GRAPHS.node_ptr),
        edge_index=GRAPHS.edges + np.repeat(GRAPHS.node_ptr[:-1], np.diff(GRAPHS.edge_ptr)),
    )
    model = GraphEncoder(tasks="lp", **SMALL).fit(bare)
    assert model.n_features_in_ == 0
    model.save(tmp_path / "model")
    assert np.array_equal(GraphEncoder.load(tmp_path / "model").transform(bare), model.transform(bare))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width: Input should be greater than or equal to 1, not 0"),
        ({"method": "magic"}, "method: there is no 'magic'"),
        ({"tasks": "gc,gx"}, "tasks: 'gx' is not one of gc, nc, lp"),
        ({"tasks": ()}, "name one or more, each once"),
        ({"tasks": ("gc", 3)}, "tasks: 3 is neither a name nor a GraphTask"),
        ({"tasks": "graph_regression"}, r"needs targets of graphs \(floats\), and planted has none"),
        ({"encoder": 3}, "encoder: .*, not 3"),
        ({"encoder": lambda columns: 3}, "encoder: returned int, expected a torch module"),
        ({"encoder": GCN(5, 8, 2)}, "encoder: fails on nodes with 24 input columns"),
        ({"encoder": lambda columns: Sum()}, r"encoder: returned \(1, 41\), expected one row for each of"),
        ({"weighting": 3}, "weighting: Input should be a valid string"),
        ({"weighting": Uncertainty(["gc"]), "weights": {"gc": 1.0}}, "weights go with weighting='fixed'"),
        ({"weights": {"xx": 1.0}}, "weights: xx: not among the tasks"),
        ({"output": "edges"}, "output: 'edges' is not one of nodes, graphs, list"),
        ({"validation": 1.0}, "validation: a share of the graphs is between 0 and 1"),
        ({"validation": [99]}, r"validation: expected a fraction or indices of graphs, 0\.\.59"),
        ({"validation": np.ones(60, bool)}, "validation: names all graphs"),
        ({"device": "abacus"}, "device: 'abacus' is not one of"),
        ({"batch_size": 4}, "batch_size: 3 tasks need at least 6 graphs"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_bad_parameters_are_refused_when_fitting(changes, message):
    with pytest.raises(InputError, match=message):
        GraphEncoder(**SMALL | changes).fit(GRAPHS)


class Sum(nn.Module):
    def forward(self, x, edge_index):
        return x.sum(dim=0, keepdim=True)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda m: m.predict(NEW, task="node_regression"), "'node_regression' is not one of the tasks .*: gc, nc, lp"),
        (lambda m: m.predict(NEW, task="lp"), "pairs, .* are needed for links"),
        (lambda m: m.predict(NEW, task="gc", pairs=[[0], [1]]), "for links and for nothing else"),
        (lambda m: m.predict(NEW, task="lp", pairs=[[0, 1, 2]]), "expected whole numbers"),
        (lambda m: m.predict(NEW, task="lp", pairs=[[0], [-1]]), "there is no node -1"),
        (lambda m: m.predict(NEW, task="lp", pairs=[[0], [NEW.num_nodes - 1]]), "are in different graphs"),
        (lambda m: m.score(NEW, [1, 2]), "y: 2 labels for 12 graphs"),
        (lambda m: m.transform(NEW, output="edges"), "output: 'edges'"),
    ],
)
def test_bad_arguments_of_predictions_are_refused(fitted, use, message):
    with pytest.raises(InputError, match=message):
        use(fitted)


@pytest.mark.parametrize("method", ["infomax", "untrained"])
def test_a_method_without_heads_predicts_by_linear_heads(method):
    model = GraphEncoder(method=method, **SMALL).fit(GRAPHS)
    assert len(model.predict(NEW, task="gc")) == len(NEW)
    for call in (model.predict, model.predict_proba, model.decision_function, model.score):
        with pytest.raises(InputError, match=f"gc: method={method} leaves no head of its own for this task"):
            call(NEW, task="gc", head="own")
    with pytest.raises(InputError, match="head: 'mlp' is not one of linear, own"):
        model.predict(NEW, task="gc", head="mlp")


def test_node_labels_that_are_not_shown_change_nothing():
    options = SMALL | {"tasks": "gc,lp"}
    other = GRAPHS.with_labels("node_y", np.arange(GRAPHS.num_nodes) % 5)
    one, two, seen, swapped = (
        GraphEncoder(**options, node_labels=shown).fit(graphs).transform(new)
        for shown, graphs, new in (
            ("none", GRAPHS, NEW),
            ("none", other, NEW),
            ("input", GRAPHS, NEW),
            ("input", *(each.with_labels("node_y", Labels("node", each.node_y, (7, 3, 5))) for each in (GRAPHS, NEW))),
        )
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, seen)
    assert np.array_equal(seen, swapped)  # Nor do the names of the classes.


def test_graphs_without_attributes_show_their_node_labels():
    """Rings whose class is in the labels of their nodes alone."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    edges = np.concatenate([12 * g + np.stack([np.arange(12), np.roll(np.arange(12), 1)]) for g in range(60)], axis=1)
    labels = np.where(rng.random(720) < 0.25 + 0.5 * np.repeat(y, 12), "N", "C")
    store = GraphStore.build("rings", x=np.empty((720, 0)), sizes=[12] * 60, edge_index=edges, graph_y=y, node_y=labels)
    scores = {}
    for shown in ("none", "input"):
        model = GraphEncoder(tasks="gc", node_labels=shown, degree=0, **SMALL).fit(store[:40])
        probe = LogisticRegression(C=1e3).fit(model.graph_embeddings(store[:40]), y[:40])
        scores[shown] = probe.score(model.graph_embeddings(store[40:]), y[40:])
    assert model.trained_.inputs.num_features == 2 + 17
    assert scores["none"] == 0.5 < 0.8 < scores["input"]


def test_an_own_task_that_predicts_shown_labels_is_refused():
    class Own(NodeClassification):
        name = "own"

    message = "tasks: own predicts the node labels that node_labels=input shows to the encoder; leave out one of them"
    with pytest.raises(InputError, match=message):
        GraphEncoder(tasks=("gc", Own), node_labels="input", **SMALL).fit(GRAPHS)


class Degree(NodeRegression):
    """Predict the degree of a node."""

    name = "degree"
    outputs = 1

    def missing(self, store):
        return None

    def bind(self, store):
        return self

    def cut(self, store, ids, rng):
        one = self.examples(store.cut(ids), rng)
        return one, one

    def examples(self, batch, rng):
        degree = torch.bincount(batch.edges.reshape(-1), minlength=batch.num_nodes)
        return same.tasks.Examples(batch, degree.float())


class Half(same.weighting.Weighting):
    def weigh(self, losses):
        return sum(losses.values()) / 2


def test_custom_parts_are_trained_and_must_be_passed_to_load(tmp_path):
    custom = {"encoder": lambda columns: GCN(columns, 8, num_layers=2, out_channels=6), "weighting": Half()}
    model = GraphEncoder(tasks=("nc", Degree), **SMALL | custom).fit(GRAPHS)
    assert model.transform(NEW).shape == (NEW.num_nodes, 6)
    assert model.predict(NEW, task="degree").shape == (NEW.num_nodes,)
    assert np.isfinite(model.score(NEW, task=Degree))
    clone(model)
    model.save(tmp_path / "model")
    loaded = GraphEncoder.load(tmp_path / "model", tasks=Degree, **custom)
    assert np.array_equal(loaded.transform(NEW), model.transform(NEW))
    assert np.array_equal(loaded.predict(NEW, task="degree"), model.predict(NEW, task="degree"))
    assert loaded.get_params() == model.get_params() | {"degree": 16}

    for left_out in ("encoder", "tasks"):
        given = {"tasks": Degree, **custom}
        del given[left_out]
        with pytest.raises(InputError, match=rf"of your own, .*; pass .* as load\(…, {left_out}="):
            GraphEncoder.load(tmp_path / "model", **given)
    wide = lambda columns: GCN(columns, 8, num_layers=2, out_channels=7)  # noqa: E731
    with pytest.raises(InputError, match=r"size mismatch for encoder\.module"):
        GraphEncoder.load(tmp_path / "model", tasks=Degree, **custom | {"encoder": wide})


def test_a_module_is_copied_and_trained_from_its_weights():
    torch.manual_seed(0)
    module = GCN(24, 8, num_layers=2, out_channels=6)
    before = copy.deepcopy(module.state_dict())
    untrained = GraphEncoder(encoder=module, **SMALL | {"method": "untrained"}).fit(GRAPHS)
    trained = GraphEncoder(encoder=module, **SMALL | {"method": "classical"}).fit(GRAPHS)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    ours = untrained.model_.encoder.module.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in ours.items())
    assert not np.array_equal(trained.transform(NEW), untrained.transform(NEW))


def test_a_custom_weighting_is_used():
    class Only(same.weighting.Weighting):
        def weigh(self, losses):
            return sum(loss * (task == "nc") for task, loss in losses.items())

    options = {"method": "classical", "average": 0.0, **SMALL}
    models = [GraphEncoder(weighting=Only(), **options | {"max_epochs": epochs}).fit(GRAPHS) for epochs in (1, 2)]
    heads = [[model.model_.heads[task].out.weight for model in models] for task in ("gc", "nc", "lp")]
    assert [torch.equal(a, b) for a, b in heads] == [True, False, True]


def test_a_custom_method_is_used():
    class Negative(Classical):
        name = "negative"

        def losses(self, model, batch):
            return {task: -loss for task, loss in super().losses(model, batch).items()}

    worse = GraphEncoder(method=Negative(), patience=1, **SMALL).fit(GRAPHS)
    assert worse.history_[-1]["objective"] > worse.history_[0]["objective"]


def test_a_custom_task_needs_a_name():
    class Nameless(NodeClassification):
        name = ""

    with pytest.raises(InputError, match="Nameless needs a name"):
        GraphEncoder(tasks=(Nameless,)).fit(GRAPHS)


def test_custom_parts_that_a_model_does_not_have_are_refused(tmp_path, fitted):
    fitted.save(tmp_path / "model")
    with pytest.raises(InputError, match="has no encoder of your own"):
        GraphEncoder.load(tmp_path / "model", encoder=GCN(24, 8, 2))
    with pytest.raises(InputError, match="has no task of your own called degree"):
        GraphEncoder.load(tmp_path / "model", tasks=[Degree])


def test_a_pipeline_of_make_pipeline_scores():
    pipeline = make_pipeline(GraphEncoder(output="graphs", **SMALL), LogisticRegression())
    assert 0 <= pipeline.fit(GRAPHS, GRAPHS.graph_y).score(NEW, NEW.graph_y) <= 1


def test_progress_is_reported_and_a_failed_fit_leaves_the_model_alone():
    calls = []
    model = GraphEncoder(report=lambda *call: calls.append(call), **SMALL).fit(GRAPHS)
    assert len([call for call in calls if "tasks" in call[2]]) == len(model.history_)
    before = model.transform(NEW)
    with pytest.raises(InputError):
        model.set_params(width=0).fit(GRAPHS)
    assert np.array_equal(model.transform(NEW), before)


def test_a_set_that_lacks_a_class_is_matched_by_value():
    """A model that is right on every graph scores 1.0, whichever classes a set has."""
    names = np.array(["a", "b", "c"])[GRAPHS.graph_y]
    model = GraphEncoder(tasks="gc", **SMALL).fit(GRAPHS, names)
    predicted = model.predict(GRAPHS, task="gc")
    for value in set(predicted):
        part = GRAPHS[predicted == value]
        assert model.score(part, [value] * len(part), task="gc") == 1.0
    assert model.score(GRAPHS, predicted, task="gc") == 1.0


@pytest.mark.parametrize("offset", [1.7e9, 1e12])
def test_an_offset_of_an_attribute_changes_nothing(offset, fitted):
    x = np.asarray(GRAPHS.x, np.float64).copy()
    x[:, 3] = np.round(x[:, 3], 3) + offset
    shifted = GraphStore.build(
        "planted",
        x=x,
        sizes=np.diff(GRAPHS.node_ptr),
        edge_index=GRAPHS.edges + np.repeat(GRAPHS.node_ptr[:-1], np.diff(GRAPHS.edge_ptr)),
        graph_y=GRAPHS.graph_y,
        node_y=GRAPHS.node_y,
    )
    model = GraphEncoder(**SMALL).fit(shifted)
    plain = model.transform(shifted)
    np.testing.assert_allclose(plain, fitted.transform(GRAPHS), atol=0.02)


def test_fits_in_threads_give_the_bits_of_the_serial_fit():
    """With dropout, which draws in every step, and a custom encoder that draws from torch's generator."""
    options = {**SMALL, "dropout": 0.3, "tasks": "gc,nc"}
    custom = {**SMALL, "tasks": "nc", "encoder": lambda columns: GCN(columns, 8, num_layers=1, dropout=0.3)}

    def embed(number):
        return GraphEncoder(seed=number, **(custom if number % 3 == 0 else options)).fit(GRAPHS).transform(NEW)

    serial = [embed(number) for number in range(6)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(embed, [*range(6), *range(6)]))
    for number, embeddings in enumerate(threaded):
        assert np.array_equal(embeddings, serial[number % 6]), number


def test_the_order_of_version_0_1_is_explained(fitted):
    with pytest.raises(InputError, match=r"graphs come first: predict\(graphs, task='gc'\)"):
        fitted.predict("gc", task=NEW)
