import numpy as np
import pytest
import torch

from helpers import random_store
from same.errors import InputError
from same.graphs import inputs as inputs_module
from same.graphs.inputs import DEGREE_WITHOUT_ATTRIBUTES, Inputs, walk_columns
from same.graphs.labels import Labels
from same.graphs.store import GraphStore


def test_standardise_is_fitted_on_the_given_graphs_only():
    store = random_store(0, [5, 6, 7, 8])
    fitted = Inputs.fit(store, np.array([0, 2]))
    nodes = np.r_[0:5, 11:18]
    np.testing.assert_allclose(fitted.mean, store.x[nodes].mean(0), atol=1e-6)
    np.testing.assert_allclose(fitted.scale, store.x[nodes].std(0), atol=1e-6)
    x = store.with_inputs(fitted).cut([0, 2]).x
    torch.testing.assert_close(x.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std(0, correction=0), torch.ones(3))


def test_constant_columns_become_zero():
    store = GraphStore.build("flat", x=np.full((4, 2), [0.1, 1e6]), sizes=[4], edge_index=np.empty((2, 0)))
    x = store.with_inputs(Inputs.fit(store, np.array([0]))).cut([0]).x
    torch.testing.assert_close(x, torch.zeros(4, 2), atol=1e-3, rtol=0)


def test_row_divides_by_the_sum_bounded_below_by_one():
    store = GraphStore.build("rows", x=[[3.0, 1.0], [0.2, 0.2], [-5.0, 1.0]], sizes=[3], edge_index=np.empty((2, 0)))
    x = store.with_inputs(Inputs.fit(store, np.array([0]), scaling="row")).cut([0]).x
    torch.testing.assert_close(x, torch.tensor([[0.75, 0.25], [0.2, 0.2], [-5.0, 1.0]]))


@pytest.mark.parametrize("columns", [3, 0])
def test_both_is_the_two_scalings_side_by_side(columns):
    store = random_store(0, [5, 6], columns=columns)
    one, other, both = (
        store.with_inputs(Inputs.fit(store, np.array([0]), scaling=scaling, degree=2)).cut([0, 1]).x
        for scaling in ("standardise", "row", "both")
    )
    expected = torch.cat([one[:, :columns], other], dim=1)
    torch.testing.assert_close(both, expected)


def test_none_keeps_the_attributes():
    store = random_store(0, [5])
    x = store.with_inputs(Inputs.fit(store, np.array([0]), scaling="none")).cut([0]).x
    assert torch.equal(x, torch.from_numpy(store.x))


@pytest.mark.parametrize("offset", [1.7e9, 1e12])
@pytest.mark.parametrize("form", [float, int])
def test_an_offset_changes_nothing(offset, form):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, (5000, 2)) / (1024 if form is float else 1)  # No digit is lost next to the offset.
    graphs = {"sizes": [2500, 2500], "edge_index": [[0], [1]]}
    shifted = GraphStore.build("shifted", x=(x + offset).astype(form), **graphs)
    plain = GraphStore.build("plain", x=x, **graphs)
    seen = [store.with_inputs(Inputs.fit(store, np.array([0]))).cut([0, 1]).x for store in (plain, shifted)]
    # The mean itself is rounded, to 1e-4 at 1e12.
    torch.testing.assert_close(*seen, atol=2e-16 * offset / x.std() + 1e-6, rtol=0)


def test_an_offset_leaves_row_scaling_exact():
    store = GraphStore.build("rows", x=[[2.0**40 + 1, 2.0**40]], sizes=[1], edge_index=[[], []])
    x = store.with_inputs(Inputs.fit(store, np.array([0]), scaling="row")).cut([0]).x
    assert x.dtype == torch.float32
    torch.testing.assert_close(x, torch.tensor([[0.5, 0.5]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 1e-30, 1.7e9, 1e12, -3e38])
def test_a_constant_column_becomes_zero_in_any_precision(dtype, value):
    store = GraphStore.build("flat", x=np.full((999, 1), value, dtype), sizes=[999], edge_index=[[], []])
    inputs = Inputs.fit(store, np.array([0]))
    assert inputs.scale.tolist() == [1.0]
    assert (np.abs(inputs.columns(store.x, store.edges, np.arange(999))) <= 1e-15 * abs(value)).all()


def test_noise_of_float32_is_no_spread():
    x = np.float32(0.1) + np.array([0, 1, 0, 1], np.float32) * np.spacing(np.float32(0.1))
    store = GraphStore.build("noise", x=x[:, None], sizes=[4], edge_index=[[], []])
    assert Inputs.fit(store, np.array([0])).scale.tolist() == [1.0]


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_walk_equals_powers_of_the_dense_matrix(density):
    batch = random_store(3, [9, 5, 1], density).cut([0, 1, 2])
    a = np.zeros((15, 15))
    a[tuple(batch.edges.numpy())] = 1
    a += a.T
    p = a / np.maximum(a.sum(1, keepdims=True), 1)
    expected = np.stack([np.diag(np.linalg.matrix_power(p, k)) for k in range(2, 9)], axis=1)
    np.testing.assert_allclose(walk_columns(batch.edges.numpy(), 15, 7), expected, atol=1e-6)


def test_degree_is_capped_one_hot():
    star = GraphStore.build("star", x=np.empty((5, 0)), sizes=[5], edge_index=[[0, 0, 0], [1, 2, 3]])
    x = star.with_inputs(Inputs.fit(star, np.array([0]), degree=2)).cut([0]).x
    assert x[:, 1:].tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_nodes_without_attributes_show_a_constant_and_the_degree():
    store = random_store(0, [5, 6], columns=0)
    inputs = Inputs.fit(store, np.array([0]))
    x = store.with_inputs(inputs).cut([1]).x
    assert x.shape[1] == inputs.num_features == 1 + DEGREE_WITHOUT_ATTRIBUTES + 1
    assert (x[:, 0] == 1).all()
    assert (x[:, 1:].sum(1) == 1).all()


def test_cached_and_uncached_columns_agree(monkeypatch):
    store = random_store(5, [9, 3, 12, 1])
    inputs = Inputs.fit(store, np.arange(4), degree=3, walk=5)
    cached = store.with_inputs(inputs)
    assert cached.inputs.cache is not None
    monkeypatch.setattr(inputs_module, "_CACHE_BYTES", 0)
    uncached = store.with_inputs(inputs)
    assert uncached.inputs.cache is None
    torch.testing.assert_close(cached.cut([2, 0]).x, uncached.cut([2, 0]).x)


def shown(store, ids=(0,), **options):
    return Inputs.fit(store, np.array(ids), node_labels="input", **options)


@pytest.mark.parametrize("columns", [3, 0])
@pytest.mark.parametrize("scaling", ["standardise", "row", "both", "none"])
def test_node_classes_stand_one_hot_between_attributes_and_structure(scaling, columns):
    store = random_store(2, [9, 5, 7], columns=columns)
    options = {"scaling": scaling, "degree": 4, "walk": 2}
    without = store.with_inputs(Inputs.fit(store, np.array([0, 1]), **options)).cut([2, 0]).x
    inputs = shown(store, (0, 1), **options)
    batch = store.with_inputs(inputs).cut([2, 0])
    assert batch.x.shape[1] == inputs.num_features
    structure = inputs.num_structural
    attributes = without[:, :-structure] if columns else without[:, :0]  # Classes replace the constant 1.
    hot = torch.nn.functional.one_hot(batch.node_y, 3).float()
    assert torch.equal(batch.x, torch.cat([attributes, hot, without[:, -structure:]], dim=1))


def test_without_edges_the_node_classes_stay():
    store = random_store(1, [9, 6], density=0.6)
    store = store.with_inputs(shown(store, degree=3, walk=2))
    batch = store.cut([0, 1])
    bare = batch.drop_edges(torch.ones(batch.edges.shape[1], dtype=torch.bool))
    assert torch.equal(bare.x[:, :6], batch.x[:, :6])
    assert (bare.x[:, 6] == 1).all()  # All degrees are 0.
    assert not torch.equal(bare.x, batch.x)


def test_node_classes_of_another_set_are_matched_by_value():
    train = random_store(0, [4]).with_labels("node_y", ["C", "N", "O", "C"])
    inputs = shown(train, scaling="none")
    other = random_store(1, [6]).with_labels(
        "node_y", Labels("node", np.array([0, 1, 2, 1, 0, -1], np.int32), ("O", "Cl", "C"), np.arange(6) < 5)
    )
    hot = other.with_inputs(inputs).cut([0]).x[:, 3:]
    expected = {"O": [0, 0, 1], "Cl": [0, 0, 0], "C": [1, 0, 0]}
    assert hot.tolist() == [expected[v] for v in ("O", "Cl", "C", "Cl", "O")] + [[0, 0, 0]]


@pytest.mark.parametrize("known", [None, np.array([True] * 4 + [False] + [True] * 4)])
def test_only_classes_of_training_nodes_are_shown(known):
    column = Labels("node", np.array([2, 0, 2, 0, 3, 1, 1, 3, 0], np.int32), ("a", "b", "c", "d"), known)
    store = random_store(0, [5, 4]).with_labels("node_y", column)
    assert shown(store).classes == (("a", "c", "d") if known is None else ("a", "c"))
    assert shown(store, (0, 1)).classes == ("a", "b", "c", "d")


def test_names_and_order_of_the_classes_change_nothing():
    store, other = random_store(0, [9, 8]), random_store(1, [7])
    renamed, swapped = [], []
    for each in (store, other):
        y = each.labels["node_y"].y
        renamed.append(each.with_labels("node_y", Labels("node", y, ("z", "y", "x"))))
        swapped.append(each.with_labels("node_y", Labels("node", (2 - y).astype(np.int32), (2, 1, 0))))
    x = other.with_inputs(shown(store)).cut([0]).x
    assert torch.equal(renamed[1].with_inputs(shown(renamed[0])).cut([0]).x, x)
    assert torch.equal(swapped[1].with_inputs(shown(store)).cut([0]).x, x)


def test_parts_of_a_set_show_their_own_node_classes(monkeypatch):
    store = random_store(3, [9, 3, 12, 1, 8])
    store = store.with_inputs(shown(store, degree=2))
    expected = store.cut([4, 1]).x
    assert torch.equal(store[[4, 1]].cut([0, 1]).x, expected)
    monkeypatch.setattr(inputs_module, "_CHUNK", 2)
    monkeypatch.setattr(inputs_module, "_CACHE_BYTES", 0)
    bare = store.with_inputs(shown(store, (0, 1, 2, 3, 4), degree=2))
    assert bare.inputs.cache is None
    hot = slice(3, 6)
    assert torch.equal(bare.cut([4, 1]).x[:, hot], expected[:, hot])


def test_node_labels_that_cannot_be_shown_are_refused_in_one_line():
    store = random_store(0, [5])
    inputs, floats = shown(store), store.with_labels("node_y", np.arange(5) / 2)
    bare = GraphStore.build("bare", x=store.x, sizes=[5], edge_index=[[], []])
    for other, message in ((bare, "its nodes have none; give"), (floats, "its node labels are floats; give")):
        message = f"{other.name}: node_labels=input shows node classes to the encoder, and {message}"
        with pytest.raises(InputError, match=message):
            shown(other)
        with pytest.raises(InputError, match=message):
            other.with_inputs(inputs)
    with pytest.raises(InputError, match="node_labels: 'output' is not one of none, input"):
        Inputs.fit(store, np.array([0]), node_labels="output")


def test_bad_arguments():
    store = random_store(0, [5])
    with pytest.raises(InputError, match="scaling: 'magic' is not one of standardise, row, both, none"):
        Inputs.fit(store, np.array([0]), scaling="magic")
    with pytest.raises(InputError, match="degree and walk"):
        Inputs.fit(store, np.array([0]), walk=-1)
    with pytest.raises(InputError, match="have 4 attributes, the inputs were fitted on 3"):
        random_store(0, [5], columns=4).with_inputs(Inputs.fit(store, np.array([0])))
