import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from same.episodes import part_examples
from same.graphs import planted
from same.graphs.batch import Examples
from same.graphs.labels import Labels
from same.metrics import scores
from same.nn import Encoder
from same.tasks import make_tasks
from same.training.ridge import PENALTY, RidgeValidation

STORE = planted(60)
TRAIN, HELD = np.arange(40), np.arange(40, 60)


def probe_of(tasks, store=STORE, encoder=None):
    """A probe of some tasks, its results, and the features and labels it sees."""
    tasks = make_tasks(tasks, store)
    encoder = encoder or Encoder(store.num_features, width=8).eval()
    sets = [part_examples(store, ids, tasks, part, seed=0, split=0) for part, ids in (("train", TRAIN), ("test", HELD))]
    arrays = {}
    with torch.no_grad():
        for task, *both in ((task, a, b) for (task, a), (_, b) in zip(*sets, strict=True)):
            arrays[task.name] = [(task.features(encoder(e.inputs), e).numpy(), e.y.numpy()) for e in both]
    probe = RidgeValidation(*sets)
    return probe, probe(encoder), arrays


@pytest.fixture(scope="module")
def all_tasks():
    """Results on a set with graph and node classes, links, and numbers of graphs and nodes."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    degrees = np.bincount(STORE.joint_edges.reshape(-1), minlength=STORE.num_nodes)
    store = STORE.with_labels("y", Labels("graph", np.asarray(STORE.graph_y), STORE.graph_classes))
    numbers = store.with_labels("node_y", Labels.of(1e3 * degrees + rng.normal(size=len(degrees)), "node"))
    return probe_of(["gc", "nc", "lp"]), probe_of(["node_regression"], numbers)


def test_scores_and_losses_are_those_of_scikit_learns_ridge(all_tasks):
    kinds = {"gc": "classes", "nc": "classes", "lp": "links", "node_regression": "numbers"}
    for _, results, arrays in all_tasks:
        for name, ((x, y), (x_held, y_held)) in arrays.items():
            scaler = StandardScaler().fit(x)
            kind = kinds[name]
            if kind == "classes":
                t, t_held = (np.where(each[:, None] == np.arange(y.max() + 1), 1.0, -1.0) for each in (y, y_held))
            elif kind == "links":
                t, t_held = 2.0 * y[:, None] - 1, 2.0 * y_held[:, None] - 1
            else:
                t, t_held = ((each[:, None] - y.mean()) / y.std() for each in (y, y_held))
            output = Ridge(alpha=PENALTY).fit(scaler.transform(x), t).predict(scaler.transform(x_held))
            output = output.reshape(len(output), -1)
            loss = np.square(output - t_held).sum(1).mean() / t.var(axis=0).sum()
            predicted = output.argmax(1) if kind == "classes" else output[:, 0] * (y.std() if kind == "numbers" else 1)
            predicted = predicted + (y.mean() if kind == "numbers" else 0)
            score = next(iter(scores(kind, y_held, predicted).values()))
            assert results[name] == (pytest.approx(loss, rel=1e-4), pytest.approx(score, abs=2e-3)), name


def test_labels_of_validation_graphs_are_only_compared_with():
    """Other validation labels change losses and scores, and not what is predicted."""
    probe, before, _ = probe_of(["nc"], encoder=(encoder := Encoder(24, width=8).eval()))
    seen = []

    class Spy(type(probe.validation[0][0])):
        def score(self, output, examples):
            seen.append(output)
            return super().score(output, examples)

    task = Spy().bind(STORE)
    (_, train), (_, held) = probe.train[0], probe.validation[0]
    for y in (held.y, held.y.flip(0)):
        RidgeValidation([(task, train)], [(task, Examples(held.inputs, y))])(encoder)
    assert torch.equal(*seen)
    assert before["nc"][1] == task.score(seen[0], held)


def test_several_sets_of_a_task_are_joined():
    probe, once, _ = probe_of(["lp"], encoder=(encoder := Encoder(24, width=8).eval()))
    (task, train) = probe.train[0]
    half = len(train.y) // 2
    parts = [Examples(train.inputs, train.y[part], train.index[:, part]) for part in (slice(half), slice(half, None))]
    joined = RidgeValidation([(task, each) for each in parts], probe.validation)(encoder)
    assert joined["lp"] == pytest.approx(once["lp"], rel=1e-5)


def test_embeddings_that_are_not_finite_have_no_score():
    probe, *_ = probe_of(["gc"])
    loss, score = probe(lambda batch: torch.full((batch.num_nodes, 4), torch.nan))["gc"]
    assert np.isnan(loss)
    assert np.isnan(score)


def test_constant_embeddings_score_as_a_constant_does():
    _, results, arrays = probe_of(["gc", "nc"], encoder=lambda batch: torch.ones(batch.num_nodes, 4))
    for name, (loss, score) in results.items():
        (_, y), (_, held) = arrays[name]
        assert score == pytest.approx((held == np.bincount(y).argmax()).mean(), abs=1e-6)
        assert loss == pytest.approx(1, abs=0.1)
