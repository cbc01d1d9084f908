"""The report of a search, finished or not: a page with its trace, what mattered, and slices; its trials as CSV."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from same.files import atomic
from same.study.figures import Dot, dots, ranking
from same.study.search import Trial, Tuning
from same.study.space import Parameter

PAGE, TABLE = "report.html", "trials.csv"
_ENOUGH = 10


def write_tuning_report(tuning: Tuning) -> Path:
    """Writes the report of a search into its folder.

    Returns:
        The page.
    """
    found, trust = importances(tuning)
    figures = {"trace": _trace(tuning), **_importance_figure(found), **_slices(tuning)} if tuning.done else {}
    environment = Environment(loader=PackageLoader("same.study", "."), autoescape=True, trim_blocks=True)
    page = environment.get_template("tuning.html.j2").render(
        title=f"Tuning: {heading(tuning)}",
        about=savings(tuning),
        names=tuning.question.space.names,
        trials=tuning.trials,
        best=tuning.done[0] if tuning.done else None,
        default=tuning.default,
        figures={name: Markup(svg) for name, svg in figures.items()},
        trust=trust,
    )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "state", "score", "epochs", "cpu_seconds", *tuning.question.space.names])
    for t in tuning.trials:
        score = "" if t.score is None else f"{t.score:.6f}"
        writer.writerow([t.number, t.state, score, t.epochs, f"{t.cpu_seconds:.1f}", *t.values.values()])
    for path, text in ((tuning.folder / TABLE, out.getvalue()), (tuning.folder / PAGE, page)):
        with atomic(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    for name, svg in figures.items():
        # On its own a figure has no page whose colour it could take.
        with atomic(tuning.folder / "figures" / f"{name}.svg") as temporary:
            temporary.write_text(svg.replace("<svg ", '<svg color="#222" ', 1), encoding="utf-8")
    return tuning.folder / PAGE


def heading(tuning: Tuning) -> str:
    """The question in a line."""
    q = tuning.question
    return (
        f"{q.dataset}, {q.method}, {'+'.join(q.tasks)}: mean validation score, %, on splits "
        f"{', '.join(map(str, q.splits))} (sampler {q.sampler}, seed {q.seed})"
    )


def savings(tuning: Tuning) -> str:
    """How the trials ended, and what giving some up saved, in a line."""
    states = [trial.state for trial in tuning.trials]
    counts = f"{len(states)} trials: {states.count('done')} done, {states.count('failed')} failed"
    if not tuning.question.stop_early:
        return f"{counts}; none was given up (--no-stop-early)"
    epochs, cpu = (sum(getattr(t, name) for t in tuning.trials) for name in ("saved", "cpu_saved"))
    spent, cpu_spent = (sum(getattr(t, name) for t in tuning.trials) for name in ("epochs", "cpu_seconds"))
    return (
        f"{counts}, {states.count('stopped')} given up, which saved about {epochs:.0f} epochs and {cpu:.0f} s of CPU "
        f"({spent:.0f} and {cpu_spent:.0f} s were spent)"
    )


def summary(tuning: Tuning) -> dict[str, Any]:
    """The search as plain values."""
    best, default = tuning.done[:1], tuning.default
    return {
        **tuning.question.to_json(),
        "best": None if not best else vars(best[0]),
        "default": None if default is None else vars(default),
        "importances": importances(tuning)[0],
        "trials": list(map(vars, tuning.trials)),
    }


def importances(tuning: Tuning) -> tuple[dict[str, float], float | None]:
    """How much each parameter matters, and how far to believe it.

    A random forest learns the scores of the trials from their values; a parameter matters as much as shuffling it costs
    (permutation importance), in points of score. Belief is the share of variance that the forest explains of trials it
    did not learn from (out-of-bag R²). Empty, and None, for fewer than ten trials.
    """
    told = [trial for trial in tuning.trials if trial.score is not None]
    scores = np.array([trial.score for trial in told])
    if len(told) < _ENOUGH or np.ptp(scores) == 0:
        return {}, None
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.inspection import permutation_importance

    parameters = tuning.question.space.parameters
    x = np.array([[p.place(trial.values[p.name]) for p in parameters] for trial in told])
    forest = RandomForestRegressor(200, oob_score=True, min_samples_leaf=2, random_state=0).fit(x, scores)
    costs = permutation_importance(forest, x, scores, scoring="neg_mean_absolute_error", n_repeats=20, random_state=0)
    found = {p.name: 100 * float(cost) for p, cost in zip(parameters, costs.importances_mean, strict=True)}
    return dict(sorted(found.items(), key=lambda item: -item[1])), float(forest.oob_score_)


_GROUPS = ("done", "given up", "default")


def _dot(tuning: Tuning, trial: Trial, x: float) -> Dot:
    group = "default" if trial == tuning.default else "done" if trial.state == "done" else "given up"
    values = ", ".join(f"{name} {value}" for name, value in trial.values.items())
    score = 100 * (trial.score or 0.0)
    return Dot(x, score, _GROUPS.index(group), f"trial {trial.number}, {trial.state}: {score:.1f} % ({values})")


def _trace(tuning: Tuning) -> str:
    """Every trial, and the best so far."""
    told = [trial for trial in tuning.trials if trial.score is not None]
    best: list[tuple[float, float]] = []
    for trial in told:
        if trial.state == "done":
            score = 100 * (trial.score or 0.0)
            best += [(trial.number, max(score, best[-1][1] if best else score))]
    points = [_dot(tuning, trial, trial.number) for trial in told]
    return dots("Trials, and the best so far", points, _GROUPS, "trial", line=best)


def _importance_figure(found: dict[str, float]) -> dict[str, str]:
    return {"importances": ranking("What mattered: points of score lost by shuffling", found)} if found else {}


def _slices(tuning: Tuning) -> dict[str, str]:
    """The scores of the trials by each parameter."""
    told = [trial for trial in tuning.trials if trial.score is not None]
    figures = {}
    for p in tuning.question.space.parameters:
        # Equal values side by side, so that points do not hide each other.
        shift = 0.012 if p.choices or p.whole else 0.0
        points = [_dot(tuning, t, p.place(t.values[p.name]) + shift * (t.number % 5 - 2)) for t in told]
        figures[f"slice-{p.name}"] = dots(p.name, points, _GROUPS, "", ticks=_ticks(p))
    return figures


def _ticks(p: Parameter) -> list[tuple[float, str]]:
    values: list[Any] = list(p.choices)
    if p.whole and not values:
        values = [*range(int(p.low), int(p.high) + 1)][:: max(1, int(p.high - p.low) // 8)]
    if not values:
        values = [p.low, math.sqrt(p.low * p.high) if p.log else (p.low + p.high) / 2, p.high]
    return [(p.place(value), f"{value:.3g}" if isinstance(value, float) else str(value)) for value in values]
