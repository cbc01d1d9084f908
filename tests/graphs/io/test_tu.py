import zipfile

import numpy as np
import pytest

from helpers import TOY, write_tu, zip_tu
from same.errors import InputError
from same.graphs import read_tu


def test_the_toy_set(tmp_path):
    store = read_tu(write_tu(tmp_path))
    assert repr(store) == "GraphStore('TOY', graphs=2, nodes=7, edges=5, attributes=2)"
    assert store.node_ptr.tolist() == [0, 4, 7]
    assert store.edges.T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3], [0, 1]]
    assert store.edge_ptr.tolist() == [0, 4, 5]
    assert store.graph_y.tolist() == [0, 1]
    assert store.graph_classes == (-1, 1)
    assert store.node_y.tolist() == [0, 0, 1, 2, 0, 1, 1]
    assert store.node_classes == (6, 8, 35)
    assert store.x[2].tolist() == [2.5, 4.25]
    assert store.notes == ()


def test_zip_raw_folder_and_commas_without_spaces_give_the_same_set(tmp_path):
    plain = read_tu(write_tu(tmp_path / "plain"))
    packed = read_tu(zip_tu(tmp_path / "plain", tmp_path / "TOY.zip"))
    write_tu(tmp_path / "other" / "raw", A=TOY["A"].replace(", ", ","), graph_labels="-1\r\n1\r\n\r\n")
    raw = read_tu(tmp_path / "other")
    for other in (packed, raw):
        assert np.array_equal(plain.x, other.x)
        assert np.array_equal(plain.edges, other.edges)
        assert np.array_equal(plain.node_y, other.node_y)


def test_variants_of_the_collection(tmp_path):
    bare = read_tu(write_tu(tmp_path / "a", node_attributes=None, node_labels=None, edge_labels="1\n" * 10))
    assert bare.x.shape == (7, 0)
    assert bare.node_y is None
    assert bare.notes == ("edge labels were not used",)

    targets = read_tu(write_tu(tmp_path / "b", graph_labels=None, graph_attributes="0.5, 1\n-1.5, 2\n"))
    assert targets.graph_y.tolist() == [[0.5, 1.0], [-1.5, 2.0]]
    assert targets.graph_classes is None
    assert read_tu(write_tu(tmp_path / "c", graph_labels="0.5\n1.5\n")).graph_y.tolist() == [0.5, 1.5]
    assert read_tu(write_tu(tmp_path / "d", graph_labels="1.0\n3.0\n")).graph_classes == (1, 3)

    unlabelled = read_tu(write_tu(tmp_path / "e", graph_labels=None))
    assert unlabelled.graph_y is None

    pairs = read_tu(write_tu(tmp_path / "f", node_labels="0,1\n0,2\n0,1\n1,1\n0,1\n0,1\n0,1\n"))
    assert pairs.node_classes == ("0,1", "0,2", "1,1")

    messy = read_tu(write_tu(tmp_path / "g", A=TOY["A"] + "1, 1\n1, 2\n"))
    assert messy.num_edges == 5
    assert messy.notes == ("1 self-loops were dropped", "1 repeated edges were dropped")


def test_unsorted_graph_ids_are_sorted_with_a_note(tmp_path):
    # The toy set with the first node of each graph moved to the end of the file.
    order = [1, 2, 3, 5, 6, 0, 4]
    place = {old + 1: new + 1 for new, old in enumerate(order)}

    def reordered(part):
        lines = TOY[part].splitlines()
        return "".join(lines[i] + "\n" for i in order)

    edges = "".join("{}, {}\n".format(*(place[int(v)] for v in line.split(","))) for line in TOY["A"].splitlines())
    parts = {part: reordered(part) for part in ("graph_indicator", "node_labels", "node_attributes")}
    store = read_tu(write_tu(tmp_path, A=edges, **parts))
    assert store.notes == ("graph ids were not sorted; nodes were reordered by graph",)
    assert store.x[:, 0].tolist() == [1.5, 2.5, 3.5, 0.5, 5.5, 6.5, 4.5]
    assert store.edges.T.tolist() == [[0, 1], [0, 3], [1, 2], [1, 3], [0, 2]]


BAD = {
    "missing file": ({"A": None}, "no TU set"),
    "missing indicator": ({"graph_indicator": None}, "TOY_graph_indicator.txt is missing"),
    "empty file": ({"graph_labels": ""}, "TOY_graph_labels.txt: is empty"),
    "blank file": ({"A": " \n\n"}, "TOY_A.txt: is empty"),
    "too few labels": ({"node_labels": "6\n"}, "TOY_node_labels.txt: has 1 lines, but there are 7 nodes"),
    "too many attributes": ({"node_attributes": "1\n" * 8}, "has 8 lines, but there are 7 nodes"),
    "too few graphs": ({"graph_labels": "1\n"}, "graph id 2, but only 1 graphs have a label"),
    "not a number": (
        {"node_attributes": "1, 2\n1, x\n" + "1, 2\n" * 5},
        "node_attributes.txt, line 2: 'x' is not a number",
    ),
    "not a number after blanks": ({"A": "1, 2\n\n\n2, one\n"}, "TOY_A.txt, line 4: 'one' is not a number"),
    "underscores": ({"node_labels": "1_0\n" * 7}, "'1_0' is not a number"),
    "empty field": ({"node_attributes": "1, 2\n1,\n" + "1, 2\n" * 5}, "line 2: '' is not a number"),
    "ragged": ({"node_attributes": "1, 2\n1\n" + "1, 2\n" * 5}, "line 2: 1 fields, the lines before have 2"),
    "nan": ({"node_attributes": "1\nnan\n" + "1\n" * 5}, "node_attributes.txt, line 2: nan is not a finite number"),
    "infinite": ({"node_attributes": "1\n1\n-inf\n" + "1\n" * 4}, "line 3: -inf is not a finite number"),
    "beyond float32": ({"node_attributes": "1e300\n" * 7}, "line 1: 1e+300 is not a finite number"),
    "half an edge": ({"A": "1, 2\n2.5, 1\n"}, "TOY_A.txt, line 2: 2.5 is not a whole number"),
    "huge id": ({"A": "1, 99999999999999999999\n"}, "is not a whole number"),
    "three ends": ({"A": "1, 2, 3\n"}, "TOY_A.txt, line 1: 3 fields, expected 2"),
    "unknown node": ({"A": "1, 2\n\n8, 1\n"}, "TOY_A.txt, line 3: edge 8, 1: there is no node 8; nodes are 1..7"),
    "node zero": ({"A": "0, 1\n"}, "line 1: edge 0, 1: there is no node 0"),
    "between graphs": ({"A": "1, 2\n4, 5\n"}, "TOY_A.txt, line 2: edge 4, 5 joins graphs 1 and 2"),
    "graph without nodes": (
        {"graph_indicator": "1\n1\n1\n1\n3\n3\n3\n", "graph_labels": "1\n1\n1\n"},
        "graph 2 has no",
    ),
    "graph zero": ({"graph_indicator": "0\n" * 7}, "ids count from 1"),
    "more graphs than nodes": ({"graph_labels": "1\n" * 8}, "8 graphs, but graph 3 has no nodes"),
    "huge graph id": ({"graph_labels": None, "graph_indicator": "1\n" * 6 + "999999999999\n"}, "graph 2 has no nodes"),
    "bytes": ({"node_labels": "\ufffd\x00\n" * 7}, "is not a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gives_one_clear_line(tmp_path, case):
    changes, message = BAD[case]
    with pytest.raises(InputError) as caught:
        read_tu(write_tu(tmp_path, **changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_paths(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_tu(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(InputError, match="no TU set"):
        read_tu(tmp_path)
    write_tu(tmp_path / "two")
    write_tu(tmp_path / "two", name="OTHER")
    with pytest.raises(InputError, match="holds 2 TU sets"):
        read_tu(tmp_path / "two")


def test_bad_archives(tmp_path):
    good = zip_tu(write_tu(tmp_path / "toy", node_attributes="0.123\n" * 7), tmp_path / "good.zip")
    blob = good.read_bytes()
    (tmp_path / "cut.zip").write_bytes(blob[: len(blob) // 2])
    with pytest.raises(InputError, match=r"cut\.zip: not a complete zip file"):
        read_tu(tmp_path / "cut.zip")
    (tmp_path / "empty.zip").write_bytes(b"")
    with pytest.raises(InputError, match="not a complete zip file"):
        read_tu(tmp_path / "empty.zip")
    with zipfile.ZipFile(good) as archive:
        start = archive.getinfo("TOY//TOY_A.txt").header_offset + 30 + len("TOY//TOY_A.txt")
    (tmp_path / "flipped.zip").write_bytes(blob[:start] + bytes([blob[start] ^ 255]) + blob[start + 1 :])
    with pytest.raises(InputError, match=r"TOY_A\.txt' cannot be read"):
        read_tu(tmp_path / "flipped.zip")


@pytest.mark.parametrize(
    "member", ["../evil.txt", "TOY/../../evil.txt", "/etc/evil.txt", "..\\evil.txt", "C:/evil.txt"]
)
def test_archives_cannot_reach_outside(tmp_path, member):
    folder = tmp_path / "here"
    path = zip_tu(write_tu(folder / "toy"), folder / "TOY.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, "gotcha")
    with pytest.raises(InputError, match="points outside the archive"):
        read_tu(path)
    assert not list(tmp_path.glob("evil*"))


def test_metadata_files_of_macos_are_skipped(tmp_path):
    path = zip_tu(write_tu(tmp_path / "toy"), tmp_path / "TOY.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/TOY/._TOY_A.txt", b"\x00\x05")
    assert read_tu(path).num_graphs == 2
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/TOY_A.txt", "1, 2\n")
    with pytest.raises(InputError, match=r"contains 'TOY_A\.txt' twice"):
        read_tu(path)


def test_archives_cannot_blow_up(tmp_path):
    path = zip_tu(write_tu(tmp_path / "toy"), tmp_path / "TOY.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("TOY//TOY_edge_labels.txt", b"0\n" * 2**22)
    with pytest.raises(InputError, match="unpacks to 8388608 bytes; refused"):
        read_tu(path)


def test_attributes_keep_all_digits(tmp_path):
    times = [1_700_000_000 + i for i in range(7)]
    store = read_tu(write_tu(tmp_path / "whole", node_attributes="".join(f"{t}\n" for t in times)))
    assert store.x[:, 0].tolist() == times
    decimals = [i + 0.1234567890123 for i in range(7)]
    store = read_tu(write_tu(tmp_path / "decimal", node_attributes="".join(f"{d}\n" for d in decimals)))
    assert store.x[:, 0].tolist() == decimals
    small = read_tu(write_tu(tmp_path / "small", node_attributes="".join(f"{i}\n" for i in range(7))))
    assert small.x.dtype == np.float32
