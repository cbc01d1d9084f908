import errno
import logging
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from helpers import random_store, write_tu, zip_tu
from same import files
from same.errors import InputError
from same.graphs import as_store, load, save_store, to_pyg
from same.graphs.io import download, sources


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SAME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


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


def test_a_set_is_parsed_once_until_it_changes(tmp_path, monkeypatch):
    folder = write_tu(tmp_path / "TOY")
    reads = []
    read_tu = sources.read_tu
    monkeypatch.setattr(sources, "read_tu", lambda path: reads.append(path) or read_tu(path))
    first, second = load(folder), load(folder)
    assert len(reads) == 1
    assert isinstance(second.x.base, np.memmap)
    assert np.array_equal(first.x, second.x)
    write_tu(folder, graph_labels="5\n7\n")
    os.utime(folder / "TOY_graph_labels.txt", ns=(1, 1))
    assert load(folder).graph_classes == (5, 7)
    assert len(reads) == 2


def test_a_damaged_cache_is_read_again_with_a_warning(tmp_path, empty_cache, caplog):
    folder = write_tu(tmp_path / "TOY")
    load(folder)
    (damaged,) = empty_cache.rglob("x.bin")
    damaged.write_bytes(b"")
    with caplog.at_level(logging.WARNING, "same"):
        assert load(folder).x.shape == (7, 2)
    assert "reading the source again" in caplog.text


def test_the_papers_proteins_is_proteins_full(tmp_path, monkeypatch):
    monkeypatch.setitem(download.KNOWN, "PROTEINS_full", download.Contents.of(load(write_tu(tmp_path / "TOY"))))
    write_tu(tmp_path / "data" / "PROTEINS_full", name="PROTEINS_full")
    assert load("PROTEINS", tmp_path / "data").name == "PROTEINS_full"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    folder = write_tu(tmp_path / "TOY")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("SAME_CACHE", str(blocked / "cache"))
    with pytest.raises(InputError, match=r"cannot be written .*SAME_CACHE"):
        load(folder)
    monkeypatch.setenv("SAME_CACHE", str(tmp_path / "cache"))

    def denied(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(files.Path, "mkdir", denied)
    with pytest.raises(InputError, match=r"Permission denied.*SAME_CACHE"):
        load(folder)


def test_a_full_disk_leaves_nothing(tmp_path, empty_cache, monkeypatch):
    folder = write_tu(tmp_path / "TOY")
    written = []

    class Full(np.ndarray):
        def tofile(self, file):
            written.append(file.name)
            file.write(b"some")
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(
        "same.graphs.io.folder.np.ascontiguousarray", lambda a, dtype=None: np.array(a, dtype).view(Full)
    )
    with pytest.raises(InputError, match=r"the disk is full; .*SAME_CACHE"):
        load(folder)
    assert written
    assert files_in(empty_cache) == set()


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
