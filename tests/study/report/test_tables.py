"""Tables, marks and Δm of studies made by hand."""

from dataclasses import replace

import pytest

from same.study.plan import Plan
from same.study.published import published
from same.study.report.claims import check_claims
from same.study.report.tables import Cell, make_tables
from study_helpers import Q4, SCORES, linear_probes, made_study, own_heads


def row(table, label, model):
    return next(cells for a, b, cells in table.rows if (a, b) == (label, model))


def test_delta_m_is_per_split_against_that_splits_single_task_models():
    table = make_tables(made_study(SCORES, Q4))[0]
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
    assert esame.reference == "-0.8 ± 0.8 ▲"
    (isame,) = row(table, "GC+NC", "iSAME")
    assert isame.text == "not run"
    assert isame.mark == ""


def test_a_cell_shows_the_number_of_splits_where_some_are_missing():
    assert Cell({0: 50.0, 1: 52.0}, planned=2).text == "51.0 ± 1.0"
    assert Cell({0: 50.0, 1: 52.0}, planned=10).text == "51.0 ± 1.0 [2]"
    assert Cell({3: 50.0}, planned=10).text == "50.0 [1]"
    assert Cell({3: 50.0}, planned=1).text == "50.0"
    # Two of three planned splits are done.
    table = make_tables(made_study(SCORES, replace(Q4, splits=(0, 1, 2))))[0]
    assert row(table, "GC+NC", "eSAME")[0].text == "2.5 ± 2.5 [2]"
    assert "in brackets" in table.caption


@pytest.mark.parametrize(("mean", "mark"), [(87.5, "≈"), (89.4, "≈"), (89.5, "▲"), (85.5, "▼")])
def test_marks_follow_the_published_standard_deviation(mean, mark):
    assert Cell({0: mean}, published("Q1", ("nc",), "nc", "classical", "ENZYMES")).mark == mark


def test_a_star_is_a_difference_beyond_noise():
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=tuple(range(5)), tasks=(("gc",),))
    base = [[50.0], [51.0], [49.0], [50.5], [49.5]]
    better = [[v + 8 + 0.1 * i] for i, (v,) in enumerate(base)]
    noisy = [[v + (4 if i % 2 else -4)] for i, (v,) in enumerate(base)]
    scores = {
        ("classical", ("gc",)): own_heads("classical", ["gc"], *base),
        ("esame", ("gc",)): linear_probes("esame", ["gc"], *better),
        ("isame", ("gc",)): linear_probes("isame", ["gc"], *noisy),
    }
    table = make_tables(made_study(scores, plan))[0]
    assert row(table, "GC", "eSAME")[0].text == "58.2 ± 0.7*"
    assert "*" not in row(table, "GC", "iSAME")[0].text
    assert "against Cl: +8.20" in row(table, "GC", "eSAME")[0].note


def test_every_table_of_scores_has_floors():
    plan = Plan(datasets=("ENZYMES",), splits=(0,))
    tables = make_tables(made_study({}, plan))
    assert {"overview", "table1", "table2", "table4", "figure1", "appendix", "weighting"} < {t.key for t in tables}
    for table in tables:
        models = [model for _, model, _ in table.rows]
        if table.key == "table3":  # Of gains.
            assert "untrained" in models
        else:
            assert {"majority", "untrained"} < set(models), table.key
            assert any(model.startswith("raw features") for model in models), table.key


def test_a_caption_names_missing_splits_budget_and_tuned_values():
    done = make_tables(made_study(SCORES, replace(Q4, methods=("classical", "esame"))))[0].caption
    assert "over 2 splits, the number of splits in brackets where some are missing, in percent" in done
    runs = SCORES | {("untrained", ("gc", "nc", "lp")): linear_probes("untrained", ["gc"], [30.0], [30.0])}
    whole = make_tables(made_study(runs, replace(Q4, methods=("classical", "esame"))))[0].caption
    assert whole == (
        "Mean ± standard deviation over 2 splits, in percent. Protocol paper, seed 0, scaling standardise, degree 16, "
        "walk 0, encoder gcn, layers 3, width 256, pair concat, max_epochs 15000, patience 50, "
        "C of linear probes chosen by validation loss. GC and NC: accuracy; LP: ROC AUC."
    )

    def tuned(**values):
        configurations = {f"ENZYMES-classical-{task}": {name: value} for task, (name, value) in values.items()}
        return make_tables(made_study(SCORES, replace(Q4, tuned=configurations)))[0].caption

    assert "scaling standardise (both where tuned), degree 16, " in tuned(gc=("scaling", "both"))
    assert "degree 16 (0 where tuned), walk 0 (8 where tuned), " in tuned(gc=("degree", 0), nc=("walk", 8))
    assert "max_epochs 15000 (200 where tuned), " in tuned(gc=("max_epochs", 200))
    assert ", clip 1.0, " in make_tables(made_study({}, replace(Q4, settings={"clip": 1.0})))[0].caption


def test_a_split_whose_single_task_model_scores_zero_has_no_delta_m():
    scores = SCORES | {("classical", ("gc",)): own_heads("classical", ["gc"], [50.0], [0.0])}
    (esame,) = row(make_tables(made_study(scores, Q4))[0], "GC+NC", "eSAME")
    assert list(esame.values) == [0]
    assert check_claims(made_study(scores, Q4))
