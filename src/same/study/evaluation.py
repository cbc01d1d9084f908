"""Stands in for `same.probes.evaluate` until that lands."""

from pathlib import Path
from typing import Any, NamedTuple


class Score(NamedTuple):
    """Stands in for `same.probes.evaluate.Score` until that lands."""

    model: str
    part: str
    task: str
    probe: str
    protocol: str
    pair: str
    metric: str
    score: float


def evaluate_run(
    folder: Path,
    *,
    protocols: tuple[str, ...] = ("paper",),
    networks: tuple[str, ...] = (),
    floors: bool = False,
    data: Path | None = None,
    choose: str | None = None,
) -> list[Score]:
    """Stands in for `same.probes.evaluate.evaluate_run` until that lands."""
    from same.probes.evaluate import evaluate_run as evaluate
    from same.runs import open_run

    pair, scores = open_run(folder).config.pair, []
    for protocol in protocols:
        measured = ("lp",) if protocol == "released" else None
        options: dict[str, Any] = {"data": data, "protocol": protocol, "choose_c": choose}
        rows = evaluate(folder, probes=("linear", "own"), floors=floors, tasks=measured, **options)
        if tasks := [task for task in networks if measured is None or task in measured]:
            rows += evaluate(folder, probes=("network",), floors=False, tasks=tasks, **options)
        for row in rows:
            place = (row.model, "test", row.task, row.probe, protocol, pair)
            scores += [Score(*place, metric, value) for metric, value in row.scores.items()]
    return scores
