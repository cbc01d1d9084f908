import errno
import http.server
import logging
import os
import ssl
import threading
import zipfile
from pathlib import Path
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
import trustme

from helpers import random_store, write_tu, zip_tu
from same import files
from same.errors import InputError
from same.graphs import as_store, load, save_store, to_pyg
from same.graphs.io import sources


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources.time, "sleep", lambda seconds: None)
    return tmp_path / "cache"


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_set_under_a_known_name_must_have_the_known_contents(tmp_path):
    write_tu(tmp_path / "data" / "DHFR", name="DHFR")
    with pytest.raises(InputError, match=r"DHFR: not the set of that name: graphs, .* are \(2, 7, 5, 2"):
        load("DHFR", tmp_path / "data")


@pytest.mark.parametrize("name", ["../TOY", "..", ".", "", "a b", "TOY\n"])
def test_names_do_not_leave_the_folder(tmp_path, name):
    (tmp_path / "data").mkdir()
    write_tu(tmp_path / "TOY")
    with pytest.raises(InputError):
        sources.find(name, tmp_path / "data")


def test_a_data_folder_that_does_not_exist(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"--data: .*nowhere is not a folder"):
        load("TOY", tmp_path / "nowhere")
    monkeypatch.setenv("SAME_DATA", "/nowhere")
    with pytest.raises(InputError, match="SAME_DATA: /nowhere is not a folder"):
        load("TOY")


class Handler(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, list]]
    asked: ClassVar[list[str]]

    def do_GET(self):
        Handler.asked.append(self.path)
        queue = Handler.answers.get(self.path, [404])
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        if isinstance(answer, int):
            self.send_error(answer)
        elif isinstance(answer, str):
            self.send_response(302)
            self.send_header("Location", answer)
            self.end_headers()
        else:
            body, claimed = answer
            self.send_response(200)
            self.send_header("Content-Length", str(claimed))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def collection(monkeypatch, tmp_path):
    """A local TLS server in place of the collection, with a trusted certificate."""
    authority = trustme.CA()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setattr(sources, "COLLECTION", f"https://localhost:{server.server_port}")
    Handler.answers, Handler.asked = {}, []
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def toy_zip(tmp_path):
    body = zip_tu(write_tu(tmp_path / "toy"), tmp_path / "served.zip").read_bytes()
    return body, len(body)


def test_a_set_is_downloaded_once_into_the_cache(collection, toy_zip, empty_cache):
    collection.answers["/TOY.zip"] = [toy_zip]
    assert load("TOY").num_graphs == 2
    assert load("TOY").num_graphs == 2
    assert collection.asked == ["/TOY.zip"]
    assert (empty_cache / "TOY.zip").read_bytes() == toy_zip[0]


def test_a_failed_download_is_tried_again(collection, toy_zip):
    body, length = toy_zip
    collection.answers["/TOY.zip"] = [503, (body[:100], length), toy_zip]
    assert sources.fetch("TOY").name == "TOY.zip"
    assert len(collection.asked) == 3


def test_after_three_failures_the_message_says_what_to_do(collection, empty_cache):
    collection.answers["/TOY.zip"] = [503]
    with pytest.raises(InputError, match=r"server answered 503\); put TOY\.zip into .*cache, or .*--data or SAME_DATA"):
        load("TOY")
    assert len(collection.asked) == 3
    assert files_in(empty_cache) == set()


def test_unknown_names_get_a_suggestion(collection):
    with pytest.raises(InputError, match="ENZYMS: the TU collection has no set of that name; did you mean ENZYMES"):
        load("ENZYMS")


def test_without_a_network_the_message_says_which_file_to_put_where(monkeypatch, empty_cache):
    monkeypatch.setattr(sources, "COLLECTION", "https://localhost:1")
    with pytest.raises(InputError, match=r"ENZYMES: not on this machine, and .*put ENZYMES\.zip into .*cache"):
        load("ENZYMES")
    assert files_in(empty_cache) == set()


def test_a_server_without_a_trusted_certificate_is_refused(collection, toy_zip, monkeypatch):
    collection.answers["/TOY.zip"] = [toy_zip]
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(InputError, match="certificate verify failed"):
        load("TOY")
    assert collection.asked == []


def test_a_redirect_to_plain_http_is_refused(collection, toy_zip, empty_cache):
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=plain.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    collection.answers["/TOY.zip"] = [f"http://localhost:{plain.server_port}/plain.zip"]
    collection.answers["/plain.zip"] = [toy_zip]
    try:
        with pytest.raises(InputError, match="without TLS"):
            load("TOY")
        assert files_in(empty_cache) == set()
    finally:
        plain.shutdown()
        thread.join()
        plain.server_close()


@pytest.mark.parametrize("kind", ["garbage", "another set"])
def test_another_file_never_reaches_the_cache(collection, toy_zip, empty_cache, kind):
    collection.answers["/COX2.zip"] = [
        (b"<html>welcome to the hotel wifi</html>", 38) if kind == "garbage" else toy_zip
    ]
    with pytest.raises(InputError, match=r"not a complete zip file|not the set of that name"):
        load("COX2")
    assert files_in(empty_cache) == set()


@pytest.mark.parametrize("name", sources.KNOWN)
def test_real_sets_have_the_recorded_contents(real_sets, name):
    store = load(name, real_sets)
    assert sources.contents(store) == sources.KNOWN[name]
    with zipfile.ZipFile(real_sets / f"{name}.zip") as archive:
        lines = archive.read(f"{name}//{name}_A.txt").count(b"\n")
    assert lines == 2 * store.num_edges
    assert store.notes == ()


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
    monkeypatch.setitem(sources.KNOWN, "PROTEINS_full", sources.contents(load(write_tu(tmp_path / "TOY"))))
    write_tu(tmp_path / "data" / "PROTEINS_full", name="PROTEINS_full")
    assert load("PROTEINS", tmp_path / "data").name == "PROTEINS_full"


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
