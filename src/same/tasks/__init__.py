"""Tasks: how graphs are cut into support and target sets, and what is learned from them.

>>> import numpy as np
>>> from same.graphs import planted
>>> store = planted(30)
>>> support, target = LinkPrediction(store).cut(store, np.arange(4), np.random.default_rng(0))
>>> support.inputs is target.inputs
True
"""

from collections.abc import Sequence
from typing import Any

from same.errors import InputError
from same.graphs.store import GraphStore
from same.nn.pairs import Pair
from same.tasks.graph_classification import GraphClassification
from same.tasks.link_prediction import LinkPrediction
from same.tasks.node_classification import NodeClassification
from same.tasks.regression import GraphRegression, NodeRegression
from same.tasks.task import Examples, GraphTask, Task

TASKS: dict[str, type[GraphTask]] = {
    task.name: task
    for task in (GraphClassification, NodeClassification, LinkPrediction, GraphRegression, NodeRegression)
}


def make_tasks(
    kinds: Sequence[str | type[GraphTask] | GraphTask],
    store: GraphStore,
    *,
    pair: Pair = "symmetric",
    linear_heads: bool = False,
) -> list[GraphTask]:
    """The tasks of these names, or of one's own, for a set.

    Args:
        kinds: keys of `TASKS`, classes of tasks or tasks, each once.
        store: the set; it must have what the tasks need.
        pair: what link prediction's head sees of two nodes.
        linear_heads: whether the heads of graphs and pairs go without the paper's hidden layer.
    """
    graph_wise = {"linear": linear_heads}
    options: dict[type[GraphTask], dict[str, Any]] = {
        GraphClassification: graph_wise,
        GraphRegression: graph_wise,
        LinkPrediction: {"pair": pair, "linear": linear_heads},
    }
    tasks: list[GraphTask] = []
    for given in kinds:
        if isinstance(given, str) and given not in TASKS:
            raise InputError(f"tasks: {given!r} is not one of {', '.join(TASKS)}")
        kind = TASKS[given] if isinstance(given, str) else given
        if missing := kind.missing(store):
            raise InputError(f"tasks: {kind.name} needs {missing}, and {store.name} has none")
        if isinstance(kind, GraphTask):
            tasks.append(kind)
        else:
            tasks.append(kind(store, **options.get(kind, {})))  # type: ignore[call-arg]
    names = [task.name for task in tasks]
    if not names or len(set(names)) < len(names):
        raise InputError(f"tasks: {','.join(names) or 'none'}: name one or more, each once")
    return tasks


__all__ = [
    "TASKS",
    "Examples",
    "GraphClassification",
    "GraphRegression",
    "GraphTask",
    "LinkPrediction",
    "NodeClassification",
    "NodeRegression",
    "Task",
    "make_tasks",
]
