"""The claims of the paper's questions Q1 to Q4, each restated as a check on a study's numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from same.metrics import compare, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS
from same.study.published import published
from same.study.results import Study
from same.study.tables import LABELS, baseline, delta_values, probe_of


@dataclass
class Cells:
    """What a claim is about, by cell of the paper's tables.

    Attributes:
        ours: a number a split; none where runs are missing.
        paper: the same of the published numbers, of those who have one.
    """

    ours: dict[str, list[float]] = field(default_factory=dict)
    paper: dict[str, float] = field(default_factory=dict)

    @property
    def run(self) -> dict[str, list[float]]:
        """Those that have numbers."""
        return {place: values for place, values in self.ours.items() if values}

    def add(self, place: str, ours: Sequence[float], paper: float | None) -> None:
        """One cell."""
        self.ours[place] = list(ours)
        if paper is not None:
            self.paper[place] = paper


LEVEL = 0.05
CHANCE = (
    "A claim is held against means over splits; whether it holds by chance is not tested. It fails *perhaps by chance* "
    "where no cell is below the bar by more than chance (for fine-tuning: not more than one cell in ten); told by a "
    "corrected resampled t-test, one-sided, at 5 % for all cells of a claim together, of five splits at least. "
    "The bars are ours where the paper has words, or speaks of one set; *published* says in how many cells its own "
    "numbers reach them."
)
COLUMNS = ("question", "claim", "LP", "for", "verdict", "found", "published")


@dataclass(frozen=True)
class Claim:
    """A claim, what is to be found for it to hold, and what was.

    Attributes:
        question: which the paper makes it for.
        text: the claim.
        protocol: how link prediction is evaluated.
        subject: what it is checked for: SAME, or the untrained encoder in its place.
        holds: whether it holds in the means over splits, in the cells that were run; None where none was.
        found: the numbers.
        sure: of a claim that does not hold, whether that is more than chance: with enough cells, the worst of them is
            below any bar.
        run: how many cells have numbers.
        cells: how many there are, on the study's sets.
        published: in how many the paper's own numbers do what it claims.
    """

    question: str
    text: str
    protocol: str
    subject: str
    holds: bool | None
    found: str
    sure: bool
    run: int
    cells: int
    published: str

    @property
    def verdict(self) -> str:
        """In words."""
        failed = "does not hold" if self.sure else "does not hold, perhaps by chance"
        some = f" ({self.run} of {self.cells} cells run)" if 0 < self.run < self.cells else ""
        return {True: "holds", False: failed, None: "not run"}[self.holds] + some

    @property
    def row(self) -> tuple[str, ...]:
        """What stands in the columns of a table."""
        return self.question, self.text, self.protocol, self.subject, self.verdict, self.found, self.published


def check_claims(study: Study) -> list[Claim]:
    """All claims, under both protocols of link prediction, for SAME and for the untrained encoder in its place."""
    claims = []
    for protocol in ("paper", "released"):
        for subject in ("SAME", "untrained"):
            if "Q1" in study.plan.questions:
                claims.append(_never_below(study, "Q1", SINGLES, 2.0, protocol, subject))
            if "Q2" in study.plan.questions:
                claims.append(_never_below(study, "Q2", PAIRS + ALL, 3.0, protocol, subject))
                claims.append(_finetuning_loses(study, protocol, subject))
            if "Q3" in study.plan.questions:
                claims.append(_unseen_tasks(study, protocol, subject))
            if "Q4" in study.plan.questions:
                claims.append(_delta_m(study, protocol, subject))
    return sorted(claims, key=lambda claim: claim.question)


About = tuple[str, str, str, str]
"""Question, text, protocol and subject of a claim."""


def _claim(about: About, cells: Cells, reached: int, holds: bool | None, found: str = "", sure: bool = False) -> Claim:
    """A claim with how many of its cells were run, and in how many the published numbers `reached` its bar."""
    beside = f"{reached} of {len(cells.paper)}" if cells.paper else ""
    if cells.run:
        least, most = (pick(map(len, cells.run.values())) for pick in (min, max))
        found += f"; of {least} split{'s' if least > 1 else ''}" if least == most else f"; of {least} to {most} splits"
    return Claim(*about, holds, found, sure, len(cells.run), len(cells.ours), beside)


def _judged(about: About, cells: Cells, bar: float, unit: str = "", more: str = "") -> Claim:
    """A claim that holds if all cells reach a bar."""
    run = cells.run
    reached = sum(value >= bar - 1e-9 for value in cells.paper.values())  # Differences of numbers with one digit.
    if not run:
        return _claim(about, cells, reached, None)
    means = {place: float(np.mean(values)) for place, values in run.items()}
    (worst, where), (best, there) = (pick((mean, cell) for cell, mean in means.items()) for pick in (min, max))
    below = [cell for cell, mean in means.items() if not mean >= bar]
    surely = sum(_differs(run[cell], bar, len(run)) for cell in below)
    found = f"worst {worst:+.1f}{unit} ({where}), best {best:+.1f}{unit} ({there}){more}"
    if below:
        found += f"; below {bar:g}{unit} in {len(below)} of {len(run)}, more than chance in {surely}"
    return _claim(about, cells, reached, not below, found, surely > 0)


def _differs(values: Sequence[float], bar: float, tests: int) -> bool:
    """Whether the mean of a cell, on the side of the bar it is on, is off by more than chance; one of several tests."""
    return compare(values, [bar] * len(values)).beyond_noise(2 * LEVEL / tests)


def _never_below(
    study: Study, question: str, task_sets: tuple[tuple[str, ...], ...], points: float, lp: str, subject: str
) -> Claim:
    kind = "single-task" if question == "Q1" else "multi-task"
    text = f"a linear classifier on {kind} embeddings is never more than {points:g} points below single-task Cl"
    cells = Cells()
    for dataset in study.plan.datasets:
        for tasks in task_sets:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                base = baseline(study, dataset, task, protocol)
                for method, values in _scores(study, dataset, tasks, task, protocol, subject):
                    trained = f" on {'+'.join(tasks)}" if subject == "SAME" else ""
                    place = f"{dataset} {task.upper()}, {LABELS[method]}{trained}"
                    paper = _published_gap(question, dataset, task, (method, tasks), ("classical", (task,)))
                    cells.add(place, _differences(values, base), paper)
    better = sum(np.mean(gaps) > 0 for gaps in cells.run.values())
    more = f"; better in {better} of {len(cells.run)}"
    return _judged((question, text, lp, subject), cells, -points, more=more)


def _scores(
    study: Study, dataset: str, tasks: tuple[str, ...], task: str, protocol: str, subject: str, probe: str = "linear"
) -> list[tuple[str, dict[int, float]]]:
    """The scores of the subject's methods, by split."""
    return [
        (method, study.scores(dataset, method, trained, task, probe, protocol=protocol))
        for method, trained in ([(m, tasks) for m in SAMES] if subject == "SAME" else [("untrained", TASKS)])
    ]


def _differences(values: dict[int, float], base: dict[int, float]) -> list[float]:
    """Over the splits that both have."""
    return [a - b for a, b in zip(*paired(values, base), strict=True)]


def _published_gap(
    question: str, dataset: str, task: str, ours: tuple[str, tuple[str, ...]], other: tuple[str, tuple[str, ...]]
) -> float | None:
    """By how many points the paper has one method, on what it was trained on, ahead of another."""
    a, b = (published(question, tasks, task, method, dataset) for method, tasks in (ours, other))
    return None if a is None or b is None else a.value - b.value


def _finetuning_loses(study: Study, lp: str, subject: str) -> Claim:
    text = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
    cells = Cells()
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                probe = probe_of("finetuned", protocol)
                tuned = study.scores(dataset, "finetuned", tasks, task, probe, protocol=protocol)
                for method, values in _scores(study, dataset, tasks, task, protocol, subject):
                    place = f"{dataset} {task.upper()}, {LABELS[method]} on {'+'.join(tasks)}"
                    paper = _published_gap("Q2", dataset, task, (method, tasks), ("finetuned", tasks))
                    cells.add(place, _differences(values, tuned), paper)
    about, run = ("Q2", text, lp, subject), list(cells.run.values())
    theirs = sum(gap > 1e-9 for gap in cells.paper.values())
    if not run:
        return _claim(about, cells, theirs, None)
    lost = sum(np.mean(gaps) > 0 for gaps in run)
    ahead = sum(np.mean(gaps) <= 0 and _differs(gaps, 0.0, len(run)) for gaps in run)
    found = f"outperformed in {lost} of {len(run)} cells; ahead by more than chance in {ahead}"
    return _claim(about, cells, theirs, bool(lost >= 0.9 * len(run)), found, bool(ahead > 0.1 * len(run)))


def _unseen_tasks(study: Study, lp: str, subject: str) -> Claim:
    text = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
    cells = Cells()
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            (unseen,) = set(TASKS) - set(tasks)
            protocol = lp if unseen == "lp" else "paper"
            base = study.scores(dataset, "classical", tasks, unseen, "network", protocol=protocol)
            theirs = published("Q3", tasks, unseen, "classical", dataset)
            for method, values in _scores(study, dataset, tasks, unseen, protocol, subject, "network"):
                gains = [100 * values[k] / base[k] - 100 for k in sorted(values) if base.get(k)]
                paper = published("Q3", tasks, unseen, method, dataset)
                gain = None if paper is None or theirs is None else 100 * paper.value / theirs.value - 100
                cells.add(f"{dataset} {'+'.join(tasks)}→{unseen}, {LABELS[method]}", gains, gain)
    return _judged(("Q3", text, lp, subject), cells, 10, " %")


def _delta_m(study: Study, lp: str, subject: str) -> Claim:
    def gather(methods: tuple[str, ...]) -> Cells:
        cells = Cells()
        for dataset in study.plan.datasets:
            for tasks in PAIRS + ALL:
                for method in methods:
                    values = delta_values(study, dataset, method, tasks, lp)
                    paper = published("Q4", tasks, "delta_m", method, dataset)
                    place = f"{dataset} {'+'.join(tasks)}, {LABELS[method]}"
                    cells.add(place, [values[k] for k in sorted(values)], None if paper is None else paper.value)
        return cells

    classical, more = gather(("classical",)), ""
    if classical.run:
        worst, where = min((float(np.mean(values)), place) for place, values in classical.run.items())
        more = f"; classical: worst {worst:+.1f} % ({where})"
        more += f", published {min(classical.paper.values()):+.1f} %" if classical.paper else ""
    cells = gather(SAMES if subject == "SAME" else ("untrained",))
    return _judged(("Q4", "Δm is never below −3 %", lp, subject), cells, -3, " %", more)
