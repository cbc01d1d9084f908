"""The claims of the paper's questions Q1 to Q4, each restated as a check on a study's numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from same.metrics import compare, paired
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS
from same.study.published import published
from same.study.report.tables import LABELS, Source, delta_values, probe_of
from same.study.results import Study

LEVEL = 0.05
CHANCE = (
    "A claim is checked on means over splits; whether it holds by chance is not tested. It fails *perhaps by chance* "
    "where no cell is below the bar by more than chance (for fine-tuning: at most one cell in ten), by a one-sided "
    "corrected resampled t-test at 5 % for all cells of a claim together, with at least five splits. "
    "The bars are ours where the paper is vague or speaks of one dataset; *published* counts the cells in which its "
    "own numbers reach them."
)
About = tuple[str, str, str, str]
"""Question, text, protocol of link prediction and subject of a claim."""
COLUMNS = ("question", "claim", "LP", "for", "verdict", "numbers", "published")


@dataclass(frozen=True)
class Claim:
    """A claim, under a protocol of link prediction, for SAME or the untrained encoder in its place, and its verdict.

    Attributes:
        holds: whether it holds for the means over splits of the `run` of all `cells` with scores; None without any.
        numbers: the numbers that decide.
        sure: whether a failure is more than chance: with enough cells, the worst of them is below any bar.
        published: number of cells in which the paper's numbers reach the bar.
    """

    question: str
    text: str
    protocol: str
    subject: str
    holds: bool | None = None
    numbers: str = ""
    sure: bool = False
    run: int = 0
    cells: int = 0
    published: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        failed = "does not hold" if self.sure else "does not hold, perhaps by chance"
        some = f" ({self.run} of {self.cells} cells run)" if 0 < self.run < self.cells else ""
        return {True: "holds", False: failed, None: "not run"}[self.holds] + some

    @property
    def row(self) -> tuple[str, ...]:
        """The values of `COLUMNS`."""
        return self.question, self.text, self.protocol, self.subject, self.verdict, self.numbers, self.published


@dataclass
class Cells:
    """The cells of the paper's tables that a claim is about: our numbers, one per split, and published ones."""

    ours: dict[str, list[float]] = field(default_factory=dict)
    paper: dict[str, float] = field(default_factory=dict)

    @property
    def run(self) -> dict[str, list[float]]:
        """Cells with scores."""
        return {place: values for place, values in self.ours.items() if values}

    def add(self, place: str, ours: Sequence[float], paper: float | None) -> None:
        """Add one cell."""
        self.ours[place] = list(ours)
        if paper is not None:
            self.paper[place] = paper

    def claim(self, about: About, reached: int, holds: bool | None, numbers: str = "", sure: bool = False) -> Claim:
        """A claim about these cells, whose bar `reached` published numbers reach."""
        if self.run:
            least, most = (pick(map(len, self.run.values())) for pick in (min, max))
            splits = f"{least}" if least == most else f"{least} to {most}"
            numbers += f"; over {splits} split{'s' if most > 1 else ''}"
        beside = f"{reached} of {len(self.paper)}" if self.paper else ""
        return Claim(*about, holds, numbers, sure, len(self.run), len(self.ours), beside)

    def all_reach(self, about: About, bar: float, unit: str = "", more: str = "") -> Claim:
        """A claim that holds if all cells reach a bar."""
        run = self.run
        reached = sum(value >= bar - 1e-9 for value in self.paper.values())  # Differences of numbers with one digit.
        if not run:
            return self.claim(about, reached, None)
        means = {place: float(np.mean(values)) for place, values in run.items()}
        (worst, worst_cell), (best, best_cell) = (pick((m, cell) for cell, m in means.items()) for pick in (min, max))
        below = [cell for cell, mean in means.items() if not mean >= bar]
        surely = sum(_differs(run[cell], bar, len(run)) for cell in below)
        numbers = f"worst {worst:+.1f}{unit} ({worst_cell}), best {best:+.1f}{unit} ({best_cell}){more}"
        if below:
            numbers += f"; below {bar:g}{unit} in {len(below)} of {len(run)}, more than chance in {surely}"
        return self.claim(about, reached, not below, numbers, surely > 0)


def _differs(values: Sequence[float], bar: float, tests: int) -> bool:
    """Whether the mean of a cell differs from the bar by more than chance, as one of several one-sided tests."""
    return compare(values, [bar] * len(values)).beyond_noise(2 * LEVEL / tests)


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


Model = tuple[str, tuple[str, ...]]
"""A method and the tasks it was trained on."""


def _compare(
    study: Study,
    about: About,
    cases: Iterable[tuple[tuple[str, ...], str, Model]],
    probe: str = "linear",
    *,
    relative: bool = False,
) -> Cells:
    """Differences between the subject of a claim and a rival, in points or, if `relative`, in percent of the rival.

    Args:
        study: study with the scores.
        about: question, text, protocol of link prediction and subject of the claim.
        cases: tasks that SAME is trained on, task that is measured, and rival, of each cell.
        probe: probe of the subject, and of the rival too if it is `network`.
        relative: whether differences are relative.
    """
    question, _, lp, subject = about
    cells = Cells()
    for dataset, (tasks, task, rival) in product(study.plan.datasets, cases):
        protocol = lp if task == "lp" else "paper"
        rival_probe = probe if probe == "network" else probe_of(rival[0], protocol)
        base = Source(*rival, rival_probe, protocol).scores(study, dataset, task)
        reference = published(question, rival[1], task, rival[0], dataset)
        models: list[Model] = [(method, tasks) for method in SAMES] if subject == "SAME" else [("untrained", TASKS)]
        for method, trained in models:
            ours, theirs = paired(Source(method, trained, probe, protocol).scores(study, dataset, task), base)
            gaps = [100 * a / b - 100 if relative else a - b for a, b in zip(ours, theirs, strict=True) if b]
            paper, gap = published(question, tasks, task, method, dataset), None
            if paper is not None and reference is not None:
                gap = paper.value - reference.value
                gap = 100 * gap / reference.value if relative else gap
            name = f"{LABELS[method]} on {'+'.join(tasks)}"
            if subject != "SAME":  # What differs between cells is the rival.
                name = method if len(rival[1]) == 1 else f"{method} against {LABELS[rival[0]]} on {'+'.join(rival[1])}"
            cells.add(f"{dataset} {task.upper()}, {name}", gaps, gap)
    return cells


def _never_below(
    study: Study, question: str, task_sets: tuple[tuple[str, ...], ...], points: float, lp: str, subject: str
) -> Claim:
    kind = "single-task" if question == "Q1" else "multi-task"
    text = f"a linear classifier on {kind} embeddings is never more than {points:g} points below single-task Cl"
    about = (question, text, lp, subject)
    cells = _compare(study, about, [(tasks, task, ("classical", (task,))) for tasks in task_sets for task in tasks])
    better = sum(np.mean(gaps) > 0 for gaps in cells.run.values())
    return cells.all_reach(about, -points, more=f"; better in {better} of {len(cells.run)}")


def _finetuning_loses(study: Study, lp: str, subject: str) -> Claim:
    text = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
    about = ("Q2", text, lp, subject)
    cells = _compare(study, about, [(tasks, task, ("finetuned", tasks)) for tasks in PAIRS for task in tasks])
    run, reached = list(cells.run.values()), sum(gap > 1e-9 for gap in cells.paper.values())
    if not run:
        return cells.claim(about, reached, None)
    lost = sum(np.mean(gaps) > 0 for gaps in run)
    ahead = sum(np.mean(gaps) <= 0 and _differs(gaps, 0.0, len(run)) for gaps in run)
    numbers = f"outperformed in {lost} of {len(run)} cells; ahead by more than chance in {ahead}"
    return cells.claim(about, reached, bool(lost >= 0.9 * len(run)), numbers, bool(ahead > 0.1 * len(run)))


def _unseen_tasks(study: Study, lp: str, subject: str) -> Claim:
    text = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
    about = ("Q3", text, lp, subject)
    cases = [(tasks, task, ("classical", tasks)) for tasks in PAIRS for task in TASKS if task not in tasks]
    return _compare(study, about, cases, "network", relative=True).all_reach(about, 10, " %")


def _delta_m(study: Study, lp: str, subject: str) -> Claim:
    def gather(methods: tuple[str, ...]) -> Cells:
        cells = Cells()
        for dataset in study.plan.datasets:
            for tasks, method in [(tasks, method) for tasks in PAIRS + ALL for method in methods]:
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
    return cells.all_reach(("Q4", "Δm is never below −3 %", lp, subject), -3, " %", more)
