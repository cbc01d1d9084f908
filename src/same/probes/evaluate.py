"""Evaluation of a trained run: probes of its embeddings for every task, and its own heads, next to the floors."""

import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from same.config import Config
from same.episodes import PARTS
from same.errors import InputError
from same.experiment import prepare
from same.graphs.flat import Array
from same.linear import Choose, LinearHead, fit_head, predict_linear
from same.metrics import Kind
from same.nn.embedding import encode_once, in_pieces
from same.nn.pairs import Pair
from same.probes.large import disk_features, is_large
from same.probes.network import predict_network
from same.probes.paper import fit_paper
from same.probes.protocols import Case, CaseFeatures, Encode, Protocol, make_cases, probe_examples
from same.saved import Trained, load_trained
from same.seeding import stream
from same.tasks import TASKS, make_tasks, offered
from same.tasks.task import features

log = logging.getLogger("same")

Heads = Mapping[str, LinearHead]

LINEAR = ("linear", "paper")
PROBES = (*LINEAR, "network", "own")
NODES = 2**18
"""Nodes to encode at once."""


class Score(NamedTuple):
    """One score of one model (a method or a floor) on a part of the split; a probe's main metric comes first."""

    model: str
    part: str
    task: str
    probe: str
    protocol: str
    pair: str
    metric: str
    score: float


@dataclass(kw_only=True)
class Evaluation:
    """One split of a set, with the same examples for every model; for the options see `evaluate_run`.

    Attributes:
        experiment: graphs, split and untrained model of the configuration.
        cases: tasks to evaluate, each under a protocol.
        large: whether features go through the disk; then there are linear probes only.
        examples: examples by case and part of the split; none if `large`.
    """

    config: Config = field(kw_only=False)
    protocols: Iterable[Protocol] = ("paper",)
    tasks: Iterable[str] | None = None
    pair: Pair | None = None
    data: str | Path | None = None
    most_graphs: int | None = None
    choose: Choose | None = "loss"
    pool: str | None = None

    def __post_init__(self) -> None:
        if self.choose not in (None, "loss"):
            raise InputError(f"choose: {self.choose!r} is not one of loss")
        self.experiment, self.pair = prepare(self.config, self.data), self.pair or self.config.pair
        store, names = self.experiment.store, list(self.tasks or ())
        self.cases = make_cases(
            make_tasks(names or offered(store), store, pair=self.pair, pool=self.config.pool), tuple(self.protocols)
        )
        self.large = self.most_graphs is not None or is_large(store, self.config.width)
        self.examples = {} if self.large else probe_examples(self.experiment, self.cases)
        for case, parts in self.examples.items():
            if not names and case.task.kind == "links" and any(len(each.y.unique()) < 2 for each in parts.values()):
                log.warning("%s: %s cannot be scored, there are too few pairs", store.name, case.task.name)
                self.cases.remove(case)

    def floors(self, probes: Iterable[str] = ("linear",)) -> list[Score]:
        """Scores that need no training: of the majority, of raw features and of the untrained encoder."""
        raw, untrained = (lambda batch: batch.x), self.experiment.model.encoder.eval()
        rows = self.probe("majority", raw, ("none",))
        return rows + self.probe("raw", raw, probes) + self.probe("untrained", untrained, probes)

    def probe(
        self,
        model: str,
        encode: Encode,
        probes: Iterable[str],
        networks: Iterable[str] = (),
        *,
        part: str = "test",
        heads: Heads = MappingProxyType({}),
    ) -> list[Score]:
        """Scores of probes (`linear`, `paper`, `none` for the majority; networks for some tasks) of embeddings.

        `heads` are linear heads by task that were fitted to the same examples of protocol `paper`.
        """
        probes, networks = tuple(probes), tuple(networks)
        if not probes and not networks:
            return []
        if self.large:
            with tempfile.TemporaryDirectory(prefix="same-probe-") as folder:
                large = disk_features(self.experiment, self.cases, encode, Path(folder), self.most_graphs)
                return self._linear(model, large, probes, part)
        flat = [self.examples[case][name] for case in self.cases for name in PARTS]
        with torch.no_grad():
            encoded = iter(encode_once(in_pieces(encode, NODES), flat))
        embedded = {case: {name: next(encoded) for name in PARTS} for case in self.cases}
        pools = None if self.pool is None else (self.pool,)
        small = {c: {n: features(c.task, each, pools) for n, each in parts.items()} for c, parts in embedded.items()}
        rows = self._linear(model, small, probes, part, heads)
        for case in [case for case in self.cases if case.task.name in networks]:
            rng = stream(self.config.seed, "network", self.config.split, list(TASKS).index(case.task.name))
            train, validation, scored = (embedded[case][name] for name in ("train", "validation", part))
            predicted = predict_network(case.task, train, validation, scored, rng)
            rows += self._scores(model, "network", case, part, scored.y.numpy(), predicted)
        return rows

    def _linear(
        self, model: str, features: CaseFeatures, probes: Sequence[str], part: str, heads: Heads = MappingProxyType({})
    ) -> list[Score]:
        rows = []
        for probe, (case, parts) in product(probes, features.items()):
            kind, train, (x, y) = case.task.kind, parts["train"], parts[part]
            if probe == "none":
                predicted = majority(kind, train.y, y)
            elif probe == "paper":
                first = next(iter(x))  # The configured pooling.
                predicted = predict_linear(kind, fit_paper(kind, train.x[first], train.y), x[first])
            else:
                kept = heads.get(case.task.name) if kind != "links" or case.protocol == "paper" else None
                if kept is None or kept.pool not in x:
                    kept = fit_head(kind, train, parts["validation"] if self.choose else None)
                predicted = kept.output(x[kept.pool])
            rows += self._scores(model, probe, case, part, y, predicted)
        return rows

    def own_heads(self, trained: Trained) -> list[Score]:
        """Scores of a trained model's own heads on the test graphs."""
        rows = []
        for case in self.cases:
            task, test = case.task, self.examples[case]["test"]
            # A head takes the pair features that it was trained with.
            if task.name not in trained.heads or (task.kind == "links" and self.pair != self.config.pair):
                continue
            with torch.no_grad():
                output = trained.heads[task.name](task.name, test)
            predicted = (output.argmax(dim=1) if task.kind == "classes" else output).numpy()
            rows += self._scores(self.config.method, "own", case, "test", test.y.numpy(), predicted)
        return rows

    def _scores(self, model: str, probe: str, case: Case, part: str, y: Array, predicted: Array) -> list[Score]:
        place = (model, part, case.task.name, probe, case.protocol, str(self.pair))
        return [Score(*place, metric, score) for metric, score in case.scores(y, predicted).items()]


def majority(kind: Kind, train: Array, test: Array) -> Array:
    """Constant baseline: the most frequent training class, or the mean."""
    if kind == "classes":
        return np.full(len(test), np.bincount(train).argmax())
    return np.broadcast_to(train.mean(axis=0), test.shape)


def evaluate_run(
    folder: Path,
    *,
    protocols: Iterable[Protocol] = ("paper",),
    probes: Iterable[str] = ("linear", "own"),
    networks: Iterable[str] = (),
    floors: bool = True,
    tasks: Iterable[str] | None = None,
    pair: Pair | None = None,
    data: str | Path | None = None,
    most_graphs: int | None = None,
    choose: Choose | None = "loss",
    pool: str | None = None,
) -> list[Score]:
    """Scores of a finished run on its test graphs, for every task that its set offers, trained for or not.

    Args:
        folder: folder of the run.
        protocols: `paper`, `released` or both; tasks other than link prediction are evaluated under the first.
        probes: `linear` (linear heads, as those that predict), `paper` (the paper's SVM), `own` (the run's own heads),
            `network` (a network on embeddings for every task).
        networks: tasks with a network probe, if not all.
        floors: whether to add majority, raw features and the untrained encoder.
        tasks: tasks to evaluate; all that the set offers by default.
        pair: pair features of link prediction; those of the training by default.
        data: folder of local sets.
        most_graphs: largest number of graphs per part of the split, drawn at random. With it, and for sets whose
            embeddings do not fit into memory, there are linear probes only.
        choose: what chooses the C of linear probes on validation graphs; None for C = 1.
        pool: pooling of the linear probes of graphs; the loss on validation graphs chooses one by default.
    """
    probes, run = tuple(probes), load_trained(folder)
    if run.options.get("fitted"):
        raise InputError(f"{folder}: was fitted in Python, so its test graphs are not known; use GraphEncoder.score")
    if unknown := set(probes) - set(PROBES):
        raise InputError(f"probes: {', '.join(sorted(unknown))}: not among {', '.join(PROBES)}")
    options: dict[str, Any] = {"pair": pair, "data": data, "most_graphs": most_graphs, "choose": choose, "pool": pool}
    evaluation = Evaluation(run.config, protocols=protocols, tasks=tasks, **options)
    linear = [probe for probe in LINEAR if probe in probes]
    networks = tuple(TASKS) if "network" in probes else tuple(networks)
    if evaluation.large:
        if not linear:
            raise InputError(f"probes: {', '.join(probes)}: a set of this size has linear probes only")
        if others := [probe for probe in probes if probe not in LINEAR] + ["network"] * bool(networks):
            log.warning("%s: not for a set of this size, left out", ", ".join(dict.fromkeys(others)))
    rows = evaluation.floors(linear or ["linear"]) if floors else []
    done = {row.probe for row in rows if row.model == run.config.method}  # The untrained encoder is a floor already.
    heads = run.linear if choose and evaluation.pair == run.config.pair else {}  # Fitted already, for `predict`.
    linear = [probe for probe in linear if probe not in done]
    rows += evaluation.probe(run.config.method, run.encoder, linear, networks, heads=heads)
    if "own" in probes and not evaluation.large:
        rows += evaluation.own_heads(run)
    return rows
