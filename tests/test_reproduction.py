"""The committed results give the committed page, tables and figures."""

import importlib.util
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from same.study.report import write_report
from same.study.results import Study

ROOT = Path(__file__).parents[1]
STUDIES = sorted(path.parent.name for path in (ROOT / "reproduction").glob("*/study.json"))


@pytest.fixture
def reproduction(tmp_path, monkeypatch):
    """The script, at work on a copy."""
    spec = importlib.util.spec_from_file_location("reproduction", ROOT / "benchmarks/reproduction.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec.loader.exec_module(module)
    ignored = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(ROOT / "reproduction", tmp_path / "reproduction", ignore=ignored)
    pages = [tmp_path / page.relative_to(ROOT) for page in module.PAGES]
    for made, kept in zip(pages, module.PAGES, strict=True):
        made.parent.mkdir(exist_ok=True)
        shutil.copy(kept, made)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "reproduction")
    monkeypatch.setattr(module, "PAGES", pages)
    monkeypatch.setattr(module, "ASSETS", tmp_path / "assets")
    return module


def test_the_page_and_the_tables_are_those_of_the_results(reproduction, tmp_path):
    assert "paper" in STUDIES
    for name in STUDIES:
        write_report(Study.open(tmp_path / "reproduction" / name))
    reproduction.report()
    for name in STUDIES:
        for path in sorted((ROOT / "reproduction" / name).glob("tables/*")):
            assert (tmp_path / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), path
    for path in (ROOT / "docs/assets/reproduction").iterdir():
        assert (tmp_path / "assets" / path.name).read_bytes() == path.read_bytes(), path
    for page in ("docs/reproduction.md", "docs/beyond.md", "README.md", "reproduction/cells.csv"):
        assert (tmp_path / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8"), page


def test_every_published_number_has_a_row(reproduction):
    rows = list(reproduction.cells(Study.open(ROOT / "reproduction/paper")))
    assert len(rows) == 240
    assert all(row["splits"] for row in rows)
    # Δm is what the scores say it is.
    study = Study.open(ROOT / "reproduction/paper")
    row = next(r for r in rows if (r["measured"], r["model"], r["dataset"]) == ("delta_m", "eSAME", "COX2"))
    tasks = row["trained_on"].split("+")
    gains = []
    for task in tasks:
        ours = study.scores("COX2", "esame", tasks, task, "linear")
        base = study.scores("COX2", "classical", [task], task, "own")
        gains.append({k: 100 * (ours[k] - base[k]) / base[k] for k in set(ours) & set(base)})
    splits = set.intersection(*map(set, gains))
    expected = sum(sum(gain[k] for gain in gains) / len(tasks) for k in splits) / len(splits)
    assert float(row["ours"]) == pytest.approx(expected, abs=0.006)


def test_a_row_is_of_the_splits_that_all_its_columns_have(reproduction):
    study = Study.open(ROOT / "reproduction/paper")
    some = {
        key: run
        for key, run in study.runs.items()
        if run.config.dataset != "COX2" and (run.config.method, run.config.split) != ("esame", 0)
    }
    rows = reproduction.same_probe(replace(study, runs=some)).splitlines()
    whole = len(study.scores("DHFR", "esame", ("lp",), "lp", "linear"))
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    counts = {row[0]: row[-1] for row in cells}
    assert counts["DHFR"] == counts["DHFR GC"] == str(whole - 1)
    assert counts["COX2"] == counts["COX2 LP"] == "0"


def test_probes_that_were_told_later_are_of_the_same_runs(reproduction):
    study = Study.open(ROOT / "reproduction/paper")
    rows = reproduction.read_rows(ROOT / "reproduction/probes.csv")
    assert {row["dataset"] for row in rows} == set(study.plan.datasets)
    for row in rows:
        tasks, split = row["trained on"].split("+"), int(row["split"])
        ours = study.scores(row["dataset"], row["method"], tasks, row["measured"], "linear", adapts=row["adapts"])
        base = study.scores(row["dataset"], "classical", [row["measured"]], row["measured"], "own")
        assert float(row["standardised"]) == pytest.approx(ours[split], abs=1e-4)
        assert float(row["single-task Cl"]) == pytest.approx(base[split], abs=1e-4)


def test_counts_are_of_the_cells_that_were_run(reproduction):
    study = Study.open(ROOT / "reproduction/paper")
    found = dict(reproduction.facts(study))
    gaps = []
    for dataset in study.plan.datasets:
        for task in ("gc", "nc", "lp"):
            for tasks in (("gc", "nc"), ("gc", "lp"), ("nc", "lp")):
                for method in ("isame", "esame"):
                    if task in tasks:
                        ours = study.scores(dataset, method, tasks, task, "linear")
                        tuned = study.scores(dataset, "finetuned", tasks, task, "own")
                        gaps.append((task, round(sum(ours[k] - tuned[k] for k in set(ours) & set(tuned)), 9)))
    expected = ", ".join(
        f"{task.upper()} {sum(t == task and gap < 0 for t, gap in gaps)} of 16" for task in ("gc", "nc", "lp")
    )
    assert found["Q2: SAME below FT"] == expected
    tuned = [run for run in study.runs.values() if run.config.method == "finetuned"]
    kept = [int(n) for n in re.findall(r"(\d+) of", found["FT runs that end with the model they began with"])]
    assert sum(kept) == sum(run.training["best"]["step"] == 0 for run in tuned)
    nothing = dict(reproduction.facts(replace(study, runs={})))
    assert nothing["Q2: SAME below FT"] == nothing["three tasks: SAME less Cl"] == "not run"


def test_probes_of_more_runs_are_added_to_those_kept(reproduction, tmp_path):
    keep = importlib.import_module("probes").keep
    head = ("dataset", "method", "trained on", "adapts", "measured", "split", "score")
    first, second = (("COX2", "esame", "gc", "all", "gc", split, "70.0") for split in "01")
    again, path = (*second[:-1], "71.0"), tmp_path / "probes.csv"
    keep(path, [head, second])
    keep(path, [head, first])
    keep(path, [head, again])
    assert [tuple(row.values()) for row in reproduction.read_rows(path)] == [first, again]
    with pytest.raises(SystemExit, match="other columns"):
        keep(path, [(*head[:-1], "another"), first])
    assert len(reproduction.read_rows(path)) == 2


def test_probes_are_told_by_what_models_were_trained_for(reproduction):
    head = ("dataset", "method", "trained on", "measured", "split", "standardised", "as they are", "C chosen")
    lines = [
        ("COX2", "isame", "gc", "gc", "0", 70, 71, 77),
        ("COX2", "isame", "gc", "gc", "1", 72, 73, 79),
        ("COX2", "esame", "gc", "gc", "1", 75, 75, 75),
        ("COX2", "esame", "gc+nc+lp", "gc", "0", 70, 72, 74),
        ("COX2", "esame", "gc+nc+lp", "nc", "0", 10, 10, 10),
    ]
    rows = [dict(zip(head, line, strict=True)) | {"single-task Cl": 75} for line in lines]
    assert reproduction.probed(rows).splitlines()[2:] == [
        "| COX2, SAME on GC alone | -1.5 (-3.0 to +0.0; 1 of 2 below -2) | -1.0 (-2.0 to +0.0; 0 of 2 below -2) "
        "| +2.0 (+0.0 to +4.0; 0 of 2 below -2) | 1 |",
        "| COX2, SAME on three tasks | -5.0 | -3.0 | -1.0 | 1 |",
    ]


def test_learned_weights_are_beside_equal_ones_on_the_same_splits(reproduction):
    study = Study.open(ROOT / "reproduction/paper")
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in reproduction.weightings(study).splitlines()]
    column = rows[0].index("eSAME, gradnorm")
    found = {row[0]: row for row in rows[2:]}
    learned, equal = (
        study.scores("DHFR", "esame", ("gc", "nc", "lp"), "lp", "linear", weighting=weighting)
        for weighting in ("gradnorm", "fixed")
    )
    expected = sum(learned[k] - equal[k] for k in learned) / len(learned)
    assert float(found["DHFR LP"][column].split()[0].rstrip("*")) == pytest.approx(expected, abs=0.051)
    assert found["DHFR LP"][-1] == str(len(learned))
    counts = dict(reproduction.facts(study))
    assert f"{expected:+.1f} to" in counts["three tasks: eSAME with gradnorm, less equal weights"]


def test_symmetric_rows_are_counted_beside_their_own_baseline(reproduction):
    concat, study = (Study.open(ROOT / "reproduction" / name) for name in ("paper", "symmetric"))
    gaps = []
    for tasks in (("gc", "lp"), ("nc", "lp"), ("gc", "nc", "lp")):
        for method in ("isame", "esame"):
            ours = study.scores("COX2", method, tasks, "lp", "linear")
            base = study.scores("COX2", "classical", ("lp",), "lp", "own")
            gaps.append(sum(ours[k] - base[k] for k in ours) / len(ours))
    found = dict(reproduction.symmetric_facts(study, concat))
    assert found["LP of SAME, less single-task Cl, COX2"].startswith(f"{min(gaps):+.1f} to {max(gaps):+.1f}")


def test_a_rerun_is_as_far_from_what_is_kept_as_its_worst_score(reproduction):
    kept = {("isame", "linear", "lp"): {"roc_auc": 0.75, "average_precision": 0.5}}
    name = next(iter(kept))
    assert reproduction.furthest(kept, kept) == 0
    assert reproduction.furthest(kept, {name: {"roc_auc": 0.75, "average_precision": 0.25}}) == 0.25
    assert reproduction.furthest(kept, {name: {"roc_auc": 0.75}}) == float("inf")
    assert reproduction.furthest(kept, {}) == float("inf")
    assert not reproduction.furthest(kept, {name: {"roc_auc": 0.75, "average_precision": float("nan")}}) < 1


def test_the_delta_of_one_encoder_is_beside_single_task_models(reproduction):
    singles, study = (Study.open(ROOT / "reproduction" / name) for name in ("beyond", "beyond-loss"))
    gains = []
    for task in ("gc", "nc", "lp"):
        ours = study.scores("DHFR", "classical", ["gc", "nc", "lp"], task, "linear")
        alone = singles.scores("DHFR", "classical", [task], task, "own")
        gains.append({k: 100 * (ours[k] - alone[k]) / alone[k] for k in ours})
    lines = reproduction.beyond_deltas({"loss": study}, singles).splitlines()
    for splits, line in ((range(10), lines[2]), (range(4, 9), lines[3])):
        expected = sum(gain[k] for gain in gains for k in splits) / (3 * len(splits))
        assert line.split(" | ")[5].startswith(f"{expected:+.1f} (p")
