import networkx as nx
import numpy as np
import pytest

from helpers import random_store, write_tu, zip_tu
from same.errors import InputError
from same.graphs import as_store, load, save_store, to_pyg
from same.graphs.io import download


@pytest.mark.parametrize("layout", ["TOY.zip", "TOY/TOY_A.txt", "TOY/raw/TOY_A.txt"])
@pytest.mark.parametrize("given_by", ["argument", "environment"])
def test_local_sets_by_name(tmp_path, monkeypatch, layout, given_by):
    data = tmp_path / "data"
    if layout == "TOY.zip":
        data.mkdir()
        zip_tu(write_tu(tmp_path / "toy"), data / layout)
    else:
        write_tu((data / layout).parent)
    if given_by == "environment":
        monkeypatch.setenv("SAME_DATA", str(data))
    store = load("TOY", data if given_by == "argument" else None)
    assert store.num_graphs == 2


def test_paths_and_saved_stores(tmp_path, monkeypatch):
    folder = write_tu(tmp_path / "TOY")
    monkeypatch.chdir(tmp_path)
    assert load(folder).num_nodes == load("TOY").num_nodes == load(zip_tu(folder, tmp_path / "x.zip")).num_nodes == 7
    save_store(load(folder), tmp_path / "saved")
    assert load(tmp_path / "saved").num_nodes == 7
    with pytest.raises(InputError, match="no such folder or file"):
        load("./nothing.zip")


def test_the_papers_proteins_is_proteins_full(tmp_path, monkeypatch):
    monkeypatch.setitem(download.KNOWN, "PROTEINS_full", download.Contents.of(load(write_tu(tmp_path / "TOY"))))
    write_tu(tmp_path / "data" / "PROTEINS_full", name="PROTEINS_full")
    assert load("PROTEINS", tmp_path / "data").name == "PROTEINS_full"


def test_all_forms_give_the_same_store(tmp_path):
    store = random_store(0, [5, 7, 9])
    save_store(store, tmp_path / "set")
    for form in (store, [store[i] for i in range(3)], to_pyg(store), str(tmp_path / "set"), tmp_path / "set"):
        assert as_store(form).node_ptr.tolist() == store.node_ptr.tolist()
        np.testing.assert_array_equal(as_store(form).x, store.x)


@pytest.mark.parametrize("graphs", [3, [], [1, 2], np.ones((3, 4)), None, [nx.path_graph(2), 1]], ids=range(6))
def test_other_objects_are_refused(graphs):
    with pytest.raises(InputError, match="give PyG data, networkx graphs, a GraphStore"):
        as_store(graphs)
