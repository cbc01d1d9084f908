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


Cell = tuple[str, list[float], float | None]
"""Name of a cell, differences by split, and published difference."""
Case = tuple[tuple[str, ...], str, Source | None]
"""Tasks that SAME is trained on, measured task, and rival; None for Δm, which is a difference already."""


class Spec(NamedTuple):
    """A claim: of all its cells, the share `share` reaches the bar.

    Attributes:
        bar: least difference from the rival, in points, or in percent of the rival if `relative`.
        probe: probe of both models; by default the paper's.
    """

    question: str
    text: str
    cases: list[Case]
    bar: float
    relative: bool = False
    probe: str = ""
    share: float = 1.0


def _single(task_sets: tuple[tuple[str, ...], ...]) -> list[Case]:
    return [(tasks, task, Source("classical", (task,))) for tasks in task_sets for task in tasks]


_BELOW = "a linear classifier on {}-task embeddings is never more than {} points below single-task Cl"
_TUNED = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
_UNSEEN = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
CLAIMS = (
    Spec("Q1", _BELOW.format("single", 2), _single(SINGLES), -2),
    Spec("Q2", _BELOW.format("multi", 3), _single(PAIRS + ALL), -3),
    # Any difference counts: a published one is at least 0.1.
    Spec("Q2", _TUNED, [(t, task, Source("finetuned", t)) for t in PAIRS for task in t], 1e-6, share=0.9),
    Spec("Q3", _UNSEEN, [(t, task, Source("classical", t)) for t, task in UNSEEN], 10, True, "network"),
    Spec("Q4", "Δm is never below −3 %", [(tasks, DELTA, None) for tasks in PAIRS + ALL], -3),
)


class Claim(NamedTuple):
    """A claim under a protocol of link prediction, for SAME or the untrained encoder in its place, and its verdict.

    Attributes:
        numbers: the numbers that decide.
        published: number of cells in which the paper's numbers reach the bar.
        holds: whether it holds; None without a verdict.
    """

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
    subjects = {"SAME": SAMES, "untrained": ("untrained",)}
    return [
        _check(spec, protocol, subject, list(_cells(study, spec, protocol, methods)))
        for spec in specs
        for protocol in ("paper", "released")
        for subject, methods in subjects.items()
    ]


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
    run = {place: gaps for place, gaps, _ in cells if gaps}
    paper = {place: gap for place, _, gap in cells if gap is not None}
    reached = sum(gap >= spec.bar - 1e-9 for gap in paper.values())  # Differences of numbers with one digit.
    about, beside = (spec.question, spec.text, protocol, subject), f"{reached} of {len(paper)}" if paper else ""
    if not run:
        return Claim(*about, "not run", "", beside, None)
    means = {place: float(np.mean(gaps)) for place, gaps in run.items()}
    missed = [place for place, mean in means.items() if mean < spec.bar]
    tests = [compare(run[place], [spec.bar] * len(run[place])) for place in missed]
    surely = sum(test.beyond_noise(2 * LEVEL / len(run)) for test in tests)
    allowed = (1 - spec.share) * len(run) + 1e-9
    holds: bool | None = len(missed) <= allowed
    verdict = "holds" if holds else "does not hold" if surely > allowed else "does not hold, perhaps by chance"
    least, most = min(map(len, run.values())), max(map(len, run.values()))
    if least < MIN_SPLITS:
        holds, verdict = None, f"no verdict with fewer than {MIN_SPLITS} splits"
    if len(run) < (count := len({place for place, _, _ in cells})):
        verdict += f" ({len(run)} of {count} cells run)"
    ranked = sorted(means, key=lambda place: means[place])
    worst, best = (f"{means[place]:+.1f} ({place})" for place in (ranked[0], ranked[-1]))
    numbers = (
        f"worst {worst}, best {best}; reached in {len(run) - len(missed)} of {len(run)} cells, missed by more than "
        f"chance in {surely}; over {least if least == most else f'{least} to {most}'} split{'s' if most > 1 else ''}"
    )
    return Claim(*about, verdict, numbers, beside, holds)
