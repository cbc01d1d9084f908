import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import digest
from same.errors import InputError
from same.graphs import GraphStore, Labels, hold_out, load, split
from same.graphs.splits import PARTS, rare_classes


def labelled(counts: list[int]) -> GraphStore:
    y = np.repeat(np.arange(len(counts)), counts)
    return GraphStore.build(
        "labelled",
        x=np.zeros((len(y), 1)),
        sizes=np.ones(len(y)),
        edge_index=np.empty((2, 0)),
        graph_y=Labels("graph", y.astype(np.int32), tuple(f"c{c}" for c in range(len(counts)))),
    )


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(lambda c: sum(c) >= 10), seed=st.integers(0, 99)
)
def test_shares_are_within_one_graph_of_70_10_20_in_every_class(counts, seed):
    store = labelled(counts)
    tested = np.zeros(store.num_graphs, int)
    for k in range(PARTS):
        s = split(store, k, seed)
        assert sorted(np.concatenate([s.train, s.validation, s.test])) == list(range(store.num_graphs))
        tested[s.test] += 1
        for c, count in enumerate(counts):
            for ids, share in ((s.train, 0.7), (s.validation, 0.1), (s.test, 0.2)):
                assert abs((store.graph_y[ids] == c).sum() - share * count) <= 1 + 1e-9
    assert (tested == 2).all()


def test_recorded_ids():
    """The same on every platform and with every numpy: recorded once, they must not change."""
    s = split(labelled([12, 9]), 3, seed=7)
    assert s.test.tolist() == [3, 8, 10, 17, 18]
    assert s.validation.tolist() == [7, 20]


def test_seeds_differ_and_repeat():
    store = labelled([50, 50])
    assert (split(store, 0, seed=1).test == split(store, 0, seed=1).test).all()
    assert not np.array_equal(split(store, 0, seed=1).test, split(store, 0, seed=2).test)


def test_graphs_without_classes_are_split_as_well():
    y = np.linspace(0, 1, 40, dtype=np.float32)
    store = GraphStore.build("r", x=np.zeros((40, 1)), sizes=np.ones(40), edge_index=np.empty((2, 0)), graph_y=y)
    s = split(store, 9)
    assert (len(s.train), len(s.validation), len(s.test)) == (28, 4, 8)


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=4).filter(lambda counts: sum(counts) > 3),
    share=st.floats(0.01, 0.5),
    seed=st.integers(0, 5),
)
def test_an_equal_share_of_every_class_is_held_out(counts, share, seed):
    store = labelled(counts)
    s = hold_out(store, share, seed)
    assert sorted([*s.train, *s.validation]) == list(range(len(store)))
    held = max(2, round(share * len(store)))
    assert len(s.validation) == held
    of_class = np.bincount(store.graph_y[s.validation], minlength=len(counts))
    assert (np.abs(of_class - held * np.array(counts) / len(store)) <= 1).all()


def test_bad_shares():
    with pytest.raises(InputError, match="holding out 2 of 2 graphs for validation leaves none to train on"):
        hold_out(labelled([2]), 0.1)
    with pytest.raises(InputError, match="between 0 and 1, not 1"):
        hold_out(labelled([20]), 1)


def test_bad_splits_and_rare_classes():
    with pytest.raises(InputError, match="9 graphs; ten splits need at least 10"):
        split(labelled([9]), 0)
    with pytest.raises(InputError, match=r"split: 10 is not one of 0\.\.9"):
        split(labelled([20]), 10)
    assert rare_classes(labelled([20, 4])) == ["c1 (4)"]


@pytest.mark.parametrize("name", ["ENZYMES", "PROTEINS", "DHFR", "COX2"])
def test_real_sets_split_in_proportion(real_sets, name):
    store = load(name, real_sets)
    for k in range(PARTS):
        s = split(store, k)
        for ids, share in ((s.train, 0.7), (s.validation, 0.1), (s.test, 0.2)):
            counts = np.bincount(store.graph_y[ids])
            assert (np.abs(counts - share * np.bincount(store.graph_y)) <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("name", "digests"),
    [
        ("planted", ("f78e6253bece7b91", "1b2692ee8ebbf117", "48a0d123577a5366")),
        ("ENZYMES", ("c9d6bb444cc7f783", "2ea7c9f515bb5f4a", "f5cb671f75d37df4")),
        ("PROTEINS", ("953a1e20c2713170", "5e26c7a77d804e56", "0b67034c1581a197")),
        ("DHFR", ("10ce54a234fb52ba", "a8ffcd6432654cf3", "965cb1a8d7140791")),
        ("COX2", ("c9e5b9c614b3268f", "d06f1714c132e752", "8c53a208c66a4021")),
    ],
)
def test_recorded_splits(request, name, digests):
    """Recorded with version 0.1: published results depend on them."""
    store = load(name, None if name == "planted" else request.getfixturevalue("real_sets"))
    s, h = split(store, 3, seed=1), hold_out(store, 0.1, seed=2)
    parts = np.empty(store.num_graphs, np.int64)
    for k in range(PARTS):
        parts[split(store, k, seed=5).validation] = (k + 2) % PARTS
    assert (digest(parts), digest(s.train, s.validation, s.test), digest(h.train, h.validation)) == digests


def test_validation_graphs_by_index_or_mask():
    store = labelled([20, 20])
    mask = np.arange(40) % 4 == 0
    for choice in (mask, mask.tolist(), np.flatnonzero(mask), np.flatnonzero(mask) - 40):
        s = hold_out(store, choice)
        assert s.validation.tolist() == np.flatnonzero(mask).tolist()
        assert s.train.tolist() == np.flatnonzero(~mask).tolist()
        assert len(s.test) == 0
    for choice in ([40], "all", [0.5]):
        with pytest.raises(InputError, match=r"validation: expected a fraction or indices of graphs, 0\.\.39"):
            hold_out(store, choice)
    with pytest.raises(InputError, match="names all graphs"):
        hold_out(store, np.arange(40))
