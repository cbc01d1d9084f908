import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from same.errors import InputError
from same.graphs.labels import Graphs, Labels

VALUES = st.one_of(
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.text(max_size=3), min_size=1),
)


@given(VALUES)
def test_classes_are_the_typed_distinct_values(values):
    column = Labels.of(values, "graph")
    assert column.classes == tuple(sorted(set(values)))
    assert [type(value) for value in column.classes] == [type(values[0])] * len(column.classes)
    assert column.values.tolist() == values
    assert column.y.dtype == np.int32
    column.check("y")


@pytest.mark.parametrize(
    "values", [torch.tensor([3, 1]), np.array([3, 1], np.uint8), np.array([3, 1], object), (3, 1), np.array([3, 1])]
)
def test_values_come_in_many_forms(values):
    assert Labels.of(values, "node").classes == (1, 3)


def test_floats_are_numbers_in_their_precision():
    for values, dtype in ((np.array([0.1, 2.0]), np.float64), (np.array([[0.5, 1.0]], np.float32), np.float32)):
        column = Labels.of(values, "graph")
        assert column.classes is None
        assert column.y.dtype == dtype
        np.testing.assert_array_equal(column.values, values)


def test_text_keeps_all_characters():
    for values in (["\0", ""], np.array(["\0", ""], object)):
        column = Labels.of(values, "graph")
        assert column.classes == ("", "\0")
        assert column.values.tolist() == ["\0", ""]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "y: labels of different types"),
        (np.array(["a", None], object), "y: labels of different types"),
        ([1, None], "y: labels are whole numbers, booleans or text .* not object"),
        ([b"a"], "not .S1"),
        ([1j], "not complex128"),
        (np.array(["2020-01-01"], "M8[D]"), "not datetime64"),
        (3, r"of the shape \(\)"),
        ([[1], [2, 3]], "rows of different lengths"),
        ([[1, 2]], r"has the shape \(1, 2\), expected one class for each graph"),
        ([0.5, np.nan], "the target of graph 1 is not finite"),
        ([0.5, 1e300], "the target of graph 1 is not finite"),
        (np.arange(2**16 + 1), "has 65537 classes, at most 65536; give numbers as floats"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(InputError, match=message):
        Labels.of(values, "graph", name="y")


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (np.array([0], np.int32), (1, True), "y: the classes 1, True are not distinct"),
        (np.array([0], np.int32), (None, 1), "the class None is neither a number"),
        (np.array([-1], np.int32), (1, 2), r"has the code -1, but the classes have the codes 0\.\.1"),
        (np.array([0, 2], np.int32), ("a", "b"), "has the code 2"),
        (np.array([0.0]), ("a", "b"), "float64 are not codes of classes"),
        (np.array([0]), None, "int64 are not numbers"),
        (np.array([np.inf]), None, "the target of graph 0 is not finite"),
    ],
)
def test_bad_columns(y, classes, message):
    with pytest.raises(InputError, match=message):
        Labels("graph", y, classes).check("y")


@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), unique=True))
def test_matching_is_by_value(values, classes):
    column = Labels.of(values, "node").matched(classes)
    assert list(column.classes[: len(classes)]) == classes
    assert column.values.tolist() == values
    for value, code in zip(values, column.y.tolist(), strict=True):
        assert (code < len(classes)) == (value in classes)


def test_matching_compares_values_not_text():
    column = Labels.of([3, 1, 7], "graph").matched((1, 2, 3))
    assert (column.y.tolist(), column.classes) == ([2, 0, 3], (1, 2, 3, 7))
    assert Labels.of([True, False], "graph").matched((0, 1)).y.tolist() == [1, 0]
    assert Labels.of(["1"], "graph").matched((0, 1)).classes == (0, 1, "1")
    assert Labels.of(["1"], "graph").matched((0, 1)).values.tolist() == ["1"]
    with pytest.raises(InputError, match="numbers cannot be matched to classes"):
        Labels.of([0.5], "graph").matched((0, 1))


def test_unknown_entries_stay_unknown():
    column = Labels("node", np.array([1, -1, 0], np.int32), ("a", "b"), np.array([True, False, True]))
    column.check("y")
    assert column.matched(("b", "c")).y.tolist() == [0, -1, 2]
    assert column.take(np.array([1, 2])).known.tolist() == [False, True]
    joined = Labels.join([Labels.of(["c"], "node"), column])
    assert joined.y.tolist() == [0, 2, -1, 1]
    assert joined.classes == ("c", "a", "b")
    assert joined.known.tolist() == [True, True, False, True]
    with pytest.raises(InputError, match="has the code -1"):
        Labels("node", column.y, column.classes).check("y")


@given(VALUES, VALUES)
def test_joined_values_are_the_values(a, b):
    if type(a[0]) is type(b[0]):
        column = Labels.join([Labels.of(a, "graph"), Labels.of(b, "graph")])
        assert column.values.tolist() == a + b
        assert len(set(column.classes)) == len(column.classes)


@pytest.mark.parametrize(
    ("levels", "wanted", "expected"),
    [
        ({"y": "graph", "node_y": "node"}, ("graph",), "y"),
        ({"y": "graph", "node_y": "node"}, ("node",), "node_y"),
        ({"y": "node"}, ("node",), "y"),
        ({"y": "node"}, ("graph",), None),
        ({"y": "node", "z": "node"}, ("node", "z"), "z"),
        ({"z": "graph"}, ("node", "z"), None),
    ],
)
def test_default_columns(levels, wanted, expected):
    graphs = Graphs()
    graphs.labels = {name: Labels(level, np.zeros(1)) for name, level in levels.items()}
    assert graphs.column_name(*wanted) == expected
    assert graphs.column(*wanted) is graphs.labels.get(expected)
