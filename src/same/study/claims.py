"""The claims of the paper's questions Q1 to Q4, each restated as a check on a study's numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from same.probes.metrics import compare
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS
from same.study.results import Study
from same.study.tables import LABELS, baseline, delta_values, probe_of

Cells = dict[str, list[float]]
"""What a claim is about, by cell of the paper's tables: a number a split."""

LEVEL = 0.05
CHANCE = (
    "A claim is held against means over splits; whether it holds by chance is not tested. It fails *perhaps by chance* "
    "where no cell is below the bar by more than chance (for fine-tuning: not more than one cell in ten); told by a "
    "corrected resampled t-test, one-sided, at 5 % for all cells of a claim together, of five splits at least."
)


@dataclass(frozen=True)
class Claim:
    """A claim, what is to be found for it to hold, and what was.

    Attributes:
        question: which the paper makes it for.
        text: the claim.
        protocol: how link prediction is evaluated.
        subject: what it is checked for: SAME, or the untrained encoder in its place.
        holds: whether it holds in the means over splits; None where the runs it needs are missing.
        found: the numbers.
        sure: of a claim that does not hold, whether that is more than chance: with enough cells, the worst of them is
            below any bar.
    """

    question: str
    text: str
    protocol: str
    subject: str
    holds: bool | None
    found: str
    sure: bool = False

    @property
    def verdict(self) -> str:
        """In words."""
        failed = "does not hold" if self.sure else "does not hold, perhaps by chance"
        return {True: "holds", False: failed, None: "not run"}[self.holds]


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


def _judged(
    question: str, text: str, lp: str, subject: str, cells: Cells, bar: float, unit: str = "", more: str = ""
) -> Claim:
    """A claim that holds if all cells reach a bar."""
    if not cells:
        return Claim(question, text, lp, subject, None, "")
    means = {where: float(np.mean(values)) for where, values in cells.items()}
    (worst, where), (best, there) = (pick((mean, cell) for cell, mean in means.items()) for pick in (min, max))
    below = [cell for cell, mean in means.items() if not mean >= bar]
    surely = sum(_differs(cells[cell], bar, len(cells)) for cell in below)
    found = f"worst {worst:+.1f}{unit} ({where}), best {best:+.1f}{unit} ({there}){more}"
    if below:
        found += f"; below {bar:g}{unit} in {len(below)} of {len(cells)}, more than chance in {surely}"
    return Claim(question, text, lp, subject, not below, found, surely > 0)


def _differs(values: Sequence[float], bar: float, tests: int) -> bool:
    """Whether the mean of a cell, on the side of the bar it is on, is off by more than chance; one of several tests."""
    return compare(values, [bar] * len(values)).beyond_noise(2 * LEVEL / tests)


def _never_below(
    study: Study, question: str, task_sets: tuple[tuple[str, ...], ...], points: float, lp: str, subject: str
) -> Claim:
    kind = "single-task" if question == "Q1" else "multi-task"
    text = f"a linear classifier on {kind} embeddings is never more than {points:g} points below single-task Cl"
    cells: Cells = {}
    for dataset in study.plan.datasets:
        for tasks in task_sets:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                base = baseline(study, dataset, task, protocol)
                for method, values in _scores(study, dataset, tasks, task, protocol, subject):
                    trained = f" on {'+'.join(tasks)}" if subject == "SAME" else ""
                    if gaps := _differences(values, base):
                        cells[f"{dataset} {task.upper()}, {LABELS[method]}{trained}"] = gaps
    better = sum(np.mean(gaps) > 0 for gaps in cells.values())
    return _judged(question, text, lp, subject, cells, -points, more=f"; better in {better} of {len(cells)}")


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
    return [values[k] - base[k] for k in sorted(set(values) & set(base))]


def _finetuning_loses(study: Study, lp: str, subject: str) -> Claim:
    text = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
    cells: list[list[float]] = []
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                probe = probe_of("finetuned", protocol)
                tuned = study.scores(dataset, "finetuned", tasks, task, probe, protocol=protocol)
                for _, values in _scores(study, dataset, tasks, task, protocol, subject):
                    if gaps := _differences(values, tuned):
                        cells.append(gaps)
    if not cells:
        return Claim("Q2", text, lp, subject, None, "")
    lost = sum(np.mean(gaps) > 0 for gaps in cells)
    ahead = sum(np.mean(gaps) <= 0 and _differs(gaps, 0.0, len(cells)) for gaps in cells)
    found = f"outperformed in {lost} of {len(cells)} cells; ahead by more than chance in {ahead}"
    return Claim("Q2", text, lp, subject, bool(lost >= 0.9 * len(cells)), found, bool(ahead > 0.1 * len(cells)))


def _unseen_tasks(study: Study, lp: str, subject: str) -> Claim:
    text = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
    cells: Cells = {}
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            (unseen,) = set(TASKS) - set(tasks)
            protocol = lp if unseen == "lp" else "paper"
            base = study.scores(dataset, "classical", tasks, unseen, "network", protocol=protocol)
            for method, values in _scores(study, dataset, tasks, unseen, protocol, subject, "network"):
                ratios = {k: 100 * value / base[k] for k, value in values.items() if base.get(k)}
                if ratios:
                    gains = [ratios[k] - 100 for k in sorted(ratios)]
                    cells[f"{dataset} {'+'.join(tasks)}→{unseen}, {LABELS[method]}"] = gains
    return _judged("Q3", text, lp, subject, cells, 10, " %")


def _delta_m(study: Study, lp: str, subject: str) -> Claim:
    text = "Δm is never below −3 %, where that of classical multi-task training falls to −29 %"

    def cells(methods: tuple[str, ...]) -> Cells:
        found = {}
        for dataset in study.plan.datasets:
            for tasks in PAIRS + ALL:
                for method in methods:
                    if values := delta_values(study, dataset, method, tasks, lp):
                        place = f"{dataset} {'+'.join(tasks)}, {LABELS[method]}"
                        found[place] = [values[k] for k in sorted(values)]
        return found

    classical, more = cells(("classical",)), ""
    if classical:
        worst, where = min((float(np.mean(values)), place) for place, values in classical.items())
        more = f"; classical: worst {worst:+.1f} % ({where})"
    return _judged("Q4", text, lp, subject, cells(SAMES if subject == "SAME" else ("untrained",)), -3, " %", more)
