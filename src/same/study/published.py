"""The 240 numbers of the paper's Tables 1 to 4 (Buffelli & Vandin, 2020), for comparison."""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

NAMES = {"classical": "Cl", "finetuned": "FT", "isame": "iSAME", "esame": "eSAME"}  # Names of the methods in the paper.


class Published(NamedTuple):
    """A published mean and its standard deviation, if the paper has one, in percent."""

    value: float
    std: float | None


@cache
def _table() -> dict[tuple[str, ...], Published]:
    text = resources.files("same.study").joinpath("published.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return {tuple(key): Published(float(value), float(std) if std else None) for _, *key, value, std in rows}


def published(question: str, tasks: tuple[str, ...], measured: str, method: str, dataset: str) -> Published | None:
    """The number that the paper reports for a task or `delta_m`; None if it has none."""
    return _table().get((question, "+".join(tasks), measured, NAMES.get(method, method), dataset))
