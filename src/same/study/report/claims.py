"""The claims of the paper's questions Q1 to Q4, each restated as a check on a study's numbers."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from same.methods.registry import get
from same.metrics import compare, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES
from same.study.published import published
from same.study.report.tables import DELTA, UNSEEN, label, scores
from same.study.results import Source, Study

LEVEL, MIN_SPLITS = 0.05, 5
CHANCE = (
    "A claim is checked on means over splits, with at least five splits in every cell. Whether it holds by chance is "
    "not tested. It fails *perhaps by chance* if no more cells than it allows miss the bar by more than chance, by a "
    "one-sided corrected resampled t-test at 5 % for all cells of a claim together. The bars are ours where the paper "
    "is vague or speaks of one dataset; *published* counts the cells in which its own numbers reach them."
)
COLUMNS = ("question", "claim", "LP", "for", "verdict", "numbers", "published")

Case = tuple[tuple[str, ...], str, Source | None]
"""Tasks that SAME is trained on, measured task, and rival; None for Δm, which is a difference already."""
Cell = tuple[str, list[float], float | None]  # Name of a cell, differences by split, and published difference.


class Spec(NamedTuple):
    """A claim: the share `share` of all cells reaches the bar."""

    question: str
    text: str
    cases: list[Case]
    bar: float  # least difference from the rival in points, or in percent of the rival if `relative`
    share: float = 1.0
    relative: bool = False
    probe: str = ""  # of both models; by default the paper's


_BELOW = "a linear classifier on {}-task embeddings is never more than {} points below single-task Cl"
_TUNED = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
_UNSEEN = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
_ONE: list[Case] = [((task,), task, Source("classical", (task,))) for (task,) in SINGLES]
_SEVERAL: list[Case] = [(tasks, task, Source("classical", (task,))) for tasks in PAIRS + ALL for task in tasks]
CLAIMS = (
    Spec("Q1", _BELOW.format("single", 2), _ONE, -2),
    Spec("Q2", _BELOW.format("multi", 3), _SEVERAL, -3),
    # Any difference counts: a published one is at least 0.1.
    Spec("Q2", _TUNED, [(t, task, Source("finetuned", t)) for t in PAIRS for task in t], 1e-6, share=0.9),
    Spec("Q3", _UNSEEN, [(t, task, Source("classical", t)) for t, task in UNSEEN], 10, relative=True, probe="network"),
    Spec("Q4", "Δm is never below −3 %", [(tasks, DELTA, None) for tasks in PAIRS + ALL], -3),
)


class Claim(NamedTuple):
    """A checked claim, for SAME or the untrained encoder in its place; `holds` is None without a verdict."""

    question: str
    text: str
    protocol: str
    subject: str
    verdict: str
    numbers: str
    published: str
    holds: bool | None


def check_claims(study: Study) -> list[Claim]:
    """All claims, under both protocols of link prediction, for SAME and for the untrained encoder in its place."""
    specs = [spec for spec in CLAIMS if spec.question in study.plan.questions]
    kinds = product(specs, ("paper", "released"), {"SAME": SAMES, "untrained": ("untrained",)}.items())
    return [_check(spec, lp, who, list(_cells(study, spec, lp, methods))) for spec, lp, (who, methods) in kinds]


def _cells(study: Study, spec: Spec, protocol: str, methods: Sequence[str]) -> Iterator[Cell]:
    for dataset, (tasks, task, rival), method in product(study.plan.datasets, spec.cases, methods):
        ours = Source(method, tasks, spec.probe, protocol)
        values, paper = scores(study, dataset, ours, task), published(spec.question, tasks, task, method, dataset)
        if rival is None:
            yield f"{dataset} {'+'.join(tasks)}, {label(ours)}", [*values.values()], paper and paper.value
            continue
        rival = rival._replace(probe=spec.probe, protocol=protocol)
        pairs = [*zip(*paired(values, study.scores(dataset, rival, task)), strict=True)]
        theirs = published(spec.question, rival.tasks, task, rival.method, dataset)
        both = [(paper.value, theirs.value)] if paper and theirs else []
        gaps, gap = ([100 * a / b - 100 if spec.relative else a - b for a, b in each if b] for each in (pairs, both))
        yield f"{dataset} {task.upper()}, {_name(ours)} against {_name(rival)}", gaps, gap[0] if gap else None


def _name(source: Source) -> str:
    return label(source) + (f" on {'+'.join(source.tasks)}" if get(source.method).trains else "")


def _check(spec: Spec, protocol: str, subject: str, cells: list[Cell]) -> Claim:
    run = {name: gaps for name, gaps, _ in cells if gaps}
    paper = [gap >= spec.bar - 1e-9 for _, _, gap in cells if gap is not None]  # Differences of numbers with one digit.
    about, reached = (spec.question, spec.text, protocol, subject), f"{sum(paper)} of {len(paper)}" if paper else ""
    if not run:
        return Claim(*about, "not run", "", reached, None)
    means = sorted((float(np.mean(gaps)), name) for name, gaps in run.items())
    missed = [run[name] for mean, name in means if mean < spec.bar]
    tests = [compare(gaps, [spec.bar] * len(gaps)) for gaps in missed]
    surely = sum(test.beyond_noise(2 * LEVEL / len(run)) for test in tests)
    allowed = (1 - spec.share) * len(run) + 1e-9
    holds: bool | None = len(missed) <= allowed
    verdict = "holds" if holds else "does not hold" if surely > allowed else "does not hold, perhaps by chance"
    splits = sorted({len(gaps) for gaps in run.values()})
    if splits[0] < MIN_SPLITS:
        holds, verdict = None, f"no verdict with fewer than {MIN_SPLITS} splits"
    if len(run) < (count := len({name for name, _, _ in cells})):
        verdict += f" ({len(run)} of {count} cells run)"
    worst, best = (f"{mean:+.1f} ({name})" for mean, name in (means[0], means[-1]))
    numbers = (
        f"worst {worst}, best {best}; reached in {len(run) - len(missed)} of {len(run)} cells, missed by more than "
        f"chance in {surely}; splits: {' to '.join(map(str, sorted({splits[0], splits[-1]})))}"
    )
    return Claim(*about, verdict, numbers, reached, holds)
