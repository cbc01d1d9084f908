"""Tasks: how graphs are cut into support and target sets, and what is trained on them.

>>> import numpy as np
>>> from same.graphs import planted
>>> store = planted(30)
>>> support, target = LinkPrediction().cut(store, np.arange(4), np.random.default_rng(0))
>>> support.inputs is target.inputs
True
"""

import inspect
from collections.abc import Sequence
from typing import Any

from same.errors import InputError
from same.graphs.examples import Examples
from same.graphs.store import GraphStore
from same.nn.pairs import Pair
from same.tasks.graph_classification import GraphClassification
from same.tasks.graph_regression import GraphRegression
from same.tasks.link_prediction import LinkPrediction
from same.tasks.node_classification import NodeClassification
from same.tasks.node_regression import NodeRegression
from same.tasks.task import GraphTask, Task

TASKS: dict[str, GraphTask] = {
    task.name: task
    for task in (GraphClassification(), NodeClassification(), LinkPrediction(), GraphRegression(), NodeRegression())
}


def offered(store: GraphStore) -> list[str]:
    """Names of the tasks that a set has everything for.

    >>> from same.graphs import planted
    >>> offered(planted(30))
    ['gc', 'nc', 'lp']
    """
    return [name for name, task in TASKS.items() if not task.missing(store)]


def make_tasks(
    kinds: Sequence[str | type[GraphTask] | GraphTask],
    store: GraphStore,
    *,
    pair: Pair = "symmetric",
    linear_heads: bool = False,
) -> list[GraphTask]:
    """Make tasks for a set.

    Args:
        kinds: names of tasks, keys of `TASKS`; or classes of tasks; or tasks, which keep their own options.
        store: the set; it must have what the tasks need.
        pair: pair features of the head of link prediction.
        linear_heads: leave out the hidden layer of the heads of graphs and pairs.

    >>> from same.graphs import planted
    >>> [task.classes for task in make_tasks(["gc", NodeClassification("node_y")], planted(30))]
    [('alike', 'unlike', 'any'), ('role 0', 'role 1', 'role 2')]
    """
    options: dict[type[GraphTask], dict[str, Any]] = {
        GraphClassification: {"linear": linear_heads},
        GraphRegression: {"linear": linear_heads},
        LinkPrediction: {"pair": pair, "linear": linear_heads},
    }
    tasks: list[GraphTask] = []
    for kind in kinds:
        if isinstance(kind, str):
            if kind not in TASKS:
                raise InputError(f"tasks: {kind!r} is not one of {', '.join(TASKS)}")
            kind = type(TASKS[kind])
        cls = kind if isinstance(kind, type) else type(kind)
        takes_store = "store" in inspect.signature(cls).parameters
        task: Any = kind if takes_store or isinstance(kind, GraphTask) else cls(**options.get(cls, {}))
        if missing := task.missing(store):
            raise InputError(f"tasks: {task.name} needs {missing}, and {store.name} has none")
        if isinstance(task, type):
            tasks.append(task(store))
        else:
            tasks.append(task if takes_store else task.bind(store))
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
    "offered",
]
