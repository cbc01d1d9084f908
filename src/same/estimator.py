"""A graph encoder as a scikit-learn estimator: fit, transform, predict, save, load."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from same import experiment, saved
from same.config import Config, make_config
from same.errors import InputError
from same.graphs import GraphStore, as_store
from same.graphs.batch import Examples
from same.graphs.labels import Labels, Level
from same.graphs.splits import hold_out
from same.methods.base import Method
from same.nn.embedding import embed_graphs
from same.nn.pairs import check_pairs
from same.saved import hub
from same.saved.added import AddedTask, add_task, pair_labels
from same.saved.trained import Custom, Head, Trained, find_device
from same.tasks import GraphTask
from same.tasks.labelled import LabelTask
from same.training.progress import ReportFunction
from same.weighting import Weighting

Array = np.ndarray

OUTPUTS = ("nodes", "graphs", "list")
_FIELDS = tuple(name for name in Config.model_fields if name not in ("dataset", "split"))


class GraphEncoder(TransformerMixin, BaseEstimator):
    """A graph encoder, trained for several tasks at once, as a scikit-learn transformer.

    Graphs may be a `GraphStore`, a PyG dataset or list of `Data`, a list of networkx graphs, or the name or path of a
    set. Parameters that are not listed here are those of `same.config.Config`, with its defaults.

    Args:
        method: training method: a name, see `same.methods.METHODS`, or a `same.methods.Method`.
        tasks: tasks to learn: names, or classes or objects of your own (`same.tasks.GraphTask`).
        max_epochs: maximum number of epochs; by default 200, or fewer if they would be more than 20,000 steps.
        max_seconds: seconds of training after which it ends, for each phase of `finetuned`; no limit by default.
        seed: seed of everything random. The same seed and graphs give the same bits, in any number of threads. If your
            own encoder, weighting or method draws from torch's global generator, its training steps run one at a time.
        device: `cpu`, `cuda`, `mps`, or `auto`: cuda if available, else cpu.
        degree: one-hot degrees up to this as further inputs; 16 by default, and 0 for a module of your own.
        node_labels: `input` to show node classes to the encoder, one-hot, so that no task can predict them; `none` by
            default. Whatever the model is used on must then have node labels.
        output: output of `transform`: `nodes`, one row per node; `graphs`, one row per graph, the mean of its nodes,
            for a graph classifier in a `Pipeline`; or `list`, one array of nodes per graph.
        validation: fraction of the graphs held out, stratified by class, or their indices. They stop training, and
            choose the C of linear heads; with None, training takes all its epochs, and C is 1.
        encoder: kind of layers; or an encoder of your own: a module, or a function from the number of input columns to
            a module, called as `module(x, edge_index)`. `layers`, `width` and so on apply to named kinds only.
        pool: pooling of the heads of graph tasks: `mean`, `sum`, `max`, `std`, `size`, or several joined by `+`, as in
            `mean+max`. Sums and `size` see how large a graph is, `max` sees a single node; see `same.nn.pool_nodes`.
        weighting: a name, or a `same.weighting.Weighting` of your own.
        report: function that is called with the progress, see `same.training.Report`.

    Attributes:
        n_features_in_: number of attributes of a node.
        history_: record of each validation.
        classes_: classes of the graphs, as they were given; absent without graph classes.
        model_: the trained `same.nn.Model`.
        trained_: everything that was learned, a `same.experiment.Trained`.

    >>> import same
    >>> graphs = same.graphs.planted(60)
    >>> model = same.GraphEncoder(width=16, max_epochs=2).fit(graphs[:50])
    >>> model.transform(graphs[50:]).shape == (graphs[50:].num_nodes, 16)
    True
    >>> model.graph_embeddings(graphs[50:]).shape
    (10, 16)
    >>> len(model.predict(graphs[50:], task="gc"))
    10
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "model"))
    ...     same.GraphEncoder.load(Path(folder, "model")).n_features_in_
    24
    """

    trained_: Trained

    def __init__(
        self,
        *,
        method: Any = "esame",
        tasks: Any = ("gc", "nc", "lp"),
        max_epochs: int | None = None,
        max_seconds: float | None = None,
        seed: int = 0,
        device: str = "auto",
        output: str = "nodes",
        validation: Any = 0.1,
        scaling: str = "standardise",
        degree: int | None = None,
        walk: int = 0,
        node_labels: str = "none",
        encoder: Any = "gcn",
        layers: int = 3,
        width: int = 256,
        residual: bool = True,
        unit_norm: bool = True,
        batch_norm: bool = False,
        dropout: float = 0.0,
        pair: str = "symmetric",
        linear_heads: bool = False,
        pool: str = "mean",
        inner_lr: float = 0.1,
        inner_steps: int = 1,
        first_order: bool = False,
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
        report: ReportFunction | None = None,
    ) -> None:
        self.method = method
        self.tasks = tasks
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.seed = seed
        self.device = device
        self.output = output
        self.validation = validation
        self.scaling = scaling
        self.degree = degree
        self.walk = walk
        self.node_labels = node_labels
        self.encoder = encoder
        self.layers = layers
        self.width = width
        self.residual = residual
        self.unit_norm = unit_norm
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.pair = pair
        self.linear_heads = linear_heads
        self.pool = pool
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.first_order = first_order
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

    def fit(self, graphs: Any, y: Any = None) -> "GraphEncoder":
        """Train an encoder on graphs.

        Args:
            graphs: graphs in any supported form.
            y: classes or (floats) targets of the graphs, in place of their own.
        """
        config, custom = self._config()
        _one_of("output", self.output, OUTPUTS)
        device, store = find_device(self.device), _labelled(as_store(graphs), y)
        config = config.model_copy(update={"dataset": store.name})
        parts = hold_out(store, _plain(self.validation), config.seed)
        return self._set(experiment.fit(config, store, parts, custom=custom, device=device, report=self.report))

    def transform(self, graphs: Any, *, output: str | None = None) -> Any:
        """Return the embeddings of graphs whose nodes have the attributes of the training graphs.

        Args:
            graphs: graphs in any supported form.
            output: `nodes`, `graphs` or `list`; the parameter of that name by default.
        """
        store = self._store(graphs)
        wanted = _one_of("output", output or self.output, OUTPUTS)
        nodes, means = embed_graphs(self.trained_.encoder, store)
        if wanted == "list":
            return np.split(nodes, store.node_ptr[1:-1])
        return nodes if wanted == "nodes" else means

    def graph_embeddings(self, graphs: Any) -> Array:
        """Return the [graphs, width] means of the embeddings of each graph's nodes."""
        return self.transform(graphs, output="graphs")

    def node_embeddings(self, graphs: Any) -> tuple[Array, Array]:
        """Return the [nodes, width] embeddings of all nodes, and the [nodes] index of the graph of each."""
        store = self._store(graphs)
        return self.transform(store, output="nodes"), np.repeat(np.arange(len(store)), np.diff(store.node_ptr))

    def predict(self, graphs: Any, *, task: Any, pairs: Any = None, head: Head = "linear") -> Array:
        """Predict each graph, node or pair.

        Args:
            graphs: graphs in any supported form; their labels are not used.
            task: task that was trained or added.
            pairs: for links, [2, p] pairs of nodes of the same graph, counted through all graphs as the rows of
                `transform` are. Edges of the graphs carry messages: leave out those that you ask for.
            head: `linear`, a linear head on the embeddings, fitted to the training graphs; or `own`, the head that
                the model was trained with, adapted to the training graphs if the method adapts.

        Returns:
            Classes as they were given, numbers, or for pairs 1 (edge) and 0 (no edge).
        """
        chosen, output = self._outputs("predict", task, graphs, pairs, head)
        if chosen.kind == "numbers":
            return output[:, 0] if output.ndim == 2 and output.shape[1] == 1 else output
        if chosen.kind == "links":
            return (output > 0).astype(np.int64)
        return self._classes(chosen, output.shape[1])[output.argmax(axis=1)]

    def predict_proba(self, graphs: Any, *, task: Any, pairs: Any = None, head: Head = "linear") -> Array:
        """Return the [examples, classes] probabilities of the classes; for pairs, those of 0 and 1.

        Those of linear heads are calibrated on the validation graphs. For the arguments see `predict`.
        """
        logits = torch.from_numpy(self._logits("predict_proba", task, graphs, pairs, head))
        if logits.ndim == 1:
            return torch.stack([-logits, logits], dim=1).sigmoid().numpy()
        return logits.softmax(dim=1).numpy()

    def decision_function(self, graphs: Any, *, task: Any, pairs: Any = None, head: Head = "linear") -> Array:
        """Return the [examples, classes] logits of the classes, or [examples] for two classes and for pairs.

        A positive value stands for the second class, or for an edge. For the arguments see `predict`.
        """
        logits = self._logits("decision_function", task, graphs, pairs, head)
        return logits[:, 1] - logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 2 else logits

    def score(self, graphs: Any, y: Any = None, *, task: Any = None, pairs: Any = None, head: Head = "linear") -> float:
        """Return the score of a head on labelled graphs: accuracy, ROC AUC or R².

        Classes are matched by value. Without `pairs`, links are scored on a fifth of the edges, which are removed, and
        as many random non-edges.

        Args:
            graphs: graphs in any supported form.
            y: classes or targets of the graphs, in place of their own; for an added task, as `add_task` takes them.
            task: task that was trained or added; by default the mean over all that were trained.
            pairs: for links, the [2, p] pairs of nodes that `y` belongs to; see `predict`.
            head: see `predict`.
        """
        check_is_fitted(self, "trained_")
        trained = self.trained_
        names = [each.name for each in trained.tasks if each.name not in trained.added] if task is None else [task]
        if not names:
            raise InputError("score: the model has no tasks to score; it was saved by version 0.1 as an encoder alone")
        tasks = [self._task("score", name) for name in names]
        for each in tasks:
            trained.check(each, head)
        if pairs is not None:
            output = torch.from_numpy(self._outputs("score", task, graphs, pairs, head)[1])
            return tasks[0].score(output, Examples(None, torch.from_numpy(pair_labels(y, np.asarray(pairs)))))
        store = self._store(graphs)
        return float(np.mean([trained.score(each, _labelled(store, y, each), head=head) for each in tasks]))

    def add_task(self, name: str, graphs: Any, y: Any = None, *, pairs: Any = None, validation: Any = 0.1) -> AddedTask:
        """Add a task that was not trained: fit a linear head to the embeddings of labelled graphs.

        The encoder and the other tasks stay as they are. `predict`, `score` and `save` know the new task by its name.
        C, the calibration and the pooling are chosen on held-out graphs. The head is not fitted to these.

        Args:
            name: name of the task. A task that was added under this name before is replaced.
            graphs: graphs in any supported form, those of the training or others. Of more than about 260,000 nodes, a
                random sample is used.
            y: one label per graph or per node: whole numbers, booleans or text are classes, floats are numbers. With
                `pairs`, 1 or 0 per pair. By default the labels called `name` that the graphs have. Without any, the
                task is to predict links: a fifth of the edges and as many random non-edges, as for the task `lp`.
            pairs: [2, p] pairs of nodes, counted as in `predict`. All edges of the graphs carry messages: leave out
                those that must not be seen.
            validation: share of the graphs to hold out, stratified by class, or their indices; None for none. Of
                fewer than ten graphs, no share is held out. Without held-out graphs, C = 1 and probabilities are not
                calibrated.

        Returns:
            The numbers of examples, and the scores of the head and of a constant prediction on held-out graphs.

        >>> import same
        >>> graphs = same.graphs.planted(60)
        >>> model = same.GraphEncoder(tasks="nc", method="untrained", width=16).fit(graphs)
        >>> added = model.add_task("large", graphs, np.diff(graphs.node_ptr) > 20)
        >>> len(model.predict(graphs[:5], task="large"))
        5
        """
        store, options = self._store(graphs), {"pairs": pairs, "validation": _plain(validation)}
        trained, added = add_task(self.trained_, name, store, y, **options)
        self.trained_ = trained
        return added

    def _logits(self, caller: str, task: Any, graphs: Any, pairs: Any, head: Head) -> Array:
        chosen, output = self._outputs(caller, task, graphs, pairs, head)
        if chosen.kind == "numbers":
            raise InputError(f"{caller}: {chosen.name} predicts numbers, not classes; use predict")
        return output

    def _outputs(self, caller: str, task: Any, graphs: Any, pairs: Any, head: Head) -> tuple[GraphTask, Array]:
        """A task, and the outputs of one of its heads."""
        if isinstance(graphs, str) and not isinstance(task, str):
            raise InputError(f"{caller}: graphs come first: {caller}(graphs, task={graphs!r})")
        check_is_fitted(self, "trained_")
        chosen = self._task(caller, task)
        if (chosen.kind == "links") != (pairs is not None):
            raise InputError(f"{caller}: pairs, [2, p] nodes, are needed for links and for nothing else")
        self.trained_.check(chosen, head)
        store = self._store(graphs)
        checked = None if pairs is None else check_pairs(pairs, store.node_ptr)
        return chosen, self.trained_.outputs(chosen, store, checked, head=head)

    def _classes(self, task: GraphTask, count: int) -> Array:
        """The classes of a task as they were given; codes for a task of the user's own that does not name them."""
        classes = getattr(task, "classes", None)
        if not isinstance(classes, tuple):
            return np.arange(count)
        return np.array(classes, object if any(isinstance(value, str) for value in classes) else None)

    def _task(self, caller: str, task: Any) -> GraphTask:
        name, known = getattr(task, "name", task), {each.name: each for each in self.trained_.tasks}
        if name not in known:
            tasks = ", ".join(known) or "none"
            raise InputError(f"{caller}: {name!r} is not one of the tasks that were trained or added: {tasks}")
        return known[name]

    def _store(self, graphs: Any) -> GraphStore:
        """Graphs as a store with the inputs of the encoder."""
        check_is_fitted(self, "trained_")
        return as_store(graphs).with_inputs(self.trained_.inputs)

    def _config(self) -> tuple[Config, Custom]:
        """The parameters as a configuration and the parts that no configuration names."""
        values = {name: _plain(getattr(self, name)) for name in _FIELDS}
        values["weights"] = dict(self.weights or {})
        tasks = _listed(self.tasks)
        values["tasks"] = tuple(task if isinstance(task, str) else task.name for task in tasks)
        if self.degree is None:
            # A module is made for the attributes alone; a function is given the number of columns.
            values["degree"] = 0 if isinstance(self.encoder, torch.nn.Module) else Config.model_fields["degree"].default
        encoder = weighting = method = None
        if not isinstance(self.encoder, str) and callable(self.encoder):
            encoder, values["encoder"] = self.encoder, Config.model_fields["encoder"].default
        if isinstance(self.weighting, Weighting):
            if self.weights:
                raise InputError("GraphEncoder: weights go with weighting='fixed', not with a weighting of your own")
            weighting, values["weighting"] = self.weighting, "fixed"
        if isinstance(self.method, Method):
            method, values["method"] = self.method, self.method.name
        custom = Custom(encoder, tuple(task for task in tasks if not isinstance(task, str)), weighting, method)
        return make_config(values, "GraphEncoder"), custom

    def _set(self, trained: Trained) -> "GraphEncoder":
        self.trained_, self.model_, self.history_ = trained, trained.model, trained.history
        self.n_features_in_ = trained.like.x.shape[1]
        column = trained.like.labels.get("y")
        if column is not None and column.classes is not None:
            self.classes_ = np.array(column.classes)
        elif hasattr(self, "classes_"):
            del self.classes_
        return self

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a new folder, in the format of `same.saved`.

        Of an encoder, tasks or a weighting of your own, only the weights are written: pass the parts to `load` again.
        """
        check_is_fitted(self, "trained_")
        saved.save_trained(self.trained_, Path(folder), {"output": self.output, "validation": _plain(self.validation)})

    @classmethod
    def load(
        cls, folder: str | Path, *, encoder: Any = None, tasks: Any = (), weighting: Any = None, device: str = "auto"
    ) -> "GraphEncoder":
        """Load a fitted estimator from a folder of `save` or of `same train`; no pickle is involved.

        Args:
            folder: folder of the model.
            encoder: encoder of your own, if it was fitted with one: a function that makes it, or a module.
            tasks: tasks of your own, if it was fitted with any; they are bound to a set of one small graph that has the
                right label columns.
            weighting: weighting of your own, for fitting again.
            device: device of the model.
        """
        custom = Custom(encoder, _listed(tasks), weighting)
        trained = saved.load_trained(Path(folder), custom=custom, device=device)
        parameters = {name: getattr(trained.config, name) for name in _FIELDS}
        parameters["weights"] = parameters["weights"] or None
        kinds = {task.name: task for task in custom.tasks}
        parameters["tasks"] = tuple(kinds.get(name, name) for name in trained.config.tasks)
        for part in ("encoder", "weighting"):
            if getattr(custom, part) is not None:
                parameters[part] = getattr(custom, part)
        parameters |= {name: trained.options[name] for name in ("output", "validation") if name in trained.options}
        return cls(**parameters, device=device)._set(trained)

    def push_to_hub(self, repo_id: str, *, private: bool | None = None) -> None:
        """Upload the fitted estimator to a repository of the Hugging Face Hub, which is created if needed.

        Args:
            repo_id: `user/name`.
            private: whether a new repository is private; the account's default by default.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder, "model"))
            hub.upload(Path(folder, "model"), repo_id, private=private)

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path,
        *,
        revision: str | None = None,
        encoder: Any = None,
        tasks: Any = (),
        weighting: Any = None,
        device: str = "auto",
    ) -> "GraphEncoder":
        """Load a fitted estimator from a folder or from a repository of the Hugging Face Hub.

        Args:
            source: a folder, or `user/name`.
            revision: revision of the repository. For the other arguments see `load`.
        """
        folder = hub.download(source, revision=revision)
        return cls.load(folder, encoder=encoder, tasks=tasks, weighting=weighting, device=device)


def _one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"{name}: {value!r} is not one of {', '.join(choices)}")
    return str(value)


def _plain(value: Any) -> Any:
    """A value as configuration and JSON take it: parameter searches pass numpy's types."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _listed(tasks: Any) -> tuple[Any, ...]:
    """One task or several as a tuple of names and of tasks of the user's own."""
    given = tasks.split(",") if isinstance(tasks, str) else tasks if isinstance(tasks, Iterable) else (tasks,)
    listed = tuple(task.strip() if isinstance(task, str) else task for task in given)
    for task in listed:
        kind = task if isinstance(task, type) else type(task)
        if not issubclass(kind, str | GraphTask):
            raise InputError(f"tasks: {task!r} is neither a name nor a GraphTask")
        if kind is not str and not str(getattr(task, "name", "")).isidentifier():
            raise InputError(f"tasks: {kind.__name__} needs a name, such as name = 'degree'")
    return listed


def _labelled(store: GraphStore, y: Any, task: Any = None) -> GraphStore:
    """A set with the labels `y`, if they are given: of its graphs, or those that a task reads."""
    if y is None:
        return store
    level: Level = "graph"
    name = "y"
    if isinstance(task, LabelTask) and task.column is not None:
        level, name = task.level, task.column
    column, expected = Labels.of(y, level, name="y"), len(store) if level == "graph" else store.num_nodes
    if len(column) != expected:
        raise InputError(f"y: {len(column)} labels for {expected} {level}s")
    return store.with_labels(name, column)
