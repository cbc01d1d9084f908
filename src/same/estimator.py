"""SAME as a scikit-learn estimator: fit, transform, predict, save, load."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from same import fitted
from same.config import Config, make_config
from same.embedding import CHUNK, embed_graphs
from same.episodes import moved
from same.errors import InputError
from same.graphs import GraphStore, Labels, Split, as_store, hold_out
from same.probes.protocols import part_examples
from same.runs import CONFIG, MODEL, Own, find_device
from same.tasks import Examples, GraphTask
from same.weighting import Weighting

Array = np.ndarray
Report = Callable[[int, int, dict[str, Any]], None]

OUTPUTS = ("nodes", "graphs", "list")
_FIELDS = tuple(name for name in Config.model_fields if name not in ("dataset", "split"))


class SAME(TransformerMixin, BaseEstimator):
    """An encoder of graphs, learned for several tasks at once, as a scikit-learn transformer.

    Graphs may be a `GraphStore`, a PyG dataset or list of `Data`, a list of networkx graphs, or the name or path of a
    set. The parameters that are not listed here are those of `same.config.Config`, and have its defaults.

    Args:
        method: how to train, see `same.config.METHODS`.
        tasks: what to learn: names, or classes or objects of your own (`same.tasks.GraphTask`).
        max_epochs: the most passes over the training graphs; by default the paper's caps.
        seed: of everything that is random. The same seed and graphs give the same bits.
        device: `cpu`, `cuda`, `mps`, or `auto`: cuda where there is one, else cpu.
        degree: the one-hot degree up to this is a further input; by default 16, and none for a module of your own.
        output: what `transform` gives: `nodes`, a row a node; `graphs`, a row a graph, the mean of its nodes, which is
            what a classifier of graphs in a `Pipeline` takes; or `list`, an array of nodes a graph.
        validation: the share of graphs that are held back to tell when to stop, stratified by class; or their places.
        encoder: the name of a kind of layers; or an encoder of your own: a module, or a function from the number of
            columns to one, called as `module(x, edge_index)`. `layers`, `width` and so on are for the named ones.
        weighting: a name, or a `same.weighting.Weighting` of your own.
        report: is told how training goes, see `same.training.train`.

    Attributes:
        n_features_in_: how many attributes a node has.
        history_: what each validation found.
        classes_: the labels that `fit` was given as `y`, if it was; classes are otherwise told as 0, 1, …
        model_: the trained `same.nn.Model`.
        fitted_: everything that was learned.

    >>> import same
    >>> graphs = same.graphs.planted(60)
    >>> model = same.SAME(width=16, max_epochs=2).fit(graphs[:50])
    >>> model.transform(graphs[50:]).shape == (graphs[50:].num_nodes, 16)
    True
    >>> model.graph_embeddings(graphs[50:]).shape
    (10, 16)
    >>> len(model.predict("gc", graphs[50:]))
    10
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "model"))
    ...     same.SAME.load(Path(folder, "model")).n_features_in_
    24
    """

    def __init__(
        self,
        *,
        method: str = "esame",
        tasks: Any = ("gc", "nc", "lp"),
        max_epochs: int | None = None,
        seed: int = 0,
        device: str = "auto",
        output: str = "nodes",
        validation: Any = 0.1,
        scaling: str = "standardise",
        degree: int | None = None,
        walk: int = 0,
        encoder: Any = "gcn",
        layers: int = 3,
        width: int = 256,
        residual: bool = True,
        unit_norm: bool = True,
        batch_norm: bool = False,
        dropout: float = 0.0,
        pair: str = "symmetric",
        linear_heads: bool = False,
        inner_lr: float = 0.1,
        inner_steps: int = 1,
        first_order: bool = False,
        learn_inner_lr: bool = False,
        adapts: str = "all",
        outer_lr: float = 2e-3,
        weight_decay: float = 0.0,
        weighting: Any = "fixed",
        weights: Mapping[str, float] | None = None,
        clip: float = 10.0,
        average: float = 0.98,
        episodes_per_step: int = 1,
        batch_size: int = 48,
        validate_every: int = 5,
        validation_episodes: int = 2,
        patience: int = 50,
        stop_on: str = "loss",
        report: Report | None = None,
    ) -> None:
        self.method = method
        self.tasks = tasks
        self.max_epochs = max_epochs
        self.seed = seed
        self.device = device
        self.output = output
        self.validation = validation
        self.scaling = scaling
        self.degree = degree
        self.walk = walk
        self.encoder = encoder
        self.layers = layers
        self.width = width
        self.residual = residual
        self.unit_norm = unit_norm
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.pair = pair
        self.linear_heads = linear_heads
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.first_order = first_order
        self.learn_inner_lr = learn_inner_lr
        self.adapts = adapts
        self.outer_lr = outer_lr
        self.weight_decay = weight_decay
        self.weighting = weighting
        self.weights = weights
        self.clip = clip
        self.average = average
        self.episodes_per_step = episodes_per_step
        self.batch_size = batch_size
        self.validate_every = validate_every
        self.validation_episodes = validation_episodes
        self.patience = patience
        self.stop_on = stop_on
        self.report = report

    def fit(self, graphs: Any, y: Any = None) -> "SAME":
        """Learns an encoder from graphs.

        Args:
            graphs: in any form that is known.
            y: labels of the graphs, any that scikit-learn would take, or targets (floats), in the place of the graphs'
                own.
        """
        config, own = self._plan()
        _one_of("output", self.output, OUTPUTS)
        device, store, classes = find_device(self.device), as_store(graphs), None
        if y is not None:
            store, classes = _labelled(store, y)
        config = config.model_copy(update={"dataset": store.name})
        parts = _parts(store, self.validation, config.seed)
        report = self.report or (lambda step, steps, news: None)
        return self._settle(fitted.fit(config, own, store, parts, classes, device, report))

    def transform(self, graphs: Any, *, output: str | None = None) -> Any:
        """The embeddings of the nodes of graphs, whose nodes must have the attributes of those it was fitted to.

        Args:
            graphs: in any form that is known.
            output: `nodes`, `graphs` or `list`, as the parameter of that name, which it is by default.
        """
        store = self._known(graphs)
        wanted = _one_of("output", output or self.output, OUTPUTS)
        nodes, means = embed_graphs(self.fitted_.model.encoder, store)
        if wanted == "list":
            return np.split(nodes, store.node_ptr[1:-1])
        return nodes if wanted == "nodes" else means

    def graph_embeddings(self, graphs: Any) -> Array:
        """[graphs, width] the mean of the embeddings of each graph's nodes."""
        return self.transform(graphs, output="graphs")

    def node_embeddings(self, graphs: Any) -> tuple[Array, Array]:
        """[nodes, width] the embeddings of all nodes, and [nodes] the graph of each."""
        store = self._known(graphs)
        return self.transform(store, output="nodes"), np.repeat(np.arange(len(store)), np.diff(store.node_ptr))

    def predict(self, task: Any, graphs: Any, *, pairs: Any = None) -> Array:
        """What the model's own head tells of each graph, node or pair, as adapted to the training graphs.

        Args:
            task: one of those it was trained for.
            graphs: in any form that is known; labels are not used.
            pairs: for links, [2, p] pairs of nodes of the same graph, counted through all graphs as the rows of
                `transform` are. Edges of the graphs carry messages: leave out those that you ask for.

        Returns:
            Classes, numbers, or for pairs 1 (joined) and 0.
        """
        known, output = self._told("predict", task, graphs, pairs)
        if known.kind == "numbers":
            return output[:, 0] if output.ndim == 2 and output.shape[1] == 1 else output
        if known.kind == "links":
            return (output > 0).astype(np.int64)
        found = output.argmax(axis=1)
        return self.classes_[found] if known.name == "gc" and self.fitted_.classes is not None else found

    def predict_proba(self, task: Any, graphs: Any, *, pairs: Any = None) -> Array:
        """[examples, classes] the probabilities of what `predict` tells; for pairs, those of 0 and 1."""
        known, output = self._told("predict_proba", task, graphs, pairs)
        if known.kind == "numbers":
            raise InputError(f"predict_proba: {known.name} tells numbers, which have no probabilities; use predict")
        logits = torch.from_numpy(output)
        if known.kind == "links":
            return torch.stack([-logits, logits], dim=1).sigmoid().numpy()
        return logits.softmax(dim=1).numpy()

    def score(self, graphs: Any, y: Any = None, *, task: Any = None) -> float:
        """The score of the model's own head on graphs that have labels: accuracy, ROC AUC or R².

        Link prediction is scored on a fifth of the edges, which are removed, and as many random non-edges.

        Args:
            graphs: in any form that is known.
            y: labels of the graphs, in the place of their own.
            task: one of those it was trained for; by default the mean over all of them.
        """
        check_is_fitted(self, "fitted_")
        store = as_store(graphs)
        store = self._known(store if y is None else _labelled(store, y)[0])
        tasks = [self._task("score", name) for name in ([*self.fitted_.heads] if task is None else [task])]
        if not tasks:
            raise InputError(f"score: method={self.fitted_.config.method} has no heads; score what uses the embeddings")
        return float(np.mean([self._score(each, store) for each in tasks]))

    def _score(self, task: GraphTask, store: GraphStore) -> float:
        store = task.match(store)
        if missing := task.missing(store):
            raise InputError(f"score: {task.name} needs {missing}, and {store.name} has none")
        config, model = self.fitted_.config, self.fitted_.heads[task.name]
        # As the test graphs of a run are: the same pairs are drawn.
        part = part_examples(store, np.arange(len(store)), [task], "test", seed=config.seed, k=config.split)
        ((_, examples),) = moved(part, next(model.parameters()).device)
        with torch.no_grad():
            return task.score(model(task.name, examples), examples)

    def _told(self, what: str, task: Any, graphs: Any, pairs: Any) -> tuple[GraphTask, Array]:
        """A task, and what its head says of some graphs, a block of graphs at a time."""
        store, known = self._known(graphs), self._task(what, task)
        if (known.kind == "links") != (pairs is not None):
            raise InputError(f"{what}: pairs, [2, p] nodes, are needed for links and for nothing else")
        chosen = None if pairs is None else _checked_pairs(what, pairs, store)
        model, output, order = self.fitted_.heads[known.name], [], []
        where = next(model.parameters()).device
        with torch.no_grad():
            for start in range(0, len(store), CHUNK):
                stop = min(start + CHUNK, len(store))
                batch, index = store.cut(np.arange(start, stop)).to(where), None
                if chosen is not None:
                    first = store.node_ptr[start]
                    (here,) = np.nonzero((chosen[0] >= first) & (chosen[0] < store.node_ptr[stop]))
                    index = torch.from_numpy(chosen[:, here] - first).to(where)
                    order.append(here)
                output.append(model(known.name, Examples(batch, torch.empty(0), index)).cpu().numpy())
        rows = np.concatenate(output)
        return known, rows[np.argsort(np.concatenate(order))] if order else rows

    def _task(self, what: str, task: Any) -> GraphTask:
        name = getattr(task, "name", task)
        for known in self.fitted_.tasks:
            if known.name == name and name in self.fitted_.heads:
                return known
        heads = ", ".join(self.fitted_.heads) or f"none, as method={self.fitted_.config.method} has no heads"
        raise InputError(f"{what}: {name!r} is not one of the tasks that were learned: {heads}")

    def _known(self, graphs: Any) -> GraphStore:
        """Graphs as a store that shows what the encoder was trained to see."""
        check_is_fitted(self, "fitted_")
        return as_store(graphs).with_inputs(self.fitted_.inputs)

    def _plan(self) -> tuple[Config, Own]:
        """The parameters as a configuration, and what they have that no configuration names."""
        values = {name: _plain(getattr(self, name)) for name in _FIELDS}
        values["weights"] = dict(self.weights or {})
        given = _listed(self.tasks)
        values["tasks"] = tuple(task if isinstance(task, str) else task.name for task in given)
        if self.degree is None:
            # A module of one's own is made for the attributes; a function is told how many columns there are.
            values["degree"] = 0 if isinstance(self.encoder, torch.nn.Module) else Config.model_fields["degree"].default
        encoder = weighting = None
        if not isinstance(self.encoder, str) and callable(self.encoder):
            encoder, values["encoder"] = self.encoder, "gcn"
        if isinstance(self.weighting, Weighting):
            if self.weights:
                raise InputError("SAME: weights go with weighting='fixed'; one of your own has its own")
            weighting, values["weighting"] = self.weighting, "fixed"
        own = Own(encoder, tuple(task for task in given if not isinstance(task, str)), weighting)
        return make_config(values, "SAME"), own

    def _settle(self, found: fitted.Fitted) -> "SAME":
        self.fitted_, self.model_, self.history_ = found, found.model, found.history
        self.n_features_in_ = found.like.x.shape[1]
        if found.classes is not None:
            self.classes_ = np.array(found.classes)
        elif hasattr(self, "classes_"):
            del self.classes_
        return self

    def save(self, folder: str | Path) -> None:
        """Writes the fitted estimator to a new folder, as `config.json` and `model.safetensors`.

        Of encoders, tasks and weightings of your own, only what they have learned is written: `load` wants them again.
        """
        check_is_fitted(self, "fitted_")
        fitted.save(self.fitted_, Path(folder), {"output": self.output, "validation": _plain(self.validation)})

    @classmethod
    def load(
        cls, folder: str | Path, *, encoder: Any = None, tasks: Any = (), weighting: Any = None, device: str = "auto"
    ) -> "SAME":
        """The fitted estimator in a folder that `save` wrote; neither the training graphs nor any pickle is needed.

        Args:
            folder: where it is.
            encoder: the encoder of your own, if it was fitted with one: a function that makes it, or a module.
            tasks: the tasks of your own, if it was fitted with any. A class is called with a set of one small graph
                that has the right classes; if it learns more than that from its set, give an object.
            weighting: the weighting of your own, if it was fitted with one.
            device: where to put it.
        """
        own = Own(encoder, _listed(tasks), weighting)
        found, further = fitted.load(Path(folder), own, find_device(device))
        parameters = {name: getattr(found.config, name) for name in _FIELDS}
        parameters["weights"] = parameters["weights"] or None
        kinds = {task.name: task for task in own.tasks}
        parameters["tasks"] = tuple(kinds.get(name, name) for name in found.config.tasks)
        for part in ("encoder", "weighting"):
            if getattr(own, part) is not None:
                parameters[part] = getattr(own, part)
        further = {name: further[name] for name in ("output", "validation") if name in further}
        return cls(**parameters, **further, device=device)._settle(found)

    def push_to_hub(self, repo_id: str, *, private: bool | None = None) -> None:
        """Uploads the fitted estimator to a repository of the Hugging Face Hub, made if it is not there.

        Args:
            repo_id: `user/name`.
            private: whether a repository that is made is private; by default what the account says.
        """
        check_is_fitted(self, "fitted_")
        hub = _hub("push_to_hub")
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder, "model"))
            hub.create_repo(repo_id, private=private, exist_ok=True)
            hub.upload_folder(repo_id=repo_id, folder_path=str(Path(folder, "model")))

    @classmethod
    def from_pretrained(cls, source: str | Path, *, revision: str | None = None, **how: Any) -> "SAME":
        """The fitted estimator in a folder, or in a repository of the Hugging Face Hub.

        Args:
            source: a folder, or `user/name`.
            revision: of the repository.
            how: `encoder`, `tasks`, `weighting` and `device`, see `load`.
        """
        if Path(source).is_dir():
            return cls.load(source, **how)
        text = str(source)
        if isinstance(source, Path) or text.count("/") != 1 or text.startswith(("/", ".", "~")):
            raise InputError(f"from_pretrained: {text!r} is neither a folder that is there nor a repository user/name")
        hub = _hub("from_pretrained")
        folder = hub.snapshot_download(text, revision=revision, allow_patterns=[CONFIG, MODEL])
        return cls.load(folder, **how)


def _hub(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(f"{what}: needs huggingface_hub: pip install 'same-gnn[hub]'") from None
    return huggingface_hub


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"{name}: {value!r} is not one of {', '.join(known)}")
    return str(value)


def _plain(value: Any) -> Any:
    """A value as the configuration and JSON take it: searches over parameters hand in numpy's."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _listed(tasks: Any) -> tuple[Any, ...]:
    """One task or many as a tuple of names, stripped, and tasks of one's own, checked."""
    given = tasks.split(",") if isinstance(tasks, str) else tasks if isinstance(tasks, Iterable) else (tasks,)
    found = tuple(task.strip() if isinstance(task, str) else task for task in given)
    for task in found:
        kind = task if isinstance(task, type) else type(task)
        if not issubclass(kind, str | GraphTask):
            raise InputError(f"tasks: {task!r} is neither a name nor a GraphTask")
        if kind is not str and not str(getattr(task, "name", "")).isidentifier():
            raise InputError(f"tasks: {kind.__name__} needs a name, such as name = 'degree'")
    return found


def _labelled(store: GraphStore, y: Any) -> tuple[GraphStore, list[Any] | None]:
    """A set with other labels of its graphs; and their classes, None for numbers."""
    column = Labels.of(_one_each(store, y), "graph", name="y")
    return store.with_labels("y", column), None if column.classes is None else list(column.classes)


def _one_each(store: GraphStore, y: Any) -> Array:
    y = np.asarray(y)
    if y.ndim == 0 or len(y) != len(store):
        raise InputError(f"y: {0 if y.ndim == 0 else len(y)} labels for {len(store)} graphs")
    if y.ndim > (2 if y.dtype.kind == "f" else 1):
        raise InputError(f"y: has the shape {y.shape}, expected one label for each of {len(store)} graphs")
    return y


def _parts(store: GraphStore, validation: Any, seed: int) -> Split:
    """The graphs to learn from, and those that are held back: a share, or those that are named."""
    validation = _plain(validation)
    if isinstance(validation, int | float) and not isinstance(validation, bool):
        return hold_out(store, validation, seed)
    held = np.zeros(len(store), bool)
    try:
        held[np.asarray(validation)] = True
    except (IndexError, ValueError, TypeError):
        raise InputError(f"validation: expected a share or places of graphs, 0..{len(store) - 1}") from None
    if held.all():
        raise InputError("validation: names all graphs, which leaves none to learn from")
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def _checked_pairs(what: str, pairs: Any, store: GraphStore) -> Array:
    found = np.asarray(pairs)
    if found.ndim != 2 or len(found) != 2 or found.dtype.kind not in "iu":
        raise InputError(f"{what}: pairs have the shape {found.shape}, expected whole numbers, (2, p)")
    if (outside := found[(found < 0) | (found >= store.num_nodes)]).size:
        raise InputError(f"{what}: there is no node {outside[0]} to pair; the graphs have 0..{store.num_nodes - 1}")
    graph = np.searchsorted(store.node_ptr, found, side="right")
    if (graph[0] != graph[1]).any():
        u, v = found[:, np.argmax(graph[0] != graph[1])]
        raise InputError(f"{what}: the nodes {u} and {v} are of different graphs")
    return found.astype(np.int64)
