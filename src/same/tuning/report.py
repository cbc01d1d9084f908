"""Report of a search, finished or not: a page with its trace, importances and slices, and its trials as CSV."""

import csv
import io
import math
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from same.files import atomic
from same.study.report.svg import Dot, dots, ranking
from same.tuning.search import Trial, Tuning
from same.tuning.space import Parameter

PAGE, TABLE = "report.html", "trials.csv"
MIN_TRIALS = 10
"""Number of trials needed to estimate importances."""

_COLUMNS = ("number", "state", "score", "epochs", "cpu_seconds")
_GROUPS = ("done", "stopped early", "default")


def write_tuning_report(tuning: Tuning) -> Path:
    """Write the report of a search to its folder; returns the path of the page."""
    values, r2 = importances(tuning)
    figures = {"trace": _trace(tuning)} if tuning.done else {}
    if values:
        figures["importances"] = ranking("Importance: points of score lost by shuffling", values)
    figures |= _slices(tuning) if tuning.done else {}
    trials, names = [trial.to_json() for trial in tuning.trials], tuning.search.space.names
    loader = ChoiceLoader([PackageLoader("same.tuning", "."), PackageLoader("same.study", ".")])
    page = Environment(loader=loader, autoescape=True, trim_blocks=True).get_template("tuning.html.j2")
    text = page.render(
        title=f"Tuning: {heading(tuning)}",
        about=savings(tuning),
        names=names,
        trials=trials,
        best=tuning.done[0] if tuning.done else None,
        default=tuning.default,
        figures={name: Markup(svg) for name, svg in figures.items()},
        r2=r2,
    )
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*_COLUMNS, *names])
    writer.writerows([*(trial[name] for name in _COLUMNS), *trial["values"].values()] for trial in trials)
    for name, content in ((TABLE, table.getvalue()), (PAGE, text)):
        with atomic(tuning.folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
    return tuning.folder / PAGE


def heading(tuning: Tuning) -> str:
    """One line that says what was tuned."""
    s = tuning.search
    return (
        f"{s.dataset}, {s.method}, {'+'.join(s.tasks)}: mean validation score, %, on splits "
        f"{', '.join(map(str, s.splits))} (sampler {s.sampler}, seed {s.seed})"
    )


def savings(tuning: Tuning) -> str:
    """One line that counts the trials by state and says what early stopping saved."""
    states = [trial.state for trial in tuning.trials]
    counts = f"{len(states)} trials: {states.count('done')} done, {states.count('failed')} failed"
    if not tuning.search.stop_early:
        return f"{counts}, none stopped early (--no-stop-early)"
    spent, saved = sum(trial.to_json()["epochs"] for trial in tuning.trials), 0.0
    for split in tuning.search.splits:
        runs = [trial.runs[split] for trial in tuning.trials]
        usual = median([run.epochs for run in runs if run.state == "done"] or [0])
        saved += sum(max(usual - run.epochs, 0) for run in runs if run.state == "stopped")
    stopped = states.count("stopped")
    return f"{counts}, {stopped} stopped early, which saved about {saved:.0f} epochs ({spent} were spent)"


def summary(tuning: Tuning) -> dict[str, Any]:
    """The search and its trials as plain values."""
    best, default = tuning.done[:1], tuning.default
    return {
        **tuning.search.to_json(),
        "best": best[0].to_json() if best else None,
        "default": default.to_json() if default else None,
        "importances": importances(tuning)[0],
        "trials": [trial.to_json() for trial in tuning.trials],
    }


def importances(tuning: Tuning) -> tuple[dict[str, float], float | None]:
    """Importance of each parameter, and the out-of-bag R² of the model behind it.

    A random forest predicts the scores of the trials from their values. The importance of a parameter is the
    increase of its absolute error, in points of score, when the parameter is shuffled (permutation importance).
    Empty and None with fewer than ten trials.
    """
    trials = [trial for trial in tuning.trials if trial.score is not None]
    scores = np.array([trial.score for trial in trials])
    if len(trials) < MIN_TRIALS or np.ptp(scores) == 0:
        return {}, None
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.inspection import permutation_importance

    parameters = tuning.search.space.parameters
    x = np.array([[p.position(trial.values[p.name]) for p in parameters] for trial in trials])
    forest = RandomForestRegressor(200, oob_score=True, min_samples_leaf=2, random_state=0).fit(x, scores)
    losses = permutation_importance(forest, x, scores, scoring="neg_mean_absolute_error", n_repeats=20, random_state=0)
    values = {p.name: 100 * float(loss) for p, loss in zip(parameters, losses.importances_mean, strict=True)}
    return dict(sorted(values.items(), key=lambda item: -item[1])), float(forest.oob_score_)


def _dot(tuning: Tuning, trial: Trial, x: float) -> Dot:
    group = 2 if trial == tuning.default else 0 if trial.state == "done" else 1
    values = ", ".join(f"{name} {value}" for name, value in trial.values.items())
    score = 100 * (trial.score or 0.0)
    return Dot(x, score, group, f"trial {trial.number}, {trial.state}: {score:.1f} % ({values})")


def _trace(tuning: Tuning) -> str:
    """Figure of all trials in order, with the best score so far."""
    best: list[tuple[float, float]] = []
    for trial in [trial for trial in tuning.trials if trial.state == "done"]:
        score = 100 * (trial.score or 0.0)
        best.append((trial.number, max(score, best[-1][1] if best else score)))
    points = [_dot(tuning, trial, trial.number) for trial in tuning.trials if trial.score is not None]
    return dots("Trials, and the best score so far", points, _GROUPS, "trial", line=best)


def _slices(tuning: Tuning) -> dict[str, str]:
    """One figure per parameter: score against value."""
    trials = [trial for trial in tuning.trials if trial.score is not None]
    figures = {}
    for p in tuning.search.space.parameters:
        # Spread equal values, so that points do not hide each other.
        shift = 0.012 if p.choices or p.is_integer else 0.0
        points = [_dot(tuning, t, p.position(t.values[p.name]) + shift * (t.number % 5 - 2)) for t in trials]
        figures[f"slice-{p.name}"] = dots(p.name, points, _GROUPS, "", ticks=_ticks(p))
    return figures


def _ticks(p: Parameter) -> list[tuple[float, str]]:
    values: list[Any] = list(p.choices)
    if p.is_integer:
        values = [*range(int(p.low), int(p.high) + 1)][:: max(1, int(p.high - p.low) // 8)]
    if not values:
        values = [p.low, math.sqrt(p.low * p.high) if p.log else (p.low + p.high) / 2, p.high]
    return [(p.position(value), f"{value:.3g}" if isinstance(value, float) else str(value)) for value in values]
