"""Evaluation of a trained run: probes of its embeddings for every task, and its own heads, next to the floors."""

import logging
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from same.config import Config
from same.episodes import PARTS
from same.errors import InputError
from same.experiment import prepare
from same.graphs.examples import Examples
from same.linear import Choose, fit_linear, predict_linear
from same.nn.embedding import encode_once
from same.nn.pairs import Pair
from same.probes.floors import Encode, floor_encoders, majority
from same.probes.large import disk_features, is_large
from same.probes.network import NetworkProbe
from same.probes.paper import fit_paper
from same.probes.protocols import Array, Case, Protocol, make_cases, probe_examples
from same.saved import Trained, load_trained
from same.seeding import stream
from same.tasks import TASKS, make_tasks

log = logging.getLogger("same")

PROBES = ("linear", "paper", "network", "own")
LINEAR = ("linear", "paper")
NODES = 2**18
"""Nodes to encode at once: encoding takes many times the memory of its result."""


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


class Evaluation:
    """One split of a set, with the same examples for every model; for the arguments see `evaluate_run`.

    Attributes:
        experiment: graphs, split, tasks and untrained model of the configuration.
        cases: tasks to evaluate, each under a protocol.
        large: whether features go through the disk; there are linear probes only then.
        examples: examples by case and part of the split; none if `large`.
    """

    def __init__(
        self,
        config: Config,
        *,
        protocols: Iterable[Protocol] = ("paper",),
        tasks: Iterable[str] | None = None,
        pair: Pair | None = None,
        data: str | Path | None = None,
        most_graphs: int | None = None,
        choose: Choose | None = None,
    ) -> None:
        if choose not in (None, "loss"):
            raise InputError(f"choose: {choose!r} is not one of loss")
        self.config, self.pair, self.choose, self.most_graphs = config, pair or config.pair, choose, most_graphs
        self.experiment = prepare(config, data)
        store, split = self.experiment.store, self.experiment.split
        names = list(tasks or [name for name, kind in TASKS.items() if not kind.missing(store)])
        self.cases = make_cases(make_tasks(names, store, pair=self.pair), tuple(protocols))
        self.large = most_graphs is not None or is_large(store, config.width)
        self.examples: dict[Case, dict[str, Examples]] = {}
        if not self.large:
            self.examples = probe_examples(store, split, self.cases, seed=config.seed, k=config.split)
            for case in [case for case in self.cases if case.task.kind == "links" and tasks is None]:
                if any(len(part.y.unique()) < 2 for part in self.examples[case].values()):
                    log.warning("%s: %s cannot be scored, there are too few pairs", store.name, case.task.name)
                    self.cases.remove(case)

    def floors(self, probes: Iterable[str] = ("linear",)) -> list[Score]:
        """Scores of the majority, of raw features and of the untrained encoder."""
        encoders = floor_encoders(self.experiment.model)
        rows = self.probe("majority", encoders["raw"], ("none",))
        return rows + [row for name, encode in encoders.items() for row in self.probe(name, encode, probes)]

    def probe(
        self, model: str, encode: Encode, probes: Iterable[str], networks: Iterable[str] = (), *, part: str = "test"
    ) -> list[Score]:
        """Scores of probes of an encoder's embeddings.

        Args:
            model: name of the model.
            encode: its encoder.
            probes: any of `linear`, `paper` and `none` (the majority).
            networks: tasks with a network probe.
            part: part of the split to score.
        """
        config, probes, networks = self.config, tuple(probes), tuple(networks)
        if not probes and not networks:
            return []
        if self.large:
            with tempfile.TemporaryDirectory(prefix="same-probe-") as folder:
                features = disk_features(
                    self.experiment.store,
                    self.experiment.split,
                    self.cases,
                    encode,
                    Path(folder),
                    seed=config.seed,
                    k=config.split,
                    most_graphs=self.most_graphs,
                )
                return self._linear(model, features, probes, part)
        flat = [self.examples[case][name] for case in self.cases for name in PARTS]
        with torch.no_grad():
            encoded = iter(encode_once(lambda batch: torch.cat([encode(piece) for piece in batch.pieces(NODES)]), flat))
        embedded = {case: {name: next(encoded) for name in PARTS} for case in self.cases}
        features = {case: {name: case.features(e) for name, e in parts.items()} for case, parts in embedded.items()}
        rows = self._linear(model, features, probes, part)
        for case in [case for case in self.cases if case.task.name in networks]:
            rng = stream(config.seed, "network", config.split, list(TASKS).index(case.task.name))
            train, validation, scored = (embedded[case][name] for name in ("train", "validation", part))
            predicted = NetworkProbe().fit_predict(case.task, train, validation, scored, rng)
            rows += self._scores(model, "network", case, part, scored.y.numpy(), predicted)
        return rows

    def _linear(
        self, model: str, features: dict[Case, dict[str, tuple[Array, Array]]], probes: Sequence[str], part: str
    ) -> list[Score]:
        rows = []
        for probe, case in [(probe, case) for probe in probes for case in self.cases]:
            kind, parts = case.task.kind, features[case]
            train, (x, y) = parts["train"], parts[part]
            if probe == "none":
                predicted = majority(kind, train[1], y)
            elif probe == "paper":
                predicted = predict_linear(kind, fit_paper(kind, *train), x)
            else:
                validation = parts["validation"] if self.choose else None
                predicted = predict_linear(kind, fit_linear(kind, *train, validation), x)
            rows += self._scores(model, probe, case, part, y, predicted)
        return rows

    def own_heads(self, trained: Trained) -> list[Score]:
        """Scores of a trained model's own heads on the test graphs."""
        rows = []
        for case in [case for case in self.cases if case.task.name in trained.heads]:
            task, test = case.task, self.examples[case]["test"]
            if task.kind == "links" and self.pair != self.config.pair:
                continue  # A head takes the pair features that it was trained with.
            with torch.no_grad():
                output = trained.heads[task.name](task.name, test)
            predicted = (output.argmax(dim=1) if task.kind == "classes" else output).numpy()
            rows += self._scores(self.config.method, "own", case, "test", test.y.numpy(), predicted)
        return rows

    def _scores(self, model: str, probe: str, case: Case, part: str, y: Array, predicted: Array) -> list[Score]:
        place = (model, part, case.task.name, probe, case.protocol, self.pair)
        return [Score(*place, metric, score) for metric, score in case.scores(y, predicted).items()]


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
    choose: Choose | None = None,
) -> list[Score]:
    """Scores of a finished run on its test graphs, for every task that its set offers, trained for or not.

    Args:
        folder: folder of the run.
        protocols: `paper`, `released` or both; tasks other than link prediction are evaluated under the first.
        probes: `linear` (a linear model of standardised embeddings), `paper` (the paper's SVM), `own` (the run's own
            heads), `network` (a network on embeddings for every task).
        networks: tasks with a network probe, if not all.
        floors: whether to add majority, raw features and the untrained encoder.
        tasks: tasks to evaluate; all that the set offers by default.
        pair: pair features of link prediction; those of the training by default.
        data: folder of local sets.
        most_graphs: largest number of graphs of each part of the split, drawn at random. With it, and for sets whose
            embeddings do not fit into memory, features go through the disk, and there are linear probes only.
        choose: `loss` to choose the C of linear probes on validation graphs; C = 1 by default.
    """
    probes, run = tuple(probes), load_trained(folder)
    if run.options.get("fitted"):
        raise InputError(f"{folder}: was fitted in Python, so its test graphs are not known; use GraphEncoder.score")
    if unknown := set(probes) - set(PROBES):
        raise InputError(f"probes: {', '.join(sorted(unknown))}: not among {', '.join(PROBES)}")
    evaluation = Evaluation(
        run.config, protocols=protocols, tasks=tasks, pair=pair, data=data, most_graphs=most_graphs, choose=choose
    )
    linear = [probe for probe in LINEAR if probe in probes]
    networks = tuple(TASKS) if "network" in probes else tuple(networks)
    if evaluation.large:
        if not linear:
            raise InputError(f"probes: {', '.join(probes)}: a set of this size has linear probes only")
        if others := [probe for probe in probes if probe not in LINEAR] + ["network"] * bool(networks):
            log.warning("%s: not for a set of this size, left out", ", ".join(dict.fromkeys(others)))
    rows = evaluation.floors(linear or ["linear"]) if floors else []
    # The untrained encoder is a floor already.
    done = {row.probe for row in rows if row.model == run.config.method}
    rows += evaluation.probe(run.config.method, run.encoder, [p for p in linear if p not in done], networks)
    if "own" in probes and not evaluation.large:
        rows += evaluation.own_heads(run)
    return rows
