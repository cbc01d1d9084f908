"""Tables, marks, Δm and claims from results made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from same.study.claims import check_claims
from same.study.plan import Plan
from same.study.published import published
from same.study.report import to_csv, to_latex, to_markdown
from same.study.results import RunResult, Study
from same.study.tables import Cell, make_tables

NETWORK, LINEAR, OWN = "network", "linear", "own"


def make(scores: dict, plan: Plan) -> Study:
    """A study whose runs have these scores: {(method, tasks): {split: {(model, probe, task): score in %}}}."""
    runs = {}
    for config in plan.runs():
        rows = scores.get((config.method, config.tasks), {}).get(config.split)
        if rows is None or config.weighting != "fixed" or config.adapts != "all":
            continue
        made = [
            {"model": model, "probe": probe, "task": task, "scores": {"main": score / 100, "other": 0.0}}
            for (model, probe, task), score in rows.items()
        ]
        released = [row for row in made if row["task"] == "lp"]
        training = {"best": {"epoch": 1}, "epochs": 2, "seconds": 3.0, "cpu_seconds": 3.0, "versions": {}}
        runs[config.key] = RunResult(config, training, {"paper": made, "released": released})
    return Study(Path("nowhere"), plan, runs, {})


def own(method, tasks, *values):
    return {k: {(method, OWN, t): v for t, v in zip(tasks, row, strict=True)} for k, row in enumerate(values)}


def linear(method, tasks, *values):
    return {k: {(method, LINEAR, t): v for t, v in zip(tasks, row, strict=True)} for k, row in enumerate(values)}


Q4 = Plan(questions=("Q4",), datasets=("ENZYMES",), splits=(0, 1), tasks=(("gc",), ("nc",), ("gc", "nc")))
SCORES = {
    ("classical", ("gc",)): own("classical", ["gc"], [50.0], [40.0]),
    ("classical", ("nc",)): own("classical", ["nc"], [80.0], [90.0]),
    ("classical", ("gc", "nc")): own("classical", ["gc", "nc"], [45.0, 88.0], [40.0, 90.0]),
    ("esame", ("gc", "nc")): linear("esame", ["gc", "nc"], [55.0, 80.0], [44.0, 81.0]),
}


def row(table, label, model):
    return next(cells for a, b, cells in table.rows if (a, b) == (label, model))


def test_delta_m_is_per_split_against_that_splits_single_task_models():
    table = make_tables(make(SCORES, Q4))[0]
    assert table.key == "table3"
    # Split 0: (45-50)/50 = -10 %, (88-80)/80 = +10 %: 0. Split 1: 0.
    (classical,) = row(table, "GC+NC", "Cl")
    assert classical.values == {0: pytest.approx(0.0), 1: pytest.approx(0.0)}
    # Split 0: +10 % and 0: 5. Split 1: +10 % and -10 %: 0. Mean 2.5, std 2.5.
    (esame,) = row(table, "GC+NC", "eSAME")
    assert esame.values == {0: pytest.approx(5.0), 1: pytest.approx(0.0)}
    assert esame.text == "2.5 ± 2.5"
    # Published: -0.8 ± 0.8; ours is above that spread.
    assert esame.published == published("Q4", ("gc", "nc"), "delta_m", "esame", "ENZYMES") == (-0.8, 0.8)
    assert esame.beside == "-0.8 ± 0.8 ▲"
    (isame,) = row(table, "GC+NC", "iSAME")
    assert isame.text == "not run"
    assert isame.mark == ""


def test_a_cell_of_fewer_splits_than_planned_says_so():
    assert Cell({0: 50.0, 1: 52.0}, planned=2).text == "51.0 ± 1.0"
    assert Cell({0: 50.0, 1: 52.0}, planned=10).text == "51.0 ± 1.0 [2]"
    assert Cell({3: 50.0}, planned=10).text == "50.0 [1]"
    assert Cell({3: 50.0}, planned=1).text == "50.0"
    # Two of three planned splits are done.
    table = make_tables(make(SCORES, replace(Q4, splits=(0, 1, 2))))[0]
    assert row(table, "GC+NC", "eSAME")[0].text == "2.5 ± 2.5 [2]"
    assert "in brackets" in table.caption


@pytest.mark.parametrize(("mean", "mark"), [(87.5, "≈"), (89.4, "≈"), (89.5, "▲"), (85.5, "▼")])
def test_marks_are_by_the_published_spread(mean, mark):
    assert Cell({0: mean}, published("Q1", ("nc",), "nc", "classical", "ENZYMES")).mark == mark


def test_a_star_is_a_difference_beyond_noise():
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=tuple(range(5)), tasks=(("gc",),))
    base = [[50.0], [51.0], [49.0], [50.5], [49.5]]
    better = [[v + 8 + 0.1 * i] for i, (v,) in enumerate(base)]
    noisy = [[v + (4 if i % 2 else -4)] for i, (v,) in enumerate(base)]
    scores = {
        ("classical", ("gc",)): own("classical", ["gc"], *base),
        ("esame", ("gc",)): linear("esame", ["gc"], *better),
        ("isame", ("gc",)): linear("isame", ["gc"], *noisy),
    }
    table = make_tables(make(scores, plan))[0]
    assert row(table, "GC", "eSAME")[0].text == "58.2 ± 0.7*"
    assert row(table, "GC", "iSAME")[0].star == ""
    assert "against Cl: +8.20" in row(table, "GC", "eSAME")[0].note


def test_the_written_forms_are_exactly_these():
    table = make_tables(make(SCORES, Q4))[0]
    assert to_markdown(table).splitlines()[4:9] == [
        "| tasks | model | ENZYMES |",
        "| --- | --- | --- |",
        "| GC+NC | Cl | 0.0 ± 0.0 (-0.1 ± 0.5 ≈) |",
        "| GC+NC | FT | not run (-4.5 ± 1.2) |",
        "| GC+NC | iSAME | not run (-2.3 ± 0.9) |",
    ]
    assert to_csv(table).splitlines()[:5] == [
        "tasks,model,column,mean,std,splits,published,published_std,mark,p,wilcoxon",
        "GC+NC,Cl,ENZYMES,0.0000,0.0000,2,-0.1,0.5,≈,,",
        "GC+NC,FT,ENZYMES,not run,,0,-4.5,1.2,,,",
        "GC+NC,iSAME,ENZYMES,not run,,0,-2.3,0.9,,,",
        "GC+NC,eSAME,ENZYMES,2.5000,2.5000,2,-0.8,0.8,▲,,",
    ]
    assert r"GC+NC & eSAME & 2.5 $\pm$ 2.5 (-0.8 $\pm$ 0.8 $\uparrow$) \\" in to_latex(table)
    assert r"a\textbackslash{}b\_c\textasciitilde{}" in to_latex(replace(table, columns=[r"a\b_c~"]))
    assert to_markdown(replace(table, columns=["a|b"])).splitlines()[4] == "| tasks | model | a&#124;b |"


def test_every_table_of_scores_has_floors():
    plan = Plan(datasets=("ENZYMES",), splits=(0,))
    tables = make_tables(make({}, plan))
    assert {"overview", "table1", "table2", "table4", "figure1", "appendix", "weighting"} < {t.key for t in tables}
    for table in tables:
        models = [model for _, model, _ in table.rows]
        if table.key == "table3":  # Of gains.
            assert "untrained" in models
        else:
            assert {"majority", "untrained"} < set(models), table.key
            assert any(model.startswith("raw features") for model in models), table.key


def test_claims_say_what_holds_and_for_whom():
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=(0,), tasks=(("gc",), ("lp",)))
    scores = {
        ("classical", ("gc",)): own("classical", ["gc"], [50.0]),
        ("classical", ("lp",)): {0: {("classical", OWN, "lp"): 80.0, ("classical", LINEAR, "lp"): 76.0}},
        ("esame", ("gc",)): linear("esame", ["gc"], [49.0]),
        ("isame", ("lp",)): linear("isame", ["lp"], [77.0]),
    }
    scores["untrained", ("gc", "nc", "lp")] = linear("untrained", ["gc", "lp"], [51.0, 79.0])
    claims = {(c.protocol, c.subject): c for c in check_claims(make(scores, plan))}
    same = claims["paper", "SAME"]
    assert same.holds is False
    assert same.found == (
        "worst -3.0 (ENZYMES LP, iSAME on lp), best -1.0 (ENZYMES GC, eSAME on gc); better in 0 of 2; "
        "below -2 in 1 of 2, more than chance in 0; of 1 split"
    )
    assert same.verdict == "does not hold, perhaps by chance (2 of 6 cells run)"
    assert claims["paper", "untrained"].holds is True
    # A head never saw pairs like the released ones: there, linear classifiers are held against each other.
    assert claims["released", "SAME"].verdict == "holds (2 of 6 cells run)"
    assert (same.published, claims["paper", "untrained"].published) == ("6 of 6", "")
    assert "best +1.0 (ENZYMES LP, iSAME on lp)" in claims["released", "SAME"].found
    empty = {c.verdict for c in check_claims(make({}, plan))}
    assert empty == {"not run"}


@pytest.mark.parametrize(("spread", "splits", "sure"), [(0.1, 5, True), (0.1, 4, False), (6.0, 5, False)])
def test_a_claim_fails_for_sure_where_splits_agree(spread, splits, sure):
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=tuple(range(splits)), tasks=(("gc",),))
    scores = {
        ("classical", ("gc",)): own("classical", ["gc"], *([50.0] for _ in range(splits))),
        ("esame", ("gc",)): linear("esame", ["gc"], *([46.0 + spread * (k - 2)] for k in range(splits))),
    }
    claim = next(c for c in check_claims(make(scores, plan)) if (c.protocol, c.subject) == ("paper", "SAME"))
    assert claim.holds is False
    assert claim.sure is sure
    assert claim.found.endswith(f"below -2 in 1 of 1, more than chance in {int(sure)}; of {splits} splits")


def test_finetuning_wins_for_sure_where_splits_agree():
    plan = Plan(questions=("Q2",), datasets=("ENZYMES",), splits=tuple(range(5)))
    scores = {
        ("finetuned", ("gc", "nc")): own("finetuned", ["gc", "nc"], *([50.0, 80.0] for _ in range(5))),
        ("esame", ("gc", "nc")): linear("esame", ["gc", "nc"], *([46.0 + k / 10, 81.0] for k in range(5))),
    }
    claims = [c for c in check_claims(make(scores, plan)) if "fine-tuned" in c.text and c.subject == "SAME"]
    assert {c.found for c in claims} == {"outperformed in 1 of 2 cells; ahead by more than chance in 1; of 5 splits"}
    assert {c.verdict for c in claims} == {"does not hold (2 of 12 cells run)"}


def test_claims_are_held_against_the_published_numbers_too():
    found = [c for c in check_claims(make({}, Plan())) if (c.protocol, c.subject) == ("paper", "SAME")]
    # Counted by hand from the paper's tables: two of the bars are higher than its own numbers.
    counts = ["24 of 24", "72 of 72", "39 of 48", "15 of 24", "32 of 32"]
    assert [c.published for c in found] == counts
    assert all(c.cells == int(count.split()[-1]) for c, count in zip(found, counts, strict=True))


def test_a_caption_says_whether_splits_are_missing_and_what_was_tuned():
    done = make_tables(make(SCORES, replace(Q4, methods=("classical", "esame"))))[0].caption
    assert "over 2 splits, in brackets of how many if fewer, in percent" in done  # The untrained encoder is missing.
    runs = SCORES | {("untrained", ("gc", "nc", "lp")): linear("untrained", ["gc"], [30.0], [30.0])}
    whole = make_tables(make(runs, replace(Q4, methods=("classical", "esame"))))[0].caption
    assert whole.startswith("Mean ± standard deviation over 2 splits, in percent. Protocol paper")
    assert "inputs standardise, degree 16, " in whole
    tuned = replace(Q4, tuned=(("ENZYMES-classical-gc", (("scaling", "both"),)),))
    assert "inputs standardise, degree 16 (both where tuned so), " in make_tables(make(SCORES, tuned))[0].caption
    tuned = replace(Q4, tuned=(("ENZYMES-classical-gc", (("degree", 0),)), ("ENZYMES-classical-nc", (("walk", 8),))))
    assert "standardise, degree 16 (degree 0, walk 8 where tuned so), " in make_tables(make(SCORES, tuned))[0].caption


def test_a_split_whose_single_task_model_gets_nothing_right_has_no_delta_m():
    scores = SCORES | {("classical", ("gc",)): own("classical", ["gc"], [50.0], [0.0])}
    (esame,) = row(make_tables(make(scores, Q4))[0], "GC+NC", "eSAME")
    assert list(esame.values) == [0]
    assert check_claims(make(scores, Q4))


def test_all_240_published_numbers_are_there():
    from same.study.published import _table

    assert len(_table()) == 240
    assert published("Q2", ("gc", "nc", "lp"), "lp", "esame", "COX2") == (98.8, None)
    assert published("Q3", ("nc", "lp"), "gc", "classical", "COX2") == (79.9, 3.4)
    assert published("Q1", ("gc",), "gc", "finetuned", "COX2") is None
