"""What the text of `docs/reproduction.md` says of many cells at once, counted from the results of the paper's study."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from same.probes.metrics import Comparison, compare, paired
from same.study.claims import LEVEL
from same.study.plan import ALL, PAIRS, SAMES, SINGLES, TASKS
from same.study.published import published
from same.study.results import Study
from same.study.tables import LABELS, baseline


class Kind(NamedTuple):
    """A row of a table, and the task that is measured in it."""

    method: str
    tasks: tuple[str, ...]
    task: str
    probe: str = "linear"


class Gap(NamedTuple):
    """A cell less another one, over the splits that both have."""

    dataset: str
    kind: Kind
    test: Comparison


Base = Callable[[str, Kind], dict[int, float]]
SINGLE, TWO, THREE = (
    [Kind(method, tasks, task) for tasks in task_sets for task in tasks for method in SAMES]
    for task_sets in (SINGLES, PAIRS, ALL)
)


def unseen(methods: Iterable[str], task_sets: Iterable[tuple[str, ...]], probe: str) -> list[Kind]:
    """Models at the tasks that they were not trained for."""
    return [Kind(m, tasks, task, probe) for tasks in task_sets for task in TASKS if task not in tasks for m in methods]


def gaps(study: Study, kinds: Iterable[Kind], base: Base, **settings: str) -> list[Gap]:
    """Each cell that was run less its baseline; of runs with these settings, where they are not the defaults."""
    found = []
    for dataset in study.plan.datasets:
        for kind in kinds:
            ours, theirs = paired(study.scores(dataset, *kind, **settings), base(dataset, kind))
            if ours:
                found.append(Gap(dataset, kind, compare(ours, theirs)))
    return found


def told(found: list[Gap]) -> str:
    """From the smallest to the largest, and how many are beyond noise, each for itself."""
    if not found:
        return "not run"
    means = [gap.test.mean for gap in found]
    sure = [gap.test.mean for gap in found if gap.test.beyond_noise()]
    ways = [f"{sum(sign * mean > 0 for mean in sure)} {way}" for way, sign in (("below 0", -1), ("above", 1))]
    return f"{min(means):+.1f} to {max(means):+.1f}; beyond noise {len(sure)} of {len(found)} ({', '.join(ways)})"


def below(found: list[Gap], bar: float = 0.0, level: float | None = None) -> str:
    """How many are below a bar, task by task; with a level, by more than chance."""
    parts = []
    for task in TASKS:
        if some := [gap.test for gap in found if gap.kind.task == task]:
            number = sum(test.mean < bar and (level is None or test.beyond_noise(level)) for test in some)
            parts.append(f"{task.upper()} {number} of {len(some)}")
    return ", ".join(parts) or "not run"


def _gains(study: Study, found: list[Gap]) -> str:
    """The mean gain over classical training in percent, and that of the published numbers."""
    ours, theirs = [], []
    for dataset, kind, test in found:
        rival = kind._replace(method="classical")
        _, base = paired(study.scores(dataset, *kind), study.scores(dataset, *rival))
        ours.append(100 * test.mean / np.mean(base))
        a, b = (published("Q3", k.tasks, k.task, k.method, dataset) for k in (kind, rival))
        if a and b:
            theirs.append(100 * a.value / b.value - 100)
    return f"{np.mean(ours):+.1f} %; published {np.mean(theirs):+.1f} %" if theirs else "not run"


def _kept_first(study: Study) -> str:
    """Of fine-tuning, set by set: the runs whose best epoch is the one before the first."""
    parts = []
    for dataset in study.plan.datasets:
        runs = [r for r in study.runs.values() if (r.config.dataset, r.config.method) == (dataset, "finetuned")]
        if runs:
            parts.append(f"{dataset} {sum(run.training['best']['epoch'] == 0 for run in runs)} of {len(runs)}")
    return ", ".join(parts) or "not run"


def facts(study: Study) -> Iterator[tuple[str, str]]:
    """What is counted, and the count; differences in points, by linear classifiers where nothing else is said."""

    def single(dataset: str, kind: Kind) -> dict[int, float]:
        return baseline(study, dataset, kind.task)

    def like(**changes: object) -> Base:
        return lambda dataset, kind: study.scores(dataset, *kind._replace(**changes))

    def trained_for_it(dataset: str, kind: Kind) -> dict[int, float]:
        return study.scores(dataset, *kind._replace(tasks=(kind.task,)))

    alone, several = gaps(study, SINGLE, single), gaps(study, TWO + THREE, single)
    yield "Q1: SAME more than 2 points below single-task Cl", below(alone, -2)
    yield "Q2: SAME more than 3 points below single-task Cl", below(several, -3)
    yield "of these, PROTEINS", below([gap for gap in several if gap.dataset == "PROTEINS"], -3)
    yield "LP of SAME trained for it, less single-task Cl", told([g for g in alone + several if g.kind.task == "lp"])
    tuned = gaps(study, TWO, like(method="finetuned", probe="own"))
    yield "Q2: SAME below FT", below(tuned)
    yield "the same by more than chance, corrected for all tests", below(tuned, level=2 * LEVEL / max(len(tuned), 1))
    ft = [Kind("finetuned", tasks, task, "own") for tasks in PAIRS for task in tasks]
    yield "FT below single-task Cl", below(gaps(study, ft, single))
    yield "FT runs that end with the model they began with", _kept_first(study)
    elsewhere = gaps(study, unseen(SAMES, PAIRS, "network"), like(method="classical"))
    yield "Q3: SAME less Cl at a task it was not trained for, a network", told(elsewhere)
    yield "the same in percent of the mean of Cl, mean of all", _gains(study, elsewhere)
    yield "three tasks: SAME less Cl", told(gaps(study, THREE, like(method="classical")))
    yield "two tasks: SAME less Cl", told(gaps(study, TWO, like(method="classical")))
    for task in TASKS:
        for probe, name in (("network", "a network"), ("linear", "a linear classifier")):
            others = [kind for kind in unseen(["classical"], SINGLES, probe) if kind.task == task]
            what = f"Figure 1: {task.upper()} by an encoder for another task, less one for it, {name}"
            yield what, told(gaps(study, others, trained_for_it))
    moved = [Kind("classical", ("gc",), "lp", "network")]
    yield (
        "LP by an encoder for GC, less an untrained one, a network",
        told(gaps(study, moved, like(method="untrained", tasks=TASKS))),
    )
    for method in ("classical", *SAMES):
        kinds = [Kind(method, TASKS, task) for task in TASKS]
        floor = gaps(study, kinds, like(method="untrained"))
        yield f"three tasks: {LABELS[method]} less the untrained encoder", told(floor)
    for method in ("classical", *SAMES):
        kinds = [Kind(method, TASKS, task) for task in TASKS]
        for weighting in ("uncertainty", "gradnorm"):
            learned = gaps(study, kinds, like(), weighting=weighting)
            yield f"three tasks: {LABELS[method]} with {weighting}, less equal weights", told(learned)


def symmetric_facts(study: Study, concat: Study) -> Iterator[tuple[str, str]]:
    """The same of a study with symmetric pairs, beside that of the paper's."""

    def single(dataset: str, kind: Kind) -> dict[int, float]:
        return baseline(study, dataset, kind.task)

    def before(dataset: str, kind: Kind) -> dict[int, float]:
        return concat.scores(dataset, *kind)

    yield "LP of single-task Cl, less with concat", told(gaps(study, [Kind("classical", ("lp",), "lp", "own")], before))
    for task in TASKS:
        kinds = [kind for kind in THREE if kind.task == task]
        yield f"{task.upper()} of SAME on three tasks, less with concat", told(gaps(study, kinds, before))
    behind = gaps(study, [kind for kind in TWO + THREE if kind.task == "lp"], single)
    for dataset in study.plan.datasets:
        some = [gap for gap in behind if gap.dataset == dataset]
        yield f"LP of SAME, less single-task Cl, {dataset}", told(some)

    def raw(dataset: str, kind: Kind) -> dict[int, float]:
        return study.scores(dataset, "untrained", TASKS, kind.task, "linear", model="raw")

    for gap in gaps(study, [Kind("esame", TASKS, "lp")], raw):
        yield f"LP of three-task eSAME, less raw features, {gap.dataset}", f"{gap.test.mean:+.1f}"
