"""Tasks: how graphs are cut into support and target sets, and what is trained on them."""

import copy
from collections.abc import Sequence
from typing import Any

from same.errors import InputError
from same.graphs.batch import Examples
from same.graphs.store import GraphStore
from same.nn.pairs import Pair
from same.tasks.classification import GraphClassification, NodeClassification
from same.tasks.labelled import LabelTask
from same.tasks.link_prediction import GivenPairs, LinkPrediction
from same.tasks.regression import GraphRegression, NodeRegression
from same.tasks.task import GraphTask, Task

__all__ = ["TASKS", "Examples", "GraphClassification", "GraphRegression", "GraphTask", "LinkPrediction"]
__all__ += ["NodeClassification", "NodeRegression", "Task", "make_tasks", "named_task", "offered"]

TaskKind = str | type[GraphTask] | GraphTask
TASKS: dict[str, GraphTask] = {
    task.name: task
    for task in (GraphClassification(), NodeClassification(), LinkPrediction(), GraphRegression(), NodeRegression())
}


def offered(store: GraphStore) -> list[str]:
    """Names of the tasks that a set has everything for, without those whose labels the encoder sees."""
    return [name for name, task in TASKS.items() if not task.missing(store) and not _is_shown(task, store)]


def make_tasks(
    kinds: Sequence[TaskKind],
    store: GraphStore,
    *,
    pair: Pair = "symmetric",
    linear_heads: bool = False,
    pool: str = "mean",
) -> list[GraphTask]:
    """Make tasks for a set.

    Args:
        kinds: names of tasks, keys of `TASKS`; or classes, which are called without a set; or tasks with options.
        store: the set; it must have what the tasks need.
        pair: pair features of the head of link prediction.
        linear_heads: leave out the hidden layer of the heads of graphs and pairs.
        pool: pooling of tasks on graphs, see `same.nn.pool_nodes`.
    """
    options: dict[type[GraphTask], dict[str, Any]] = {
        GraphClassification: {"linear": linear_heads, "pool": pool},
        GraphRegression: {"linear": linear_heads, "pool": pool},
        LinkPrediction: {"pair": pair, "linear": linear_heads},
    }
    tasks: list[GraphTask] = []
    for kind in kinds:
        if isinstance(kind, str):
            if kind not in TASKS:
                raise InputError(f"tasks: {kind!r} is not one of {', '.join(TASKS)}")
            kind = type(TASKS[kind])
        task = kind(**options.get(kind, {})) if isinstance(kind, type) else kind
        if missing := task.missing(store):
            raise InputError(f"tasks: {task.name} needs {missing}, and {store.name} has none")
        if _is_shown(task, store):
            clash = f"{task.name} predicts the node labels that node_labels=input shows to the encoder"
            raise InputError(f"tasks: {clash}; leave out one of them")
        tasks.append(task.bind(store))
    names = [task.name for task in tasks]
    if not names or len(set(names)) < len(names):
        raise InputError(f"tasks: {','.join(names) or 'none'}: name one or more, each once")
    return tasks


def _is_shown(task: GraphTask, store: GraphStore) -> bool:
    """Whether the encoder sees the labels that a task predicts. Such a task is neither trained nor probed."""
    shown = store.inputs is not None and store.inputs.classes is not None
    return shown and task.reads(store) == store.column_name("node")


def named_task(kind: str, name: str, pair: Pair = "symmetric") -> GraphTask:
    """Make a task of a kind, a key of `TASKS` or `pairs`, under a name of its own, which is also that of its column.

    >>> named_task("gc", "toxic").column
    'toxic'
    """
    task = copy.copy(GivenPairs() if kind == "pairs" else TASKS[kind])
    task.name = name
    if isinstance(task, LabelTask):
        task.column = name
    elif isinstance(task, LinkPrediction):
        task.pair = pair
    return task
