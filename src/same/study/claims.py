"""The claims of the paper's questions Q1 to Q4, each restated as a check on a study's numbers."""

from dataclasses import dataclass

import numpy as np

from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS
from same.study.results import Study
from same.study.tables import LABELS, baseline, delta_values, probe_of


@dataclass(frozen=True)
class Claim:
    """A claim, what is to be found for it to hold, and what was.

    Attributes:
        question: which the paper makes it for.
        text: the claim.
        protocol: how link prediction is evaluated.
        subject: what it is checked for: SAME, or the untrained encoder in its place.
        holds: whether it holds; None where the runs it needs are missing.
        found: the numbers.
    """

    question: str
    text: str
    protocol: str
    subject: str
    holds: bool | None
    found: str

    @property
    def verdict(self) -> str:
        """In words."""
        return {True: "holds", False: "does not hold", None: "not run"}[self.holds]


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


def _gaps(study: Study, task_sets: tuple[tuple[str, ...], ...], lp: str, subject: str) -> list[tuple[float, str]]:
    """Mean score of the subject minus that of the single-task classical model, over the splits both have."""
    gaps = []
    for dataset in study.plan.datasets:
        for tasks in task_sets:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                base = baseline(study, dataset, task, protocol)
                for method in SAMES if subject == "SAME" else ("untrained",):
                    trained = TASKS if method == "untrained" else tasks
                    values = study.scores(dataset, method, trained, task, "linear", protocol=protocol)
                    shared = sorted(set(base) & set(values))
                    if shared:
                        gap = float(np.mean([values[k] - base[k] for k in shared]))
                        gaps.append((gap, f"{dataset} {task.upper()}, {LABELS[method]} on {'+'.join(tasks)}"))
    return gaps


def _never_below(
    study: Study, question: str, task_sets: tuple[tuple[str, ...], ...], points: float, lp: str, subject: str
) -> Claim:
    kind = "single-task" if question == "Q1" else "multi-task"
    text = f"a linear classifier on {kind} embeddings is never more than {points:g} points below single-task Cl"
    gaps = _gaps(study, task_sets, lp, subject)
    if not gaps:
        return Claim(question, text, lp, subject, None, "")
    (worst, where), (best, there) = min(gaps), max(gaps)
    better = sum(gap > 0 for gap, _ in gaps)
    found = f"worst {worst:+.1f} ({where}), best {best:+.1f} ({there}); better in {better} of {len(gaps)}"
    return Claim(question, text, lp, subject, worst >= -points, found)


def _finetuning_loses(study: Study, lp: str, subject: str) -> Claim:
    text = "the fine-tuned model is almost always (nine times in ten) outperformed by the linear classifier"
    lost, cells = 0, 0
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            for task in tasks:
                protocol = lp if task == "lp" else "paper"
                probe = probe_of("finetuned", protocol)
                tuned = study.scores(dataset, "finetuned", tasks, task, probe, protocol=protocol)
                for method in SAMES if subject == "SAME" else ("untrained",):
                    trained = TASKS if method == "untrained" else tasks
                    values = study.scores(dataset, method, trained, task, "linear", protocol=protocol)
                    shared = set(tuned) & set(values)
                    if shared:
                        cells += 1
                        lost += int(np.mean([values[k] - tuned[k] for k in shared]) > 0)
    if not cells:
        return Claim("Q2", text, lp, subject, None, "")
    return Claim("Q2", text, lp, subject, lost >= 0.9 * cells, f"outperformed in {lost} of {cells} cells")


def _unseen_tasks(study: Study, lp: str, subject: str) -> Claim:
    text = "on a task it was not trained on, a network on the embeddings is at least 10 % better than on those of Cl"
    gains = []
    for dataset in study.plan.datasets:
        for tasks in PAIRS:
            (unseen,) = set(TASKS) - set(tasks)
            protocol = lp if unseen == "lp" else "paper"
            base = study.scores(dataset, "classical", tasks, unseen, "network", protocol=protocol)
            for method in SAMES if subject == "SAME" else ("untrained",):
                trained = TASKS if method == "untrained" else tasks
                values = study.scores(dataset, method, trained, unseen, "network", protocol=protocol)
                shared = sorted(set(base) & set(values))
                if shared:
                    gain = 100 * np.mean([(values[k] - base[k]) / base[k] for k in shared])
                    gains.append((float(gain), f"{dataset} {'+'.join(tasks)}→{unseen}, {LABELS[method]}"))
    if not gains:
        return Claim("Q3", text, lp, subject, None, "")
    (worst, where), (best, there) = min(gains), max(gains)
    found = f"worst {worst:+.1f} % ({where}), best {best:+.1f} % ({there})"
    return Claim("Q3", text, lp, subject, worst >= 10, found)


def _delta_m(study: Study, lp: str, subject: str) -> Claim:
    text = "the worst Δm is above −3 %, where classical multi-task training falls to −29 %"

    def worst(methods: tuple[str, ...]) -> tuple[float, str] | None:
        found = []
        for dataset in study.plan.datasets:
            for tasks in PAIRS + ALL:
                for method in methods:
                    values = delta_values(study, dataset, method, tasks, lp)
                    if values:
                        mean = float(np.mean(list(values.values())))
                        found.append((mean, f"{dataset} {'+'.join(tasks)}, {LABELS[method]}"))
        return min(found) if found else None

    ours, classical = worst(SAMES if subject == "SAME" else ("untrained",)), worst(("classical",))
    if ours is None:
        return Claim("Q4", text, lp, subject, None, "")
    found = f"worst {ours[0]:+.1f} % ({ours[1]})"
    if classical is not None:
        found += f"; classical: worst {classical[0]:+.1f} % ({classical[1]})"
    return Claim("Q4", text, lp, subject, ours[0] > -3, found)
