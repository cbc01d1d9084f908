"""Report of a search, finished or not: a page with figures and a table of the trials, and the trials as CSV."""

import io
import math
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader

from same.files import atomic
from same.study.results import csv_text
from same.tuning.search import Tuning

PAGE, TABLE = "report.html", "trials.csv"


def write_tuning_report(tuning: Tuning) -> Path:
    """Write the report of a search to its folder; returns the path of the page."""
    environment = Environment(loader=PackageLoader("same", "."), autoescape=True, trim_blocks=True)
    values, names, figure = summary(tuning), tuning.search.space.names, _draw(tuning) if tuning.done else None
    about = {"title": f"Tuning: {heading(tuning)}", "about": savings(tuning), "names": names, "figure": figure}
    text = environment.get_template("tuning/tuning.html.j2").render(about, **values)
    columns = ("number", "state", "score", "epochs", "cpu_seconds")
    rows = ([*(trial[name] for name in columns), *trial["values"].values()] for trial in values["trials"])
    for name, content in ((TABLE, csv_text([[*columns, *names], *rows])), (PAGE, text)):
        with atomic(tuning.folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
    return tuning.folder / PAGE


def heading(tuning: Tuning) -> str:
    """One line that says what was tuned."""
    s = tuning.search
    score = f"{s.dataset}, {s.method}, {'+'.join(s.tasks)}: validation score, %"
    return f"{score}, on split {s.split} (sampler {s.sampler}, seed {s.seed})"


def savings(tuning: Tuning) -> str:
    """One line that counts the trials by state and says what early stopping saved."""
    states, usual = [trial.state for trial in tuning.trials], median([trial.epochs for trial in tuning.done] or [0])
    saved = sum(max(usual - trial.epochs, 0) for trial in tuning.trials if trial.state == "stopped")
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("done", "failed", "stopped"))
    return f"{len(states)} trials: {counts} early, which saved about {saved:.0f} epochs"


def summary(tuning: Tuning) -> dict[str, Any]:
    """The search and its trials as plain values."""
    best, default = tuning.done[:1], tuning.default
    return {
        **tuning.search.to_json(),
        "best": best[0].to_json() if best else None,
        "default": default.to_json() if default else None,
        "trials": [trial.to_json() for trial in tuning.trials],
    }


def _draw(tuning: Tuning) -> str:
    """SVG: trials in order with the best score so far, and score against value for each parameter."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    trials = [trial for trial in tuning.trials if trial.score is not None]
    scores, numbers = 100 * np.array([trial.score for trial in trials]), np.array([trial.number for trial in trials])
    colours = {"done": "C0", "stopped": "C1"}
    style = {"s": 14, "c": ["C2" if trial == tuning.default else colours[trial.state] for trial in trials]}
    rows = math.ceil((1 + len(tuning.search.space.parameters)) / 3)
    figure = Figure(figsize=(12, 3.2 * rows), layout="constrained")

    def panel(title: str, **options: Any) -> Any:
        return figure.add_subplot(rows, 3, len(figure.axes) + 1, title=title, **options)

    trace, done = panel("Score by trial, and the best so far"), [trial.state == "done" for trial in trials]
    trace.scatter(numbers, scores, **style)
    trace.step(numbers[done], np.maximum.accumulate(scores[done]), where="post")
    for p in tuning.search.space.parameters:
        axes = panel(p.name, xscale="log" if p.log else "linear")
        axes.minorticks_off()
        values = [trial.values[p.name] for trial in trials]
        axes.scatter(list(map(p.choices.index, values)) if p.choices else values, scores, **style)
        if p.choices:
            axes.set_xticks(range(len(p.choices)), [str(choice) for choice in p.choices])
    text = io.StringIO()
    with rc_context({"svg.hashsalt": "same", "svg.fonttype": "none"}):  # The same bytes every time.
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]  # Without the XML declaration.
