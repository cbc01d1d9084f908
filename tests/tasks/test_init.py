import copy

import numpy as np
import pytest
import torch

from helpers import digest, random_store
from same.episodes import multi_task_episode
from same.errors import InputError
from same.graphs import GraphStore, Inputs, Labels, planted
from same.methods import ESAME, ISAME
from same.nn import Encoder, Model, NodeHead
from same.tasks import (
    TASKS,
    GraphClassification,
    GraphRegression,
    GraphTask,
    LinkPrediction,
    NodeClassification,
    NodeRegression,
    make_tasks,
    named_task,
    offered,
)


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_a_linear_head_is_a_linear_layer_on_the_features_of_a_probe(pair):
    store = random_store(0, [6, 9, 4, 7], density=0.5)
    hidden = make_tasks(["gc", "nc", "lp"], store, pair=pair)
    for task, other in zip(make_tasks(["gc", "nc", "lp"], store, pair=pair, linear_heads=True), hidden, strict=True):
        examples = task.examples(store.cut(np.arange(4)), np.random.default_rng(0))
        h = torch.randn(examples.inputs.num_nodes, 5)
        head = task.head(5)
        output = head(h, examples)
        features = task.features(h * 5**0.5 if task.name == "lp" else h, examples)
        torch.testing.assert_close(output, head.out(features).view_as(output))
        layers = [len(list(each.parameters())) // 2 for each in (head, other.head(5))]
        assert layers == ([1, 1] if task.name == "nc" else [1, 2])


def test_a_task_that_a_set_does_not_offer_is_refused():
    bare = GraphStore.build("bare", x=np.zeros((3, 1)), sizes=[1, 2], edge_index=np.empty((2, 0)), graph_y=[0, 0])
    for name, reason in [("gc", "at least two classes"), ("nc", "at least two classes"), ("lp", "edges")]:
        with pytest.raises(InputError, match=f"tasks: {name} needs .*{reason}.*, and bare has none"):
            make_tasks([name], bare)
    with pytest.raises(InputError, match=r"targets of graphs \(floats\)"):
        make_tasks(["graph_regression"], bare)
    with pytest.raises(InputError, match="'gcn' is not one of gc, nc, lp"):
        make_tasks(["gcn"], bare)
    with pytest.raises(InputError, match="each once"):
        make_tasks(["lp", "lp"], random_store(0, [5], density=1.0))
    with pytest.raises(InputError, match="name one or more"):
        make_tasks([], bare)


def test_graphs_with_hardly_any_edges_or_nodes():
    """Without pairs, or without nodes in a support or target set, the loss is 0 and its gradient too, not NaN."""
    sizes = [1, 2, 1, 3, 1, 2, 1, 1, 2, 1, 1, 1]
    ptr = np.cumsum([0, *sizes])
    store = GraphStore.build(
        "sparse",
        x=np.random.default_rng(0).normal(size=(ptr[-1], 3)),
        sizes=sizes,
        edge_index=[[ptr[3]], [ptr[3] + 1]],
        graph_y=np.arange(12) % 2,
        node_y=np.arange(ptr[-1]) % 2,
    )
    tasks = make_tasks(["gc", "nc", "lp"], store)
    model = Model(Encoder(3, width=4), {task.name: task.head(4) for task in tasks})
    for method in (ESAME(), ISAME()):
        for seed in range(20):
            episode = multi_task_episode(store, tasks, np.arange(12), np.random.default_rng(seed))
            losses = method.losses(model, episode)
            assert all(torch.isfinite(loss) for loss in losses.values())
            sum(losses.values()).backward()
            assert all(np.isfinite(v) for pair in method.evaluate(model, episode).values() for v in pair)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_every_task_has_a_name_and_a_kind():
    assert {name: task.kind for name, task in TASKS.items()} == {
        "gc": "classes",
        "nc": "classes",
        "lp": "links",
        "graph_regression": "numbers",
        "node_regression": "numbers",
    }


def test_offered_tasks():
    store = random_store(0, [4, 5], density=0.5)
    assert offered(store) == ["gc", "nc", "lp"]
    store = store.with_labels("y", [0.5, 1.5]).with_labels("node_y", np.ones((9, 2)))
    assert offered(store) == ["lp", "graph_regression", "node_regression"]
    bare = GraphStore.build("bare", x=np.zeros((3, 1)), sizes=[3], edge_index=[[], []], graph_y=[1])
    assert offered(bare) == []


def test_tasks_whose_labels_the_encoder_sees_are_neither_made_nor_offered():
    store = random_store(0, [4, 5], density=0.5).with_labels("element", list("CCOCNCOCN"))
    store = store.with_inputs(Inputs.fit(store, np.array([0, 1]), node_labels="input"))
    assert offered(store) == ["gc", "lp"]

    class Own(NodeClassification):
        name = "own"

    class Unrelated(Own):
        def reads(self, store):
            return None

    for kind, name in (("nc", "nc"), (Own, "own"), (Own("node_y"), "own")):
        message = f"tasks: {name} predicts the node labels that node_labels=input shows to the encoder; leave out one"
        with pytest.raises(InputError, match=message):
            make_tasks(["gc", kind], store)
    make_tasks([NodeClassification("element"), Unrelated, "gc"], store)


def test_a_task_names_its_column():
    store = random_store(0, [4, 5], density=0.5).with_labels("element", list("CCOCNCOCN"))
    (task,) = make_tasks([NodeClassification("element")], store)
    assert (task.name, task.classes, task.outputs) == ("nc", ("C", "N", "O"), 3)
    examples = task.examples(store.cut([1]), np.random.default_rng(0))
    assert examples.y.tolist() == [1, 0, 2, 0, 1]
    support, target = task.cut(store, np.array([0, 1]), np.random.default_rng(0))
    assert sorted([*support.y.tolist(), *target.y.tolist()]) == [0, 0, 0, 0, 0, 1, 1, 2, 2]
    with pytest.raises(InputError, match="nc needs nodes of at least two classes in the column 'mass', and random has"):
        make_tasks([NodeClassification("mass")], store)
    with pytest.raises(InputError, match=r"node_regression needs targets of nodes \(floats\) in the column 'element'"):
        make_tasks([NodeRegression("element")], store)


def test_a_task_under_a_name_of_its_own_reads_the_column_of_that_name():
    store = random_store(0, [4, 5], density=0.5).with_labels("toxic", ["yes", "no"])
    task = named_task("gc", "toxic").bind(store)
    assert (task.name, task.column, task.classes, task.missing(store)) == ("toxic", "toxic", ("no", "yes"), None)
    assert (TASKS["gc"].name, TASKS["gc"].column) == ("gc", None)
    for kind in ("lp", "pairs"):
        assert (named_task(kind, "bonds", "concat").name, named_task(kind, "bonds", "concat").pair) == (
            "bonds",
            "concat",
        )
    assert named_task("pairs", "bonds").missing(store) == "given pairs and their labels (pass pairs and y)"
    assert TASKS["lp"].pair == "symmetric"


def test_nc_reads_a_node_level_y_where_there_is_no_node_y():
    store = GraphStore.build("a", x=np.ones((3, 1)), sizes=[1, 2], edge_index=[[1], [2]], labels={"y": [5, 6, 5]})
    (task,) = make_tasks(["nc"], store)
    assert task.classes == (5, 6)
    assert task.examples(store.cut([1]), np.random.default_rng(0)).y.tolist() == [1, 0]
    (other,) = make_tasks(["nc"], store.with_labels("node_y", [True, True, False]))
    assert other.classes == (False, True)


def test_one_task_object_serves_many_sets():
    task = NodeClassification()
    bound = [make_tasks([task], store)[0] for store in (planted(10), random_store(0, [4, 5]))]
    assert [each.classes for each in bound] == [("role 0", "role 1", "role 2"), (0, 1, 2)]
    assert task.classes is None


def test_a_set_to_score_is_matched_by_value():
    train = random_store(0, [4, 5], density=0.5).with_labels("y", ["a", "c"])
    (task,) = make_tasks(["gc"], train)
    few = random_store(1, [4, 5, 6]).with_labels("y", ["c", "b", "c"])
    matched = task.match(few)
    assert matched.graph_y.tolist() == [1, 2, 1]
    assert few.graph_y.tolist() == [1, 0, 1]
    examples = task.examples(matched.cut([0, 1, 2]), np.random.default_rng(0))
    always_c = torch.tensor([[0.0, 1.0]] * 3)
    assert task.score(always_c, examples) == pytest.approx(2 / 3)
    assert LinkPrediction().match(few) is few


def test_unknown_entries_are_refused_for_now():
    known = np.array([True, False, True, True])
    column = Labels("node", np.array([0, -1, 1, 1], np.int32), ("a", "b"), known)
    store = random_store(0, [4]).with_labels("node_y", column)
    with pytest.raises(InputError, match="nc needs node labels without unknown entries"):
        make_tasks(["nc"], store)


class Parity(NodeClassification):
    name = "parity"
    seen = None

    def missing(self, store):
        return None if store.num_edges else "edges"

    def bind(self, store):
        bound = copy.copy(self)
        bound.seen = store.name
        return bound

    def head(self, width):
        return NodeHead(width, 2)


def test_a_task_is_bound_to_its_set():
    store = random_store(0, [4, 5], density=1.0)
    (task,) = make_tasks([Parity], store)
    assert isinstance(task, GraphTask)
    assert task.seen == "random"
    assert [each.seen for each in make_tasks([task], planted(10))] == ["planted"]
    assert task.seen == "random"
    with pytest.raises(InputError, match="parity needs edges, and random has none"):
        make_tasks([Parity], random_store(0, [4, 5], density=0.0))


def test_options_go_to_names_and_classes_and_not_to_objects():
    store = random_store(0, [4, 5], density=0.5)
    for kind, expected in (("lp", ("concat", True)), (LinkPrediction, ("concat", True))):
        (task,) = make_tasks([kind], store, pair="concat", linear_heads=True)
        assert (task.pair, task.linear) == expected
    (task,) = make_tasks([LinkPrediction()], store, pair="concat", linear_heads=True)
    assert (task.pair, task.linear) == ("symmetric", False)
    for kind, expected in (("gc", "max"), (GraphRegression, "max"), (GraphClassification(pool="sum"), "sum")):
        (task,) = make_tasks(
            [kind], store.with_labels("y", [0.5, 1.5]) if kind is GraphRegression else store, pool="max"
        )
        assert task.pool == expected
        assert task.head(4).pool == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gc", ("b9536200d632fa7b", "f932a132032d7940", "1e1e32c8db830fc5")),
        ("nc", ("bc8de232773318fe", "0ab6c99d9a2fdf16", "56e30586af0ebbba")),
        ("lp", ("4072d3f95c7cf975", "6f20f9e622be7c72", "42e9c935cd547741")),
    ],
)
def test_recorded_draws(name, expected):
    """Support set, target set and all examples, recorded with version 0.1: results depend on them."""
    store, ids = planted(), np.arange(10, 34)
    (task,) = make_tasks([name], store)
    sets = (*task.cut(store, ids, np.random.default_rng(7)), task.examples(store.cut(ids), np.random.default_rng(8)))
    digests = []
    for e in sets:
        arrays = (e.y, e.index, e.inputs.edges, e.inputs.graph_ids)
        digests.append(digest(*(array for array in arrays if array is not None)))
    assert tuple(digests) == expected
