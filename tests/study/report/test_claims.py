"""Claims of the paper, checked on studies made by hand."""

import pytest

from same.study.plan import Plan
from same.study.report.claims import check_claims
from study_helpers import linear_probes, made_study, own_heads


def test_claims_are_checked_for_same_and_for_the_untrained_encoder():
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=(0,), tasks=(("gc",), ("lp",)))
    scores = {
        ("classical", ("gc",)): own_heads("classical", ["gc"], [50.0]),
        ("classical", ("lp",)): {0: {("classical", "own", "lp"): 80.0, ("classical", "linear", "lp"): 76.0}},
        ("esame", ("gc",)): linear_probes("esame", ["gc"], [49.0]),
        ("isame", ("lp",)): linear_probes("isame", ["lp"], [77.0]),
    }
    scores["untrained", ("gc", "nc", "lp")] = linear_probes("untrained", ["gc", "lp"], [51.0, 79.0])
    claims = {(c.protocol, c.subject): c for c in check_claims(made_study(scores, plan))}
    same = claims["paper", "SAME"]
    assert same.holds is False
    assert same.numbers == (
        "worst -3.0 (ENZYMES LP, iSAME on lp), best -1.0 (ENZYMES GC, eSAME on gc); better in 0 of 2; "
        "below -2 in 1 of 2, more than chance in 0; over 1 split"
    )
    assert same.verdict == "does not hold, perhaps by chance (2 of 6 cells run)"
    assert claims["paper", "untrained"].holds is True
    # A head never saw pairs like the released ones: there, linear classifiers are held against each other.
    assert claims["released", "SAME"].verdict == "holds (2 of 6 cells run)"
    assert (same.published, claims["paper", "untrained"].published) == ("6 of 6", "")
    assert "best +1.0 (ENZYMES LP, iSAME on lp)" in claims["released", "SAME"].numbers
    empty = {c.verdict for c in check_claims(made_study({}, plan))}
    assert empty == {"not run"}


@pytest.mark.parametrize(("spread", "splits", "sure"), [(0.1, 5, True), (0.1, 4, False), (6.0, 5, False)])
def test_a_claim_fails_for_sure_where_splits_agree(spread, splits, sure):
    plan = Plan(questions=("Q1",), datasets=("ENZYMES",), splits=tuple(range(splits)), tasks=(("gc",),))
    scores = {
        ("classical", ("gc",)): own_heads("classical", ["gc"], *([50.0] for _ in range(splits))),
        ("esame", ("gc",)): linear_probes("esame", ["gc"], *([46.0 + spread * (k - 2)] for k in range(splits))),
    }
    claim = next(c for c in check_claims(made_study(scores, plan)) if (c.protocol, c.subject) == ("paper", "SAME"))
    assert claim.holds is False
    assert claim.sure is sure
    assert claim.numbers.endswith(f"below -2 in 1 of 1, more than chance in {int(sure)}; over {splits} splits")


def test_finetuning_wins_for_sure_where_splits_agree():
    plan = Plan(questions=("Q2",), datasets=("ENZYMES",), splits=tuple(range(5)))
    scores = {
        ("finetuned", ("gc", "nc")): own_heads("finetuned", ["gc", "nc"], *([50.0, 80.0] for _ in range(5))),
        ("esame", ("gc", "nc")): linear_probes("esame", ["gc", "nc"], *([46.0 + k / 10, 81.0] for k in range(5))),
    }
    claims = [c for c in check_claims(made_study(scores, plan)) if "fine-tuned" in c.text and c.subject == "SAME"]
    assert {c.numbers for c in claims} == {
        "outperformed in 1 of 2 cells; ahead by more than chance in 1; over 5 splits"
    }
    assert {c.verdict for c in claims} == {"does not hold (2 of 12 cells run)"}


def test_claims_are_checked_on_the_published_numbers_too():
    found = [c for c in check_claims(made_study({}, Plan())) if (c.protocol, c.subject) == ("paper", "SAME")]
    # Counted by hand from the paper's tables: two of the bars are higher than its own numbers.
    counts = ["24 of 24", "72 of 72", "39 of 48", "15 of 24", "32 of 32"]
    assert [c.published for c in found] == counts
    assert all(c.cells == int(count.split()[-1]) for c, count in zip(found, counts, strict=True))
