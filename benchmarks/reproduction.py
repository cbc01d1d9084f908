"""Write the generated tables of the README and of docs/reproduction*.md: `python benchmarks/reproduction.py`.

They come from the study in `reproduction/paper` and from `reproduction/overview-0.1.csv`, and stand between
`<!-- begin NAME -->` and `<!-- end -->`.
"""

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from same.study.results import Study

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproduction"
PAGES = [ROOT / "README.md", ROOT / "docs/reproduction.md", ROOT / "docs/reproduction-tables.md"]

DATASETS = ("ENZYMES", "PROTEINS", "DHFR", "COX2")
TASKS = ("gc", "nc", "lp")
LABELS = {"classical": "Cl", "finetuned": "FT", "isame": "iSAME", "esame": "eSAME"}
FLOORS = {"majority": "none", "raw": "linear", "untrained": "linear"}
MODELS = {"majority": "majority class", "raw": "raw features", "untrained": "untrained encoder"}
OVERVIEW = {**MODELS, "sage-walk": "preset `sage-walk`"}
TITLES = {"Q1": "Table 1: one task", "Q2": "Table 2: several tasks", "Q4": "Table 3: Δm"}
TITLES["Q3"] = "Table 4: a task the encoder was not trained for"

Values = dict[int, float]  # Scores by split, in percent.


class Results(NamedTuple):
    """Runs, one dict each, and main scores by (dataset, method, tasks, model, task, probe, protocol)."""

    runs: list[dict[str, Any]]
    scores: dict[tuple[str, ...], Values]

    def get(
        self, dataset: str, method: str, tasks: str, task: str, probe: str, protocol: str = "paper", model: str = ""
    ) -> Values:
        """Scores of a method, or of a floor given as `model`, by split; empty if there are none."""
        return self.scores.get((dataset, method, tasks, model or method, task, probe, protocol), {})


def read_study(folder: Path) -> Results:
    """Read a study, without learned weightings and Algorithm 3; the only function that knows how studies are stored."""
    study, runs, scores = Study.open(folder), [], defaultdict(dict)
    for run in study.runs.values():
        if run.settings["weighting"] != "fixed" or run.method == "traditional":
            continue
        tasks, settings = "+".join(run.tasks), {name: run.settings[name] for name in ("layers", "batch_size")}
        runs.append({**run._asdict(), **settings, "tasks": tasks})
        for score in study.results.scores[run.run]:
            key = (run.dataset, run.method, tasks, score.model, score.task, score.probe, score.protocol)
            scores[key].setdefault(run.split, 100 * score.score)  # The main metric comes first.
    return Results(runs, dict(scores))


def paper_probe(method: str, protocol: str = "paper") -> str:
    """How the paper measures a method; heads never saw pairs of protocol `released`, so there it is a linear probe."""
    return "own" if method in ("classical", "finetuned") and protocol == "paper" else "linear"


def delta_m(results: Results, dataset: str, method: str, tasks: str, lp: str = "paper") -> Values:
    """Δm against single-task Cl by split, in percent: the mean over tasks of (score - Cl) / Cl."""
    gains = []
    for task in tasks.split("+"):
        protocol = lp if task == "lp" else "paper"
        ours = results.get(dataset, method, tasks, task, paper_probe(method, protocol), protocol)
        base = results.get(dataset, "classical", task, task, paper_probe("classical", protocol), protocol)
        gains.append({k: 100 * (ours[k] - base[k]) / base[k] for k in ours.keys() & base.keys()})
    return {k: float(np.mean([gain[k] for gain in gains])) for k in sorted(set.intersection(*map(set, gains)))}


def cells(results: Results) -> Iterator[dict[str, Any]]:
    """The 240 published numbers, each with `ours` by split and, where link prediction counts, `released` by split."""
    methods = {label: method for method, label in LABELS.items()}
    published = resources.files("same.study").joinpath("published.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(published.splitlines()):
        dataset, method, tasks, task = row["dataset"], methods[row["model"]], row["trained_on"], row["measured"]
        values, with_links = {}, "lp" in (tasks.split("+") if task == "delta_m" else [task])
        for protocol in ("paper", "released") if with_links else ("paper",):
            if task == "delta_m":
                values[protocol] = delta_m(results, dataset, method, tasks, protocol)
            else:
                probe = "network" if row["question"] == "Q3" else paper_probe(method, protocol)
                values[protocol] = results.get(dataset, method, tasks, task, probe, protocol)
        yield {**row, "ours": values["paper"], "released": values.get("released", {})}


def mean_std(values: Iterable[float]) -> str:
    """Mean ± standard deviation; empty if there are no values."""
    numbers = list(values)
    return f"{np.mean(numbers):.1f} ± {np.std(numbers):.1f}" if numbers else ""


def markdown(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def beside_published(results: Results) -> str:
    """Tables 1 to 4 with the published number in brackets; link prediction also by protocol `released`."""
    tables: dict[str, dict[tuple[str, ...], dict[str, str]]] = {question: defaultdict(dict) for question in TITLES}
    for cell in cells(results):
        measured = "Δm" if cell["measured"] == "delta_m" else cell["measured"].upper()
        published = cell["value"] + (f" ± {cell['std']}" if cell["std"] else "")
        for name, values in ((measured, cell["ours"]), (f"{measured}, LP as released", cell["released"])):
            if values:
                row = tables[cell["question"]][cell["trained_on"].upper(), name.replace("LP, LP", "LP"), cell["model"]]
                row[cell["dataset"]] = f"{mean_std(values.values())} ({published})"
    parts = []
    for question, rows in tables.items():
        lines = [[*key, *(row.get(dataset, "") for dataset in DATASETS)] for key, row in rows.items()]
        parts += [
            f"## {TITLES[question]} ({question})",
            markdown(["trained on", "measured", "model", *DATASETS], lines),
        ]
    return "\n\n".join(parts)


def floors(results: Results) -> str:
    """Models that need no training, measured by both protocols."""
    rows = []
    for task, protocol in (*((task, "paper") for task in TASKS), ("lp", "released")):
        for model, probe in FLOORS.items():
            values = [results.get(name, "untrained", "gc+nc+lp", task, probe, protocol, model) for name in DATASETS]
            measured = task.upper() + (" as released" if protocol == "released" else "")
            rows.append([measured, MODELS[model], *(mean_std(some.values()) for some in values)])
    return markdown(["measured", "model", *DATASETS], rows)


def budgets(results: Results) -> str:
    """Cap, epochs, updates, batch size and layers of every method by the number of its tasks."""
    rows = []
    for tasks in (1, 2, 3):
        for method, label in LABELS.items():
            runs = [run for run in results.runs if (run["method"], run["tasks"].count("+") + 1) == (method, tasks)]
            if not runs:
                continue
            (cap,) = {run["cap"] for run in runs}
            at_cap = f"{sum(run['epochs'] >= cap for run in runs)} of {len(runs)}"
            epochs = f"{np.median([run['epochs'] for run in runs]):.0f}"
            by_set = [[run["updates"] for run in runs if run["dataset"] == name] for name in DATASETS]
            updates = " / ".join(f"{np.median(some):.0f}" for some in by_set)
            spans = [sorted({run[what] for run in runs}) for what in ("batch_size", "layers")]
            rows.append([label, tasks, cap, at_cap, epochs, updates, *(", ".join(map(str, span)) for span in spans)])
    return markdown(["method", "tasks", "cap", "runs at the cap", "epochs", "updates", "batch", "layers"], rows)


def overview(path: Path) -> str:
    """One encoder for three tasks next to the floors: one row per dataset and task, one column per model."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values[row["dataset"], row["task"]][row["model"]].append(100 * float(row["score"]))
    rows = [[f"{d} {t.upper()}", *(mean_std(scores[m]) for m in OVERVIEW)] for (d, t), scores in values.items()]
    return markdown(["set and task", *OVERVIEW.values()], rows)


def blocks() -> dict[str, str]:
    """All generated blocks by name."""
    results = read_study(RESULTS / "paper")
    hours = sum(run["cpu_seconds"] for run in results.runs) / 3600
    versions = ", ".join(sorted({run["version"] for run in results.runs}))
    return {
        "overview": overview(RESULTS / "overview-0.1.csv"),
        "size": f"{len(results.runs)} runs, {hours:.1f} CPU hours of training, version {versions}.",
        "budgets": budgets(results),
        "published": beside_published(results),
        "floors": floors(results),
    }


def main() -> None:
    """Replace every block of every page."""
    made = blocks()

    def fill(match: re.Match[str]) -> str:
        if match[1] not in made:
            sys.exit(f"unknown block {match[1]!r}; there are {', '.join(made)}")
        return f"<!-- begin {match[1]} -->\n{made[match[1]]}\n<!-- end -->"

    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"<!-- begin (.+?) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
