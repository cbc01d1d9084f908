"""A training method of your own: every step learns one task, chosen at random.

A method says what one step draws from the graphs and turns it into one loss per task. Once registered, it works by its
name everywhere. From the command line:

    same train planted --method examples/own_method.py:Alternating --set max_epochs=20
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

import same
from same.episodes import Batch, concurrent_batch
from same.methods import Classical, register
from same.tasks import GraphTask


def one_task(store: same.GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator) -> Batch:
    """Draw the examples of one task."""
    return concurrent_batch(store, [tasks[rng.integers(len(tasks))]], ids, rng)


@register
class Alternating(Classical):
    """Classical training in which every step uses its graphs for one task."""

    name: ClassVar[str] = "alternating"
    summary = "learns one task per step, chosen at random"
    draw = staticmethod(one_task)
    draw_validation = staticmethod(concurrent_batch)  # Validation uses all tasks.


def main() -> dict[str, float]:
    """Train with the new method and with classical training; print the scores on graphs not seen in training."""
    graphs = same.load("planted")
    train, test = graphs[:240], graphs[240:]
    scores = {}
    for method in ("classical", "alternating"):
        model = same.GraphEncoder(method=method, width=64, max_epochs=20).fit(train)
        for task in ("gc", "nc", "lp"):
            scores[f"{method}, {task}"] = model.score(test, task=task)
        print(f"{method:12}" + "  ".join(f"{task} {scores[f'{method}, {task}']:.3f}" for task in ("gc", "nc", "lp")))
    return scores


if __name__ == "__main__":
    main()
