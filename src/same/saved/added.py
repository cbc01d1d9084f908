"""Tasks added to a trained model: linear heads on its frozen embeddings."""

import logging
from collections.abc import Sized
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from same.episodes import HEAD_NODES, PARTS, part_examples, sample_graphs, to_device
from same.errors import InputError
from same.graphs import GraphStore, Split
from same.graphs.batch import Examples
from same.graphs.flat import Array
from same.graphs.labels import Labels, Value
from same.graphs.splits import hold_out
from same.linear import LinearHead, fit_head
from same.metrics import Kind
from same.nn.embedding import encode_once, in_pieces
from same.nn.pairs import check_pairs
from same.saved.trained import Trained, describe, stand_in
from same.tasks import GraphTask, named_task
from same.tasks.classification import Classification
from same.tasks.labelled import LabelTask
from same.tasks.task import features

log = logging.getLogger("same")

MIN_GRAPHS = 10
"""Of fewer graphs, no share is held out."""

_METRICS: dict[Kind, str] = {"classes": "accuracy", "links": "ROC AUC", "numbers": "R²"}


@dataclass(frozen=True, repr=False)
class AddedTask:
    """What the linear head of a new task was fitted to, and what it scores.

    Attributes:
        name: name of the task.
        kind: what it predicts: `classes`, `links` or `numbers`.
        unit: what one example is: `graph`, `node` or `pair`.
        classes: classes as they were given; none for links and numbers.
        train: number of examples that the head was fitted to.
        validation: number of held-out examples, which chose C, the calibration and the pooling.
        score: accuracy, ROC AUC or R² of the head on the held-out examples; None without any.
        baseline: the same of a constant prediction: the most frequent class, or the mean.
    """

    name: str
    kind: Kind
    unit: str
    classes: tuple[Value, ...]
    train: int
    validation: int
    score: float | None
    baseline: float | None

    @property
    def metric(self) -> str:
        """Name of the score."""
        return _METRICS[self.kind]

    def __repr__(self) -> str:
        kind = f"{len(self.classes)} classes" if self.classes else self.kind
        result = "nothing held out, so C = 1, not calibrated"
        if self.score is not None:
            held = f"{self.metric} {self.score:.2f} on {self.validation} held-out {self.unit}s"
            result = f"{held}, constant baseline {round(self.baseline or 0, 2) + 0:.2f}"
        return f"AddedTask({self.name}: {self.train} {self.unit}s, {kind}; {result})"


class _Request(NamedTuple):
    """A new task, and graphs with labels for it."""

    kind: str  # See `named_task`.
    task: GraphTask
    store: GraphStore
    y: Array | None  # Codes of classes, or 0 and 1 of pairs.
    graph: Array  # Graph of each of them.
    pairs: Array | None


def add_task(
    trained: Trained, name: str, store: GraphStore, y: Any = None, *, pairs: Any = None, validation: Any = 0.1
) -> tuple[Trained, AddedTask]:
    """Return a model with one more task: a linear head, fitted to its frozen embeddings.

    Args:
        trained: the model, which stays as it is.
        name: name of the new task. A task that was added under this name before is replaced.
        store: graphs with the inputs of the model; of a very large set, a random sample is used.
        y: labels, see `same.GraphEncoder.add_task`.
        pairs: [2, p] pairs of nodes that the labels belong to.
        validation: share of the graphs to hold out, or their indices; None or 0 for none.
    """
    request = _request(trained, name, store, y, pairs)
    task, device = request.task, next(trained.model.parameters()).device
    train, *held = to_device(_draw(trained, request, _split(request, validation, trained.config.seed)), device)
    if not held:
        log.warning("%s: nothing is held out for validation: C = 1, and probabilities are not calibrated", name)
    with torch.no_grad():
        train, *held = encode_once(in_pieces(trained.encoder), [train, *held])
    head = fit_head(task.kind, *(features(task, each) for each in (train, *held)))
    changed = _with_head(trained, request, head)

    y = train.y.cpu()
    scores: list[float | None] = [None, None]
    for each in held:
        constant = y.bincount(minlength=task.outputs) if isinstance(task, Classification) else y.mean(dim=0)
        outputs = (changed.output(task, each), constant.expand(len(each.y), *constant.shape))
        scores = [task.score(output, replace(each, y=each.y.cpu())) for output in outputs]
    unit = task.level if isinstance(task, LabelTask) else "pair"
    classes = getattr(task, "classes", None) or ()
    counts = (len(y), sum(len(each.y) for each in held))
    return changed, AddedTask(name, task.kind, unit, classes, *counts, *scores)


def pair_labels(y: Any, pairs: Array) -> Array:
    """Return the [p] labels of [2, p] pairs as whole numbers, after checking that each is 0 or 1."""
    if y is None:
        raise InputError("y: pairs need labels, 1 or 0 for each")
    array = np.asarray(y)
    if array.shape != pairs.shape[1:]:
        raise InputError(f"y: {array.size} labels for {pairs.shape[1]} pairs")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError("y: the labels of pairs are 1 or 0")
    return array.astype(np.int64)


def _request(trained: Trained, name: Any, store: GraphStore, y: Any, pairs: Any) -> _Request:
    """A new task for labels, and the graphs with them."""
    own = [task for task in trained.tasks if task.name not in trained.added]
    taken = {"y", "node_y", *(task.name for task in own), *(getattr(task, "column", None) for task in own)}
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"add_task: a name is letters, digits and underscores, as in 'toxic', not {name!r}")
    if name in taken:
        raise InputError(f"add_task: the name {name!r} is taken by the model; choose another one")
    y = store.labels.get(name) if y is None and pairs is None else y
    codes, graph, kind = None, np.arange(len(store)), "lp"
    if pairs is not None:
        kind, pairs = "pairs", check_pairs(pairs, store.node_ptr)
        codes, graph = pair_labels(y, pairs), np.searchsorted(store.node_ptr, pairs[0], side="right") - 1
    elif y is not None:
        column = _column(store, y)
        store, is_node = store.with_labels(name, column), column.level == "node"
        if is_node:
            graph = np.repeat(graph, np.diff(store.node_ptr))
        if column.classes is None:
            kind = "node_regression" if is_node else "graph_regression"
        else:
            kind, codes = "nc" if is_node else "gc", column.y
        shown = store.inputs is not None and store.inputs.classes is not None
        if shown and is_node and np.array_equal(column.values, store.labels[store.column_name("node") or ""].values):
            raise InputError(f"add_task: {name}: the encoder sees these node labels (node_labels='input')")
    task = named_task(kind, name, trained.config.pair).bind(store)
    if pairs is None and (missing := task.missing(store)):
        raise InputError(f"add_task: {name} needs {missing}")
    return _Request(kind, task, store, codes, graph, pairs)


def _column(store: GraphStore, y: Any) -> Labels:
    """Labels as a column; as many as there are nodes belong to the nodes, unless every graph has one node."""
    if isinstance(y, Labels):
        return y
    count = len(y) if isinstance(y, Sized) and np.iterable(y) else 0  # An array may have no dimensions.
    if count not in (len(store), store.num_nodes):
        raise InputError(f"y: {count} labels for {len(store)} graphs with {store.num_nodes} nodes")
    return Labels.of(y, "graph" if count == len(store) else "node", name="y")


def _split(request: _Request, validation: Any, seed: int) -> Split:
    """Graphs to fit to and graphs to hold out, stratified by the new classes; no class is held out as a whole."""
    store, task = request.store, request.task
    is_share = isinstance(validation, int | float)
    if validation is None or (is_share and (not validation or len(store) < MIN_GRAPHS)):
        return Split(np.arange(len(store)), *[np.empty(0, np.int64)] * 2)
    parts = hold_out(
        store.with_labels("y", store.labels[task.name]) if request.kind == "gc" else store, validation, seed
    )
    if request.y is None:
        return parts
    held = np.isin(request.graph, parts.validation)
    back = request.graph[~np.isin(request.y, request.y[~held])]
    return Split(np.union1d(parts.train, back), np.setdiff1d(parts.validation, back), parts.test)


def _draw(trained: Trained, request: _Request, parts: Split) -> list[Examples]:
    """Examples to fit to, and held-out examples if there are any."""
    store, task, sets = request.store, request.task, list[Examples]()
    keys = {"seed": trained.config.seed, "split": trained.config.split}
    for part, ids in zip(PARTS, (parts.train, parts.validation), strict=False):
        some = sample_graphs(store, ids, HEAD_NODES, **keys)
        if len(some) < len(ids):
            log.info("%s: a random sample of %d of %d %s graphs is used", task.name, len(some), len(ids), part)
        if request.pairs is None:
            sets += [examples for _, examples in part_examples(store, some, [task], part, **keys)]
        else:
            sets.append(_pair_examples(request, some))
    train, held = sets
    if not len(train.y) or (train.y == train.y[:1]).all():
        raise InputError(f"add_task: {task.name}: all {len(train.y)} examples to fit to have the same label")
    return [train, held] if len(held.y) else [train]


def _pair_examples(request: _Request, ids: Array) -> Examples:
    """The pairs in some graphs."""
    assert request.pairs is not None
    batch, place = request.store.cut(ids), np.full(len(request.store), -1)
    place[ids] = np.arange(len(ids))
    here = place[request.graph] >= 0
    graph = request.graph[here]
    shift = batch.node_ptr.numpy()[place[graph]] - request.store.node_ptr[graph]
    y = torch.from_numpy(np.asarray(request.y)[here]).to(batch.x.dtype)
    return Examples(batch, y, torch.from_numpy(request.pairs[:, here] + shift))


def _with_head(trained: Trained, request: _Request, head: LinearHead) -> Trained:
    """The model with the task and its linear head."""
    task = request.task
    graphs, labels = describe(trained.like), describe(request.store)["labels"]
    graphs["labels"] = {n: c for n, c in graphs["labels"].items() if n != task.name}
    if isinstance(task, LabelTask):
        graphs["labels"][task.name] = labels[task.name]
    summary = {**trained.training.get("linear", {}), task.name: head.to_tensors()[1]}
    return replace(
        trained,
        tasks=[*(each for each in trained.tasks if each.name != task.name), task],
        linear=trained.linear | {task.name: head},
        like=stand_in(graphs).with_inputs(trained.inputs),
        training={**trained.training, "linear": summary},
        added=trained.added | {task.name: request.kind},
    )
