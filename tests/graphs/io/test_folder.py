import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import random_store
from same.config import Config
from same.errors import InputError
from same.experiment import run
from same.graphs import GraphStore, Labels, open_store, save_store, write_store


def assert_same_store(a: GraphStore, b: GraphStore) -> None:
    for key in ("x", "node_ptr", "edges", "edge_ptr"):
        np.testing.assert_array_equal(getattr(a, key), getattr(b, key))
        assert getattr(a, key).dtype == getattr(b, key).dtype
    assert (a.name, a.notes, list(a.labels)) == (b.name, b.notes, list(b.labels))
    for name, column in a.labels.items():
        other = b.labels[name]
        assert (column.level, column.y.dtype) == (other.level, other.y.dtype)
        assert repr(column.classes) == repr(other.classes)  # 1, 1.0 and True are equal.
        np.testing.assert_array_equal(column.y, other.y)
        np.testing.assert_array_equal(column.known, other.known)


def test_save_and_open_round_trip(tmp_path):
    store = replace(random_store(1, [4, 1, 7]), notes=("a note",))
    save_store(store, tmp_path / "store")
    opened = open_store(tmp_path / "store")
    assert isinstance(opened.x.base, np.memmap)
    assert_same_store(store, opened)
    assert torch.equal(store.cut([2, 0]).x, opened.cut([2, 0]).x)
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_columns_of_all_kinds_and_float64_attributes(tmp_path):
    store = random_store(1, [2, 3])
    known = np.array([True, False, True, True, False])
    for name, column in {
        "int": Labels.of([-1, 1], "graph"),
        "bool": Labels.of([True, False], "graph"),
        "../text": Labels.of(["é", "b"], "graph"),
        "float": Labels("graph", np.array([1, 0], np.int32), (0.0, 1.0)),
        "numbers": Labels.of(np.array([[0.1, 0.2], [0.3, 0.4]]), "graph"),
        "half": Labels("node", np.where(known, 0, -1).astype(np.int32), ("a",), known),
    }.items():
        store = store.with_labels(name, column)
    store = replace(store, x=store.x.astype(np.float64) + 1e12)
    save_store(store, tmp_path / "store")
    assert_same_store(store, open_store(tmp_path / "store"))


def test_parts_are_written_as_one(tmp_path):
    whole = random_store(2, [4, 1, 7, 2, 5], density=0.5)
    write_store(tmp_path / "store", (whole[ids] for ids in ([0, 1], [2], [3, 4])))
    assert_same_store(whole, open_store(tmp_path / "store"))


@pytest.mark.parametrize("other", [{"columns": 4}, {"classes": 4}])
def test_parts_that_differ_leave_nothing(tmp_path, other):
    with pytest.raises(InputError, match="same arrays, columns and classes"):
        write_store(tmp_path / "store", [random_store(0, [3]), random_store(0, [3], **other)])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="exists already"):
        save_store(random_store(0, [3]), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def change_header(folder, **changes):
    header = json.loads((folder / "store.json").read_text())
    (folder / "store.json").write_text(json.dumps({**header, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 99},
        {"arrays": {"x": {"dtype": "|O", "shape": [1]}}},
        {"arrays": {"../x": {}}},
        {"labels": [{"name": "y", "level": "edge", "classes": [0, 1]}]},
        {"labels": [{"name": "y", "level": "node", "classes": [0, 1]}]},
        {"labels": [{"name": "y", "level": "graph", "classes": [None, 1]}]},
        {"labels": [{"name": "y", "level": "graph", "classes": None}]},
        {"labels": 3},
    ],
)
def test_forged_headers_are_refused(tmp_path, changes):
    save_store(random_store(0, [3, 4]), tmp_path / "store")
    change_header(tmp_path / "store", **changes)
    with pytest.raises(InputError, match="store"):
        open_store(tmp_path / "store")


def test_incomplete_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"store\.json: missing"):
        open_store(tmp_path)
    folder = tmp_path / "store"
    save_store(random_store(0, [3, 4]), folder)
    with (folder / "x.bin").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"x\.bin: has \d+ bytes"):
        open_store(folder)


def test_folders_of_version_0_1_are_refused_in_one_line(tmp_path):
    save_store(random_store(0, [3, 4]), tmp_path / "store")
    change_header(tmp_path / "store", format=1)
    with pytest.raises(InputError, match="written in format 1, this version reads 2; write the store again"):
        open_store(tmp_path / "store")


def _forge(folder, name, place, value):
    path = folder / f"{name}.bin"
    dtype = json.loads((folder / "store.json").read_text())["arrays"][name]["dtype"]
    array = np.fromfile(path, dtype)
    array[place] = value
    array.tofile(path)


@pytest.mark.parametrize("many", [0, 2**24])
@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("edges", 5, 10_000, "edges to nodes that do not exist"),
        ("edges", 4, -1, "edges to nodes that do not exist"),
        ("edges", slice(2, 4), (0, 1), "edges that are not in order"),
        ("labels1", 7, 99, "labels 'node_y' that do not exist"),
        ("labels0", 3, -2, "labels 'y' that do not exist"),
        ("x", 11, np.nan, "attributes that are not finite"),
        ("node_ptr", 2, -5, "node_ptr.bin: does not say where graphs begin"),
        ("edge_ptr", -1, 10**9, "edge_ptr.bin: does not say where graphs begin"),
    ],
)
def test_forged_arrays_are_refused(tmp_path, monkeypatch, many, name, place, value, message):
    """A small set is checked when it is opened, a large one when it is cut."""
    monkeypatch.setattr("same.graphs.io.folder._CHECKED_NUMBERS", many)
    store = random_store(0, [6] * 40, density=1.0)
    save_store(store, tmp_path / "set")
    assert open_store(tmp_path / "set").checked == bool(many)
    assert np.array_equal(open_store(tmp_path / "set").cut(np.arange(40)).edges, store.cut(np.arange(40)).edges)
    _forge(tmp_path / "set", name, place, value)
    with pytest.raises(InputError, match=message):
        open_store(tmp_path / "set").cut(np.arange(40))
    if many and ("labels" in message or "edges" in message):
        with pytest.raises(InputError, match=message):
            run(Config(dataset=str(tmp_path / "set"), width=8), tmp_path / "run")


def test_arrays_of_inconsistent_shapes_are_refused(tmp_path):
    save_store(random_store(0, [6] * 40), tmp_path / "set")
    header = json.loads((tmp_path / "set" / "store.json").read_text())
    for change in ({"labels1": {"dtype": "<i4", "shape": [120, 2]}}, {"x": {"dtype": "<f4", "shape": [720]}}):
        forged = {**header, "arrays": {**header["arrays"], **change}}
        (tmp_path / "set" / "store.json").write_text(json.dumps(forged))
        with pytest.raises(InputError):
            open_store(tmp_path / "set")
