"""Fuzzing: sets of graphs, configurations and arguments, spoilt at random from a seed.

Each is either accepted and valid, or refused with an `InputError`; anything else is a fault.
"""

import contextlib
import io
import json
import random
import resource
import shutil
import signal
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import HTTPError

import numpy as np
import torch
from torch_geometric.data import Data

from same.config import Config, make_config, read_config
from same.errors import InputError
from same.experiment import assemble
from same.graphs import GraphStore, Inputs, from_pyg, planted, split, summarise
from same.graphs.io.tu import read_tu
from same.tasks import make_tasks, offered

CPU_SECONDS, BYTES = 10, 4 * 2**30


@dataclass
class Tally:
    """Number of cases, number of accepted cases, and what went wrong."""

    tried: int = 0
    accepted: int = 0
    faults: list[str] = field(default_factory=list)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.tried + other.tried, self.accepted + other.accepted, self.faults + other.faults)


class HangError(Exception):
    """A case took too long."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Limit the memory, so that asking for too much is an error."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").is_file() else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Limit the processor time."""

    def expire(number: int, frame: object) -> None:
        raise HangError(f"more than {CPU_SECONDS} s")

    before = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(tally: Tally, what: str, action: Callable[[], object]) -> None:
    """Try one case."""
    tally.tried += 1
    try:
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            action()
        tally.accepted += 1
    except InputError as error:
        if "\n" in str(error) or not str(error):
            tally.faults.append(f"{what}: message of several lines: {error}")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        tally.faults.append(f"{what}: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def assert_valid(store: GraphStore) -> None:
    """Check that a store is consistent and can be cut, scaled and split."""
    n, g = store.num_nodes, store.num_graphs
    assert store.node_ptr[0] == 0
    assert store.node_ptr[-1] == n
    assert (np.diff(store.node_ptr) > 0).all()
    assert store.edge_ptr[0] == 0
    assert store.edge_ptr[-1] == store.num_edges
    assert (np.diff(store.edge_ptr) >= 0).all()
    assert store.x.dtype in (np.float32, np.float64)
    assert np.isfinite(store.x).all()
    low, high = store.edges
    sizes = np.repeat(np.diff(store.node_ptr), np.diff(store.edge_ptr))
    assert ((low >= 0) & (low < high) & (high < sizes)).all()
    for y, classes, count in ((store.graph_y, store.graph_classes, g), (store.node_y, store.node_classes, n)):
        if y is not None:
            assert len(y) == count
            assert np.isfinite(y).all()
            assert classes is None or (y.min() >= 0 and y.max() < len(classes))
    json.dumps(summarise(store))
    batch = store.cut(np.arange(g))
    assert batch.num_nodes == n
    if n <= 500:
        assert torch.isfinite(batch.adjacency.to_dense()).all()
    for scaling in ("standardise", "row", "none"):
        fitted = Inputs.fit(store, np.arange(g), scaling=scaling, degree=2, walk=2)
        assert torch.isfinite(store.with_inputs(fitted).cut([0]).x).all()
    if g >= 10:
        assert sum(map(len, vars(split(store, 0)).values())) == g
    if g >= 2:
        for name in offered(store):
            for task in make_tasks([name], store):
                support, target = task.cut(store, np.arange(g), np.random.default_rng(0))
                assert len(support.y) + len(target.y) >= 0


# Fields that are hard to parse.
FIELDS = (
    *("", " ", "-1", "0", "1.5", "1e3", "-0", "nan", "inf", "-inf", "1e38", "1e39", "1e400", "-1e400", "1e-400"),
    *("99999999999999999999", "9223372036854775807", "-9223372036854775808", "4294967297", "1_0", "0x10", "1 2"),
    *("é", "１２", "٣", "𝟙", "\ufeff1", "\x00", "\x1a", "True", "None", "a,b", "1;2", "'", "1" * 5000, "--1", "+1"),
)
BLOBS = (b"\xff\xfe1\n", b"\x80", b"\r", b"\n\n\n", b"\xc3", b"1\t2\n", b"#1\n", b"\x0b", b"\xe2\x80\xa81\n")


def random_tu(rng: random.Random) -> dict[str, str]:
    """A valid set: graphs from one node to complete ones, some disconnected, with loops and repeated edges."""
    sizes = [rng.choice((1, 1, 2, 3, 5, 8)) for _ in range(rng.choice((1, 2, 3, 10, 12)))]
    edges, start = [], 1
    for size in sizes:
        density = rng.choice((0.0, 0.3, 0.6, 1.0))
        for u in range(start, start + size):
            for v in range(start, start + size):
                if (u != v or rng.random() < 0.1) and rng.random() < density:
                    edges.append(f"{u}, {v}")
        start += size
    n = start - 1
    edges = edges or ["1, 1"]
    if rng.random() < 0.2:
        edges += rng.choices(edges, k=3)
    number = rng.choice(
        (lambda: "1", lambda: f"{rng.gauss(0, 1):.4f}", lambda: "3e38", lambda: f"{rng.choice((-3, 3))}e38")
    )
    columns, classes = rng.choice((1, 2, 4)), rng.choice((1, 2, 3))
    return {
        "A": "\n".join(edges) + "\n",
        "graph_indicator": "".join(f"{g}\n" * size for g, size in enumerate(sizes, 1)),
        "graph_labels": "".join(f"{rng.randrange(classes)}\n" for _ in sizes),
        "node_labels": "".join(f"{rng.randrange(classes)}\n" for _ in range(n)),
        "node_attributes": "".join(", ".join(number() for _ in range(columns)) + "\n" for _ in range(n)),
    }


def spoil_tu(parts: dict[str, str], rng: random.Random) -> dict[str, bytes]:
    """A set with up to three mistakes."""
    spoilt = {name: text.encode() for name, text in parts.items()}
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        name = rng.choice(list(spoilt) or ["A"])
        lines = spoilt.get(name, b"").split(b"\n")
        at = rng.randrange(len(lines))
        fields = lines[at].split(b",")
        place = rng.randrange(len(fields))
        kind = rng.randrange(12)
        if kind == 0:
            spoilt.pop(name, None)
            continue
        if kind == 1:
            other = spoilt.get(rng.choice(list(spoilt)), b"")
            spoilt[rng.choice(("graph_attributes", "edge_labels", "A", name))] = other
            continue
        if kind == 2:
            lines.insert(at, lines[at])
        elif kind == 3:
            del lines[at]
        elif kind == 4:
            del fields[place]
        elif kind == 5:
            fields.append(fields[place])
        elif kind == 6:
            lines[at:] = []
        elif kind == 7:
            lines[at] = rng.choice(BLOBS)
        elif kind == 8:
            lines = [line.replace(b",", rng.choice((b";", b"\t", b" ", b",,"))) for line in lines]
        else:
            fields[place] = rng.choice(FIELDS).encode()
        if kind in (4, 5, 9, 10, 11):
            lines[at] = b",".join(fields)
        spoilt[name] = rng.choice((b"\n", b"\n", b"\r\n")).join(lines)
    return spoilt


def fuzz_tu(cases: int, seed: int, folder: Path) -> Tally:
    """Folders and archives in TU format."""
    tally = Tally()
    for case in range(cases):
        rng = random.Random(f"tu {seed} {case}")
        parts = spoil_tu(random_tu(rng), rng)
        place = folder / "set"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if case % 5:
            for name, content in parts.items():
                (place / f"S_{name}.txt").write_bytes(content)
            path = place
        else:
            path = place / "S.zip"
            with zipfile.ZipFile(path, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
                for name, content in parts.items():
                    archive.writestr(f"{rng.choice(('', 'S/'))}S_{name}.txt", content)
            if rng.random() < 0.5:
                blob = bytearray(path.read_bytes())
                for _ in range(rng.choice((1, 1, 4))):
                    blob[rng.randrange(len(blob))] = rng.randrange(256)
                path.write_bytes(blob[: rng.choice((len(blob), len(blob), rng.randrange(len(blob))))])
        attempt(tally, f"tu {seed} {case}", lambda path=path: assert_valid(read_tu(path)))
    return tally


def random_data(rng: random.Random, columns: int, labels: str) -> Data:
    size = rng.choice((1, 2, 3, 6))
    torch.manual_seed(rng.randrange(2**31))
    pairs = [(u, v) for u in range(size) for v in range(size) if rng.random() < 0.4]
    data = Data(x=torch.randn(size, columns), edge_index=torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)
    data.y = torch.tensor([rng.randrange(3)]) if labels == "graph" else torch.randint(0, 3, (size,))
    return data


VALUES: tuple[Callable[[int], Any], ...] = (
    lambda n: None,
    lambda n: torch.full((n, 2), torch.nan),
    lambda n: torch.full((n, 2), 3e38),
    lambda n: torch.full((n, 2), 1e300, dtype=torch.float64),
    lambda n: torch.ones(n, 2, dtype=torch.bfloat16),
    lambda n: torch.ones(n, 2, dtype=torch.complex64),
    lambda n: torch.ones(n, 2, dtype=torch.bool),
    lambda n: torch.ones(n, 2).to_sparse(),
    lambda n: torch.ones(n, 2, requires_grad=True),
    lambda n: torch.ones(n),
    lambda n: torch.ones(n, 2, 3),
    lambda n: torch.ones(n, 0),
    lambda n: torch.ones(n + 1, 2),
    lambda n: torch.empty(0, 2),
    lambda n: torch.tensor(1.0),
    lambda n: torch.tensor(2**40),
    lambda n: torch.tensor([-1]),
    lambda n: torch.tensor([2**62]),
    lambda n: torch.full((n,), 2**40),
    lambda n: torch.zeros(n, dtype=torch.int64),
    lambda n: torch.zeros(n, dtype=torch.uint8),
    lambda n: torch.tensor([[0], [2**40]]),
    lambda n: torch.tensor([[0], [-1]]),
    lambda n: torch.tensor([[0.0], [0.0]]),
    lambda n: torch.tensor([[0, 0, 0], [0, 0, 0]]),
    lambda n: torch.tensor([0, 1]),
    lambda n: [[0], [0]],
    lambda n: [[0], [1, 2]],
    lambda n: np.zeros((2, 1), np.int32),
    lambda n: np.full((n, 2), np.inf),
    lambda n: np.array(["a"] * n),
    lambda n: np.array([object()] * n),
    lambda n: "text",
    lambda n: {"a": 1},
    lambda n: 7,
    lambda n: -3,
    lambda n: 10**12,
    lambda n: 1.5,
    lambda n: b"bytes",
)


def fuzz_pyg(cases: int, seed: int) -> Tally:
    """Lists of PyG graphs."""
    tally = Tally()
    for case in range(cases):
        rng = random.Random(f"pyg {seed} {case}")
        columns, labels = rng.choice((0, 1, 3)), rng.choice(("graph", "node"))
        graphs: list[Any] = [random_data(rng, columns, labels) for _ in range(rng.choice((0, 1, 2, 3, 11)))]
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            if graphs:
                graph = rng.choice(graphs)
                key = rng.choice(("x", "edge_index", "y", "node_y", "num_nodes"))
                with contextlib.suppress(Exception):  # Values that PyG itself refuses.
                    setattr(graph, key, rng.choice(VALUES)(len(graph.x) if torch.is_tensor(graph.x) else 2))
        if rng.random() < 0.03:
            graphs.append(rng.choice((None, "graph", 3, Data(), {})))
        labels_in_x = rng.choice((None, None, None, 0, 1, 2, 99, -1))
        attempt(
            tally,
            f"pyg {seed} {case}",
            lambda graphs=graphs, k=labels_in_x: assert_valid(from_pyg(graphs, node_labels=k)),
        )
    return tally


def _odd_value(rng: random.Random) -> Any:
    return rng.choice(
        (
            *(
                None,
                True,
                -1,
                0,
                1,
                10**6,
                10**12,
                10**30,
                -(10**30),
                0.5,
                1.0,
                -0.5,
                1e308,
                float("nan"),
                float("inf"),
            ),
            *("", "gc", "gc,nc", "é\n", "\x00", "1", "a" * 9999, [], [1], ["gc"], ["gc", "gc"], [[]], {}, {"gc": 1}),
            *({"gc": -1}, {"gc": "x"}, {"xx": 1}, {1: 2}, {"gc": {"nc": 1}}, ["xx"], "../../etc", "planted"),
        )
    )


def fuzz_config(cases: int, seed: int, folder: Path) -> Tally:
    """Values of configurations, and the files they come in."""
    tally, names = Tally(), list(Config.model_fields)
    graphs = planted(12)
    parts = split(graphs, 0)
    folder.mkdir(parents=True, exist_ok=True)
    for case in range(cases):
        rng = random.Random(f"config {seed} {case}")
        values = {rng.choice([*names, "widht", "", "é"]): _odd_value(rng) for _ in range(rng.choice((0, 1, 1, 2, 5)))}
        path = folder / rng.choice(("c.json", "c.toml", "c"))
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        text = json.dumps(values) if path.suffix == ".json" else "\n".join(lines)
        blob = bytearray(text.encode())
        for _ in range(rng.choice((0, 0, 1, 3))):
            blob[rng.randrange(len(blob) + 1) : rng.randrange(len(blob) + 1)] = rng.choice(
                (*BLOBS, b"[", b"{", b'"', b"=")
            )
        path.write_bytes(blob)

        def use(path: Path = path, values: dict[str, Any] = values, from_file: bool = rng.random() < 0.6) -> None:
            config = make_config(read_config(path) if from_file else values)
            assert make_config(json.loads(json.dumps(config.model_dump(mode="json")))) == config
            assert config.key
            if config.method != "finetuned":
                assemble(config, graphs, parts)

        attempt(tally, f"config {seed} {case}", use)
    return tally


def run_command(arguments: list[str]) -> tuple[int, str]:
    """Run the command in this process; return its exit code and messages. Exceptions that it does not catch pass."""
    from same.cli import main

    before, out, err = sys.argv, io.StringIO(), io.StringIO()
    sys.argv = ["same", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        return 0, err.getvalue()
    except SystemExit as end:
        return int(end.code or 0), err.getvalue()
    finally:
        sys.argv = before


WORDS = (
    *(
        "",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "planted",
        "ENZYMEZ",
        "/",
        ".",
        "..",
        "é",
        "\x01",
        "a" * 999,
        "gc",
        "gc,,nc",
        ",",
        "nc",
    ),
    *("0-3", "9-0", "x-y", "--json", "-q", "--help", "-m", "--out", "1e9", "nan", "=", "a=b", "width=x", "tasks=gc"),
)
VERBS: dict[str, tuple[str, ...]] = {
    "config": ("--show", "--json"),
    "data list": ("--data", "--json"),
    "data check": ("--data", "--json"),
    "train": ("--method", "--tasks", "--split", "--seed", "--config", "--set", "--device", "--threads", "--data"),
    "evaluate": ("--protocol", "--pair", "--probes", "--tasks", "--choose", "--data"),
    "embed": ("--out", "--format", "--data"),
    "report": ("--data",),
    "study": (
        "--questions",
        "--datasets",
        "--methods",
        "--tasks",
        "--splits",
        "--budget",
        "--set",
        "--pair",
        "--engine",
    ),
    "tune": ("--method", "--tasks", "--trials", "--splits", "--seed", "--set", "--space-file", "--sampler", "--engine"),
}


def fuzz_cli(cases: int, seed: int, folder: Path) -> Tally:
    """Arguments of the command. Valid ones do little: it is a dry run, or its set does not exist."""

    def not_found(url: str, **options: object) -> None:
        raise HTTPError(url, 404, "not found", Message(), None)

    tally = Tally()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder), patch("urllib.request.urlopen", not_found):
        for case in range(cases):
            rng = random.Random(f"cli {seed} {case}")
            verb = rng.choice(list(VERBS))
            arguments = verb.split()
            for _ in range(rng.choice((0, 1, 2, 3))):
                word = rng.choice(WORDS)
                if (verb, word) == ("train", "planted"):
                    continue  # It would train.
                value = f"{rng.choice(list(Config.model_fields))}={json.dumps(_odd_value(rng))}"
                option = rng.choice(VERBS[verb])
                arguments += rng.choice(([word], [option, word], [option, value if option == "--set" else word]))
            if verb == "train":
                arguments += ["--data", "nowhere", "--set", "dataset=MISSING"]
            elif verb == "study":
                arguments += ["--out", "study", "--dry-run"]
            elif verb == "tune":
                arguments += ["--out", "search", "--space"]

            def use(arguments: list[str] = arguments) -> None:
                code, err = run_command(arguments)
                assert code in (0, 2), (code, arguments, err)
                assert "Traceback" not in err
                if code:
                    raise InputError(err.strip().splitlines()[-1])

            attempt(tally, f"cli {seed} {case} {arguments}", use)
    return tally
