"""The committed results give the committed pages and tables."""

import csv
import gzip
import importlib.util
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from same.config import make_config
from same.study.plan import make_plan
from same.study.results import Source, Study
from same.study.run import todo

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproduction"


@pytest.fixture(scope="module")
def reproduction():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("reproduction", ROOT / "benchmarks/reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def study():
    return Study.open(RESULTS / "paper")


def read_overview():
    with (RESULTS / "overview-0.1.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_pages_equal_what_is_generated(reproduction, tmp_path, monkeypatch):
    copies = [tmp_path / page.name for page in reproduction.PAGES]
    for page, copy in zip(reproduction.PAGES, copies, strict=True):
        # Without the tables: all of them are written anew.
        text = re.sub(r"(<!-- begin .+? -->\n).*?(<!-- end -->)", r"\1\2", page.read_text("utf-8"), flags=re.DOTALL)
        copy.write_text(text, encoding="utf-8")
    monkeypatch.setattr(reproduction, "PAGES", copies)
    reproduction.main()
    kept = [ROOT / "README.md", ROOT / "docs/reproduction.md", ROOT / "docs/reproduction-tables.md"]
    for page, copy in zip(kept, copies, strict=True):
        assert copy.read_text("utf-8") == page.read_text("utf-8")
    used = {name for page in kept for name in re.findall(r"<!-- begin (.+?) -->", page.read_text("utf-8"))}
    assert used == set(reproduction.blocks())


def test_an_unknown_block_is_an_error(reproduction, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin verdicts -->\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(reproduction, "PAGES", [page])
    with pytest.raises(SystemExit, match="unknown block 'verdicts'"):
        reproduction.main()


def test_the_study_is_three_files_with_nothing_left_to_do(study, tmp_path):
    kept = RESULTS / "paper"
    assert {path.name for path in kept.iterdir()} == {"study.json", "runs.csv", "scores.csv.gz"}
    assert len(study.runs) == len(study.configs) == 1320
    assert todo(make_plan(kept), kept) == []
    # Keys are those of the configurations, and rows are sorted.
    for run in study.runs.values():
        identity = {"dataset": run.dataset, "method": run.method, "tasks": run.tasks, "split": run.split}
        assert make_config({**run.settings, **identity}).key == run.run
    study.results.write(tmp_path)
    assert (tmp_path / "runs.csv").read_bytes() == (kept / "runs.csv").read_bytes()
    written, committed = (gzip.decompress((folder / "scores.csv.gz").read_bytes()) for folder in (tmp_path, kept))
    assert written == committed


def test_every_published_number_has_ours_beside_it(reproduction, study):
    rows = list(reproduction.cells(reproduction.read_study(RESULTS / "paper")))
    assert len(rows) == 240
    assert all(len(row["ours"]) == 10 for row in rows)
    for row in rows:
        with_links = "lp" in (row["trained_on"] if row["measured"] == "delta_m" else row["measured"])
        assert bool(row["released"]) == with_links
    # Δm is computed from the scores of the study.
    row = next(r for r in rows if (r["measured"], r["model"], r["dataset"]) == ("delta_m", "eSAME", "COX2"))
    tasks = row["trained_on"].split("+")
    gains = []
    for task in tasks:
        ours = study.scores("COX2", Source("esame", tuple(tasks), "linear"), task)
        base = study.scores("COX2", Source("classical", (task,), "own"), task)
        gains.append({k: 100 * (ours[k] - base[k]) / base[k] for k in set(ours) & set(base)})
    assert row["ours"] == pytest.approx({k: statistics.mean(gain[k] for gain in gains) for k in range(10)})
    # The text of a cell: ours, then the published number.
    tables = reproduction.blocks()["published"]
    values = study.scores("ENZYMES", Source("isame", ("nc",), "linear"), "nc").values()
    ours = f"{statistics.mean(values):.1f} ± {statistics.pstdev(values):.1f}"
    assert f"| NC | NC | iSAME | {ours} (87.3 ± 0.8) |" in tables


def test_budgets_are_those_of_the_runs(reproduction, study):
    lines = reproduction.blocks()["budgets"].splitlines()
    rows = {tuple(cells[:2]): cells for line in lines[2:] for cells in [line.strip("| ").split(" | ")]}
    assert len(rows) == 10
    runs = [run for run in study.runs.values() if run.method == "esame" and run.settings["weighting"] == "fixed"]
    runs = [run for run in runs if len(run.tasks) == 3]
    capped = sum(run.epochs == run.cap for run in runs)
    _, _, cap, at_cap, _, updates, _, _ = rows["eSAME", "3"]
    assert at_cap == f"{capped} of {len(runs)}"
    assert {run.cap for run in runs} == {int(cap)}
    steps = [run.updates for run in runs if run.dataset == "PROTEINS"]
    assert updates.split(" / ")[1] == str(round(statistics.median(steps)))


def test_the_overview_has_every_split_once():
    rows = read_overview()
    assert {row["version"] for row in rows} == {"0.1.0"}
    assert {row["split"] for row in rows} == set("45678")
    keys = Counter((row["dataset"], row["model"], row["task"], row["split"]) for row in rows)
    assert len(keys) == 4 * 4 * 3 * 5
    assert set(keys.values()) == {1}
    for row in rows:
        assert row["probe"] == ("none" if row["model"] == "majority" else "linear")
        assert row["metric"] == ("roc_auc" if row["task"] == "lp" else "accuracy")


def test_the_overview_is_mean_and_spread_over_splits(reproduction):
    rows = read_overview()
    scores = [
        100 * float(row["score"])
        for row in rows
        if (row["dataset"], row["model"], row["task"]) == ("PROTEINS", "sage-walk", "gc")
    ]
    table = reproduction.overview(RESULTS / "overview-0.1.csv").splitlines()
    line = next(line for line in table if line.startswith("| PROTEINS GC |"))
    expected = f"{statistics.mean(scores):.1f} ± {statistics.pstdev(scores):.1f}"
    assert line.strip("| ").split(" | ")[-1] == expected
    assert all(line.count("|") == 6 for line in table)
