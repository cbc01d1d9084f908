from pathlib import Path

from same.cli.render import datasets_text, scores_table, summaries_table, training_text
from same.graphs import planted, summarise
from same.probes import Score


def cells(table):
    """The rows of a table as text."""
    return [list(map(str, row)) for row in zip(*(column.cells for column in table.columns), strict=True)]


def test_scores_are_percentages_except_r2_and_errors():
    rows = [
        Score("esame", "test", "gc", "linear", "paper", "symmetric", "accuracy", 0.5),
        Score("raw", "test", "gc", "linear", "paper", "symmetric", "accuracy", 0.25),
        Score("esame", "test", "mass", "own", "paper", "symmetric", "r2", 0.1234),
    ]
    table = scores_table(rows, "title")
    assert [column.header for column in table.columns] == ["model", "probe", "gc acc", "mass R²"]
    assert cells(table) == [
        ["esame", "linear", "50.0", ""],
        ["raw", "linear", "25.0", ""],
        ["esame", "own", "", "0.123"],
    ]
    both = scores_table([*rows[:1], rows[0]._replace(protocol="released")], "title")
    assert [column.header for column in both.columns][2:] == ["gc acc (paper)", "gc acc (released)"]


def test_a_training_is_summarised_by_its_best_validation():
    result = {
        "best": {"epoch": 3, "step": 12, "tasks": {"gc": {"loss": 0.5, "score": 0.75}}},
        "untrained": {"gc": {"loss": 1.0, "score": 0.25}},
        "steps": 20,
        "seconds": 3.4,
        "cpu_seconds": 2.6,
    }
    done = "best validation at epoch 3 (step 12 of 20), 3 s, 3 s of CPU time"
    change = "gc: validation loss 1.0000 → 0.5000, score 0.2500 → 0.7500"
    assert training_text(Path("run"), result, False) == f"run: done, {done}\n{change}"
    assert training_text(Path("run"), result, True) == f"run: done (already finished), {done}\n{change}"
    for ended, text in {"patience": "by early stopping", "cap": "at the cap of 200 epochs", "seconds": "at "}.items():
        assert f"CPU time; ended {text}" in training_text(Path("run"), {**result, "ended": ended, "cap": 200}, False)


def test_datasets_are_listed_with_their_places():
    rows = [
        {"name": "A", "alias": None, "paper": True, "place": None},
        {"name": "B", "alias": "PROTEINS", "paper": True, "place": "/data/B"},
        {"name": "C", "alias": None, "paper": False, "place": None},
    ]
    lines = datasets_text(rows).splitlines()
    assert [" ".join(line.split()) for line in lines[:2]] == [
        "A not downloaded",
        "B (in the paper: PROTEINS) /data/B",
    ]
    assert lines[2].endswith("C")


def test_a_summary_has_one_column_per_dataset():
    summary = {**summarise(planted(30)), "tasks": ["gc", "nc"], "as_known": None}
    table = summaries_table([summary, {**summary, "name": "[other]", "as_known": False}])
    rows = {row[0]: row[1:] for row in cells(table)}
    assert [column.header for column in table.columns] == ["", "planted", r"\[other]"]
    assert rows["graphs"] == ["30", "30"]
    assert rows["as published"] == ["unknown dataset", "NO"]
    assert "alike: 10" in rows["graph classes"][0]
