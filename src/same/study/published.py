"""The 240 numbers of the paper's Tables 1 to 4 (Buffelli & Vandin, 2020), for comparison."""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

NAMES = {"classical": "Cl", "finetuned": "FT", "isame": "iSAME", "esame": "eSAME"}
"""Names of the methods in the paper."""


class Published(NamedTuple):
    """A published mean and its standard deviation, if the paper has one, in percent."""

    value: float
    std: float | None


@cache
def _table() -> dict[tuple[str, str, str, str, str], Published]:
    text = resources.files("same.study").joinpath("published.csv").read_text(encoding="utf-8")
    return {
        (row["question"], row["trained_on"], row["measured"], row["model"], row["dataset"]): Published(
            float(row["value"]), float(row["std"]) if row["std"] else None
        )
        for row in csv.DictReader(text.splitlines())
    }


def published(question: str, tasks: tuple[str, ...], measured: str, method: str, dataset: str) -> Published | None:
    """The number that the paper reports; None if it has none.

    Args:
        question: question, `Q1` to `Q4`.
        tasks: tasks the model was trained on.
        measured: task that is measured, or `delta_m`.
        method: name of the method in this package.
        dataset: name of the dataset: ENZYMES, PROTEINS, DHFR or COX2.

    >>> published("Q1", ("nc",), "nc", "classical", "ENZYMES")
    Published(value=87.5, std=1.9)
    """
    order = [task for task in ("gc", "nc", "lp") if task in tasks]
    return _table().get((question, "+".join(order), measured, NAMES.get(method, method), dataset))
