"""What a trained run is worth: probes of its embeddings for every task, beside the floors."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from same.config import Config
from same.episodes import embed, moved
from same.errors import InputError
from same.graphs import load
from same.methods.adapt import Params, outputs
from same.names import CHOOSE_C
from same.nn import Model
from same.nn.pairs import Pair
from same.probes.large import is_large, probe_large
from same.probes.metrics import MAIN, cross_entropy, majority, scores
from same.probes.network import NetworkProbe
from same.probes.protocols import Protocol, part_examples, probe_examples
from same.probes.svm import LinearSVM
from same.runs import Setting, TrainedRun, make_method, open_run, prepare
from same.seeding import stream
from same.tasks import TASKS, Examples, GraphTask, make_tasks

log = logging.getLogger("same")

Array = np.ndarray
Solver = Literal["newton", "sklearn"]
ChooseC = Literal["score", "loss"]

PROBES = ("linear", "network", "own")
GRID = tuple(10.0**k for k in range(-5, 3))
NODES = 2**18
"""How many are encoded at once: that takes many times the memory of what comes of it."""


@dataclass(frozen=True)
class Row:
    """One score of one model on one task.

    Attributes:
        model: the method, or the floor.
        probe: `linear`, `network`, `own` (the model's own head), or `none`.
        task: what was told.
        scores: by name, the main one first.
    """

    model: str
    probe: str
    task: str
    scores: dict[str, float]

    @property
    def main(self) -> float:
        """The score that tables show."""
        return next(iter(self.scores.values()))


@dataclass(frozen=True)
class Probing:
    """What probes of one split of a set are trained and scored on; the same for every model.

    Attributes:
        setting: graphs, split and untrained model.
        tasks: what is probed.
        sets: the examples, by task and part of the split.
        config: of the run, for its seed and split.
        protocol: how link prediction is evaluated.
        solver: our own for the SVM, or scikit-learn's.
        choose_c: what to choose the SVM's C by on validation graphs, see `same.names.CHOOSE_C`; 1 by default.
    """

    setting: Setting
    tasks: list[GraphTask]
    sets: dict[str, dict[str, Examples]]
    config: Config
    protocol: Protocol
    solver: Solver
    choose_c: ChooseC | None

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        data: str | Path | None = None,
        tasks: Iterable[str] | None = None,
        protocol: Protocol = "paper",
        pair: Pair | None = None,
        solver: Solver = "newton",
        choose_c: ChooseC | None = None,
    ) -> "Probing":
        """The probing of a configuration's set and split.

        Args:
            config: of a run.
            data: where local sets lie.
            tasks: which; all that the set offers by default.
            protocol: how link prediction is evaluated.
            pair: what probes see of two nodes; what the run was trained with by default.
            solver: `newton` or `sklearn`.
            choose_c: what to choose the SVM's C by on validation graphs, see `same.names.CHOOSE_C`; 1 by default.
        """
        if choose_c not in (None, *CHOOSE_C):
            raise InputError(f"choose_c: {choose_c!r} is not one of {', '.join(CHOOSE_C)}")
        setting = prepare(config, data)
        names = tasks or [name for name, kind in TASKS.items() if not kind.missing(setting.store)]
        chosen = make_tasks(list(names), setting.store, pair=pair or config.pair)
        sets = probe_examples(setting.store, setting.split, chosen, seed=config.seed, k=config.split, protocol=protocol)
        if tasks is None:
            for task in [task for task in chosen if task.kind == "links" and not _both_kinds(sets[task.name])]:
                log.warning("%s: %s cannot be scored, there are too few pairs", setting.store.name, task.name)
                chosen.remove(task)
        return cls(setting, chosen, sets, config, protocol, solver, choose_c)

    def floors(self) -> list[Row]:
        """Majority, raw features and the untrained encoder."""
        raw = self.rows("raw", lambda batch: batch.x, ("linear",))
        return [*self.majority(), *raw, *self.rows("untrained", self.setting.model.encoder.eval(), ("linear",))]

    def majority(self) -> list[Row]:
        """The most common class, or the mean, of the training examples; nothing is known of a link."""
        rows = []
        for task in self.tasks:
            train, test = (self.sets[task.name][part].y.numpy() for part in ("train", "test"))
            rows.append(Row("majority", "none", task.name, self._scores(task, test, majority(task.kind, train, test))))
        return rows

    def rows(
        self, model: str, encode: Callable[[Any], Tensor], probes: Iterable[str], *, part: str = "test"
    ) -> list[Row]:
        """Scores of probes of an encoder's embeddings, on the test graphs or on those of another part of the split."""
        examples = [self.sets[task.name][part] for task in self.tasks for part in self.sets[task.name]]
        with torch.no_grad():
            known = iter(embed(lambda batch: torch.cat([encode(piece) for piece in batch.pieces(NODES)]), examples))
        rows = []
        for task in self.tasks:
            parts = {name: next(known) for name in self.sets[task.name]}
            y = parts[part].y.numpy()
            if "linear" in probes:
                rows.append(Row(model, "linear", task.name, self._scores(task, y, self._linear(task, parts, part))))
            if "network" in probes:
                rng = stream(self.config.seed, "network", self.config.split, list(TASKS).index(task.name))
                told = NetworkProbe().fit_predict(task, parts["train"], parts["validation"], parts[part], rng)
                rows.append(Row(model, "network", task.name, self._scores(task, y, told)))
        return rows

    def own(self, model: Model) -> list[Row]:
        """Scores of a trained model's own heads on its tasks, after adapting to the training graphs if it adapts."""
        heads = adapted_heads(self.config, self.setting, model)
        rows = []
        for task in [task for task in self.tasks if task.name in heads]:
            test = self.sets[task.name]["test"]
            with torch.no_grad():
                output = outputs(model, heads[task.name], task, test)
            told = (output.argmax(dim=1) if task.kind == "classes" else output).numpy()
            rows.append(Row(self.config.method, "own", task.name, self._scores(task, test.y.numpy(), told)))
        return rows

    def _scores(self, task: GraphTask, y: Array, told: Array) -> dict[str, float]:
        found = scores(task.kind, y, told)
        if self.protocol == "released" and task.kind == "links":
            # What the released code reports first.
            return {"accuracy": float(np.mean((told > 0) == (y > 0))), **found}
        return found

    def _linear(self, task: GraphTask, parts: dict[str, Examples], part: str) -> Array:
        """[examples of a part] classes, decision values or numbers, from a linear model of the embeddings."""
        x, y = {}, {}
        for name, examples in parts.items():
            assert examples.embeddings is not None
            x[name], y[name] = task.features(examples.embeddings, examples).numpy(), examples.y.numpy()

        def fitted(c: float) -> Any:
            return linear_model(task, self.solver, c).fit(x["train"], y["train"])

        def told(model: Any, part: str) -> Array:
            return model.decision_function(x[part]) if task.kind == "links" else model.predict(x[part])

        def worth(model: Any) -> float:
            if self.choose_c == "loss" and task.kind == "classes":
                return -cross_entropy(y["validation"], model.decision_function(x["validation"]), model.classes_)
            return scores(task.kind, y["validation"], told(model, "validation"))[MAIN[task.kind]]

        # Of several that are worth the same, the first: the smallest C.
        model = max(map(fitted, GRID), key=worth) if self.choose_c else fitted(1.0)
        return told(model, part)


def adapted_heads(config: Config, setting: Setting, model: Model) -> dict[str, Params]:
    """θ′ with which a trained model tells each of its tasks: adapted to the training graphs if its method adapts.

    Args:
        config: of the training.
        setting: has the training graphs and the tasks; whatever is probed, a model adapts to what it was trained for.
        model: the trained model, which is left in its evaluation mode.
    """
    method, parts = make_method(config)[0], setting.split
    batch = part_examples(setting.store, parts.train, setting.tasks, "train", seed=config.seed, k=config.split)
    batch = moved(batch, next(model.parameters()).device)
    model.eval()
    adapted = {task.name: method.adapted(model, batch, task) for task, _ in batch if task.name in model.heads}
    return {task: {name: value.detach() for name, value in own.items()} for task, own in adapted.items()}


def evaluate_run(
    folder: Path,
    *,
    probes: Iterable[str] = PROBES,
    floors: bool = True,
    data: str | Path | None = None,
    most_graphs: int | None = None,
    **how: Any,
) -> list[Row]:
    """Scores of a finished run on its test graphs, for every task its set offers, trained for or not.

    Args:
        folder: of the run.
        probes: `linear` (an SVM on frozen embeddings), `network` (the task's head on frozen embeddings), `own` (the
            run's own heads, if the pair features are those it was trained with).
        floors: whether to add majority, raw features and the untrained encoder.
        data: where local sets lie.
        most_graphs: of each part of the split, at random; all by default. With it, and for sets whose embeddings do not
            fit into memory, features go through the disk, and there are linear probes only.
        how: `tasks`, `protocol`, `pair` and so on, see `Probing.of`.
    """
    probes, run = tuple(probes), open_run(folder)
    if unknown := set(probes) - set(PROBES):
        raise InputError(f"probes: {', '.join(sorted(unknown))}: not among {', '.join(PROBES)}")
    if most_graphs is not None or is_large(load(run.config.dataset, data), run.config.width):
        return _evaluate_large(run, probes, floors, data, most_graphs, **how)
    probing = Probing.of(run.config, data=data, **how)
    rows = probing.floors() if floors else []
    # The untrained encoder is a floor of its own, which need not be probed twice.
    done = {row.probe for row in rows if row.model == run.config.method}
    rows += probing.rows(run.config.method, run.encoder, [probe for probe in probes if probe not in done])
    if "own" in probes and how.get("pair") in (None, run.config.pair) and run.config.method != "untrained":
        model = probing.setting.model
        model.load_state_dict({name: run.state[name] for name in model.state_dict()})
        rows += probing.own(model)
    return rows


def _evaluate_large(
    run: TrainedRun,
    probes: tuple[str, ...],
    floors: bool,
    data: str | Path | None,
    most_graphs: int | None,
    *,
    tasks: Iterable[str] | None = None,
    pair: Pair | None = None,
    **how: Any,
) -> list[Row]:
    """The linear probes of a set of any size."""
    usual = {"protocol": "paper", "solver": "newton", "choose_c": None}
    for name, value in how.items():
        if value != usual.get(name, value):
            raise InputError(f"{name}: {value} is not possible for a set of this size; leave it out")
    if "linear" not in probes:
        raise InputError(f"probes: {', '.join(probes)}: a set of this size has linear probes only")
    if left := [probe for probe in probes if probe != "linear"]:
        log.warning("%s: not for a set of this size, left out", ", ".join(left))
    setting = prepare(run.config, data)
    names = list(tasks or [name for name, kind in TASKS.items() if not kind.missing(setting.store)])
    chosen = make_tasks(names, setting.store, pair=pair or run.config.pair)
    encoders: dict[str, Callable[[Any], Tensor]] = {}
    if floors:
        encoders |= {"raw": lambda batch: batch.x, "untrained": setting.model.encoder.eval()}
    encoders[run.config.method] = run.encoder
    return [Row(*found) for found in probe_large(run.config, setting, chosen, encoders, most_graphs, floor=floors)]


def _both_kinds(parts: dict[str, Examples]) -> bool:
    """Whether every part has both edges and non-edges."""
    return all(len(examples.y.unique()) == 2 for examples in parts.values())


def linear_model(task: GraphTask, solver: Solver, c: float) -> Any:
    """A linear model of standardised features for a task: an SVM, or ridge regression where numbers are told."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    if task.kind == "numbers":
        return make_pipeline(StandardScaler(), Ridge(alpha=1 / c))
    if solver == "newton":
        return LinearSVM(c)
    if solver == "sklearn":
        return make_pipeline(StandardScaler(), LinearSVC(C=c, random_state=0))
    raise InputError(f"solver: {solver!r} is not one of newton, sklearn")
