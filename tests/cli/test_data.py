import json

from commands import same
from helpers import write_tu
from same.graphs import load


def test_check_prints_a_table_or_json(tmp_path):
    folder = write_tu(tmp_path / "TOY", edge_labels="1\n" * 10)
    code, out, _ = same("data", "check", folder)
    assert code == 0
    assert "edge labels" in " ".join(out.replace("│", " ").split())
    code, out, err = same("data", "check", folder, "planted", "--json")
    toy, planted = json.loads(out)
    assert (code, err) == (0, "")
    assert toy["graph_classes"] == {"-1": 1, "1": 1}
    assert toy["node_classes"] == {"6": 3, "8": 3, "35": 1}
    assert toy["isolated_nodes"] == 1
    assert toy["tasks"] == ["gc", "nc", "lp"]
    assert planted["graphs"] == 300


def test_check_of_the_four_real_datasets(real_sets):
    code, out, _ = same("data", "check", "--json", SAME_DATA=str(real_sets))
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert {name: (r["graphs"], r["nodes"], 2 * r["edges"], r["attributes"]) for name, r in rows.items()} == {
        "ENZYMES": (600, 19_580, 74_564, 18),
        "PROTEINS_full": (1_113, 43_471, 162_088, 29),
        "DHFR": (756, 32_075, 67_352, 3),
        "COX2": (467, 19_252, 40_578, 3),
    }
    assert rows["ENZYMES"]["duplicate_columns"] == [[8, 17]]
    assert rows["PROTEINS_full"]["duplicate_columns"] == [[11, 20]]
    assert [rows[n]["isolated_nodes"] for n in ("ENZYMES", "PROTEINS_full")] == [106, 5]
    assert all(row["as_known"] for row in rows.values())


def test_check_without_any_dataset():
    code, _, err = same("data", "check")
    assert code == 2
    assert "none of the paper's datasets is available" in err


def test_list_and_fetch(tmp_path):
    write_tu(tmp_path / "MUTAG", name="MUTAG")
    rows = {row["name"]: row for row in json.loads(same("data", "list", "--data", tmp_path, "--json")[1])}
    assert rows["MUTAG"]["place"] == str(tmp_path / "MUTAG")
    assert rows["PROTEINS_full"]["alias"] == "PROTEINS"
    assert rows["ENZYMES"]["place"] is None
    lines = same("data", "list", "--data", tmp_path)[1].splitlines()
    assert lines[0].split() == ["planted", "built", "in"]
    assert any(line.split() == ["MUTAG", str(tmp_path / "MUTAG")] for line in lines)
    assert same("data", "fetch", "MUTAG", "--data", tmp_path)[:2] == (0, f"MUTAG: {tmp_path / 'MUTAG'}\n")
    places = json.loads(same("data", "fetch", "MUTAG", "planted", "--data", tmp_path, "--json")[1])
    assert places == [
        {"name": "MUTAG", "place": str(tmp_path / "MUTAG")},
        {"name": "planted", "place": "built in"},
    ]


def test_a_set_is_made_on_disk(tmp_path):
    code, out, err = same("data", "make", "--graphs", 30, "--out", tmp_path / "made")
    assert code == 0, err
    assert out.startswith(f"{tmp_path / 'made'}: GraphStore('planted', graphs=30")
    made = load(tmp_path / "made")
    assert made.num_graphs == 30
    code, out, _ = same("data", "make", "--graphs", 30, "--out", tmp_path / "again", "--json")
    sizes = {"graphs": 30, "nodes": made.num_nodes, "edges": made.num_edges}
    assert json.loads(out) == {"place": str(tmp_path / "again"), **sizes}
    assert same("data", "make", "--graphs", 30, "--out", tmp_path / "made")[0] == 2
