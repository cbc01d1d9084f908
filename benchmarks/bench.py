"""Speed of the package compared with plain PyG and scikit-learn: `make bench`.

Every row is a ratio of CPU times from one run, in which the contenders take turns on one thread. The JSON file has
wall times as well.
"""

import argparse
import gc
import importlib.util
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import plain
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.io import read_tu_data

import same
from same.config import Config
from same.episodes import EpisodeSampler, multi_task_episode
from same.experiment import Experiment, prepare
from same.graphs import open_store, planted, to_pyg, write_store
from same.graphs.io.sources import KNOWN
from same.linear import GRID, LinearSVM
from same.linear.svm import fit_path
from same.methods.same import ESAME
from same.nn import Encoder, Model
from same.probes.protocols import make_cases, probe_examples
from same.tasks import make_tasks
from same.threads import limit_threads
from same.weighting import Weighting

BATCH = 16


@dataclass
class Row:
    """One row of the table.

    Attributes:
        what: description of the measurement.
        value: measured ratio or number.
        spread: quartiles of the value over the turns.
        bar: target, such as `>= 4` or `<= 0.08`.
        detail: times of the contenders, in milliseconds of CPU unless stated otherwise.
    """

    what: str
    value: float
    spread: tuple[float, float]
    bar: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the value reaches the bar."""
        sign, bar = self.bar.split()
        return self.value >= float(bar) if sign == ">=" else self.value <= float(bar)


Times = dict[str, list[tuple[float, float]]]


def take_turns(contenders: dict[str, Callable[[int], object]], turns: int, warm: int = 3) -> Times:
    """(CPU, wall) milliseconds of every contender at every turn; contenders are called with the number of the turn.

    Every timed call follows an untimed one of the same contender, so that the state of the caches is the same for all.
    """
    times: Times = {name: [] for name in contenders}
    gc.collect()
    gc.freeze()
    for turn in range(-warm, turns):
        for name, call in contenders.items():
            call(turn % turns)
            wall, cpu = time.perf_counter(), time.process_time()
            call(turn % turns)
            spent = (1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall))
            if turn >= 0:
                times[name].append(spent)
    return times


def ratio(what: str, times: Times, above: str, below: str, bar: str) -> Row:
    """Median and quartiles over the turns of the ratio of two contenders' CPU times."""
    cpu = {name: np.array(spent)[:, 0] for name, spent in times.items()}
    low, middle, high = np.quantile(cpu[above] / cpu[below], (0.25, 0.5, 0.75))
    detail = {name: round(float(np.median(values)), 3) for name, values in cpu.items()}
    detail["wall"] = {name: round(float(np.median(np.array(spent)[:, 1])), 3) for name, spent in times.items()}
    return Row(what, float(middle), (float(low), float(high)), bar, detail)


class Products(TorchDispatchMode):
    """Records the shapes of all products of two dense matrices."""

    numbers = torch.randn(2**22)

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[torch.Size, torch.Size]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record a product, and compute it."""
        if function.__name__.split(".")[0] in ("mm", "addmm", "addmm_"):
            a, b = args[-2:]
            if a.layout == b.layout == torch.strided:
                self.shapes.append((a.shape, b.shape))
        return function(*args, **(kwargs or {}))

    def again(self) -> None:
        """Compute products of the recorded shapes, and nothing else."""
        for (n, m), (_, k) in self.shapes:
            torch.mm(self.numbers[: n * m].view(n, m), self.numbers[: m * k].view(m, k))


def one_step(model: Any, optimiser: torch.optim.Optimizer, losses: Callable[[], Any]) -> None:
    """UPDATE, as `same.training` does it; `losses` returns one loss or a dict of losses by task."""
    loss = losses()
    optimiser.zero_grad()
    if isinstance(loss, dict):
        Weighting().backward(loss, model)
    else:
        loss.backward()
    torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    optimiser.step()


def contestants(data: Path, name: str) -> tuple[Experiment, EpisodeSampler, Any, list[Any], plain.Net, Any]:
    """A method and its plain counterpart on ENZYMES, each with its optimiser: (ours…, graphs, plain net, …)."""
    config = Config(dataset="ENZYMES", method=name, batch_size=BATCH, degree=0)
    setting = prepare(config, data)
    sampler = EpisodeSampler(setting.store, setting.split.train, setting.tasks, BATCH, setting.method.draw)
    net = plain.Net(setting.store.num_features, config.width, 6, 3)
    ours, theirs = (torch.optim.Adam(m.parameters(), lr=config.outer_lr, fused=True) for m in (setting.model, net))
    return setting, sampler, ours, to_pyg(setting.store, codes=True), net, theirs


def meta_steps(data: Path, turns: int, name: str, bars: tuple[str, str]) -> Iterator[Row]:
    """Steps of eSAME or iSAME on ENZYMES, compared with plain PyG, TorchOpt and the matrix products alone."""
    setting, sampler, optimiser, graphs, net, rival = contestants(data, name)
    model, method, whole = setting.model, setting.method, name == "isame"

    def draw(turn: int) -> Any:
        return sampler.draw(*divmod(turn, sampler.steps))

    def ours(turn: int) -> None:
        one_step(model, optimiser, lambda: method.losses(model, draw(turn)))

    def theirs(turn: int, loss: Callable[..., Any] = plain.outer_loss, **options: bool) -> None:
        one_step(net, rival, lambda: loss(net, plain.episode(members[turn]), adapt_encoder=whole, **options))

    contenders: dict[str, Callable[[int], object]] = {"ours": ours, "episode": draw, "plain": theirs}
    if not whole:
        contenders["plain, encoding once"] = lambda turn: theirs(turn, once=True)
    if importlib.util.find_spec("torchopt"):
        contenders["torchopt"] = lambda turn: theirs(turn, plain.outer_loss_torchopt)
    else:
        print("TorchOpt is not installed (extra `bench`): its row is left out", file=sys.stderr)
    products, members = {}, {}
    for turn in range(turns):
        with Products() as products[turn]:
            Weighting().backward(method.losses(model, draw(turn)), model)
        model.zero_grad()
        members[turn] = [graphs[i] for i in sampler._epoch[1][turn % sampler.steps]]
    contenders["machine"] = lambda turn: products[turn].again()
    times = take_turns(contenders, turns)
    yield ratio(f"{name} step, vs plain PyG", times, "plain", "ours", bars[0])
    if not whole:
        yield ratio(f"{name} step, vs plain PyG that encodes once", times, "plain, encoding once", "ours", ">= 1")
    if "torchopt" in times:
        yield ratio(f"{name} step, vs PyG with TorchOpt", times, "torchopt", "ours", ">= 1")
    yield ratio(f"{name} step, vs its matrix products alone", times, "machine", "ours", bars[1])
    if not whole:
        yield ratio("drawing the episode, share of an esame step", times, "episode", "ours", "<= 0.08")


def steps(data: Path, turns: int) -> Iterator[Row]:
    """Meta-steps and classical epochs on ENZYMES."""
    yield from meta_steps(data, turns, "esame", (">= 4", ">= 0.55"))
    yield from meta_steps(data, turns, "isame", (">= 2.2", ">= 0.5"))
    setting, sampler, optimiser, graphs, net, rival = contestants(data, "classical")
    model, method, graphs = setting.model, setting.method, [graphs[i] for i in setting.split.train]

    def epoch(turn: int) -> None:
        for step in range(sampler.steps):
            one_step(model, optimiser, lambda step=step: method.losses(model, sampler.draw(turn, step)))

    def their_epoch(turn: int) -> None:
        order = random.sample(graphs, len(graphs))
        for step in range(sampler.steps):
            batch = order[step * BATCH : (step + 1) * BATCH]
            one_step(net, rival, lambda batch=batch: plain.classical_loss(net, batch))

    times = take_turns({"ours": epoch, "plain": their_epoch}, max(3, turns // 10), warm=0)
    yield ratio("classical epoch, three tasks, vs plain PyG", times, "plain", "ours", ">= 2")


def probe(data: Path, turns: int) -> Iterator[Row]:
    """The linear probe compared with scikit-learn's LinearSVC, on the node embeddings of ENZYMES."""
    setting = prepare(Config(dataset="ENZYMES", degree=0), data)
    (case,) = make_cases(make_tasks(["nc"], setting.store), ("paper",))
    examples = probe_examples(setting, [case])[case]["train"]
    with torch.no_grad():
        x, y = setting.model.encoder(examples.inputs).numpy(), examples.y.numpy()

    def fit(model: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x, y)

    contenders: dict[str, Callable[[int], object]] = {
        "ours": lambda turn: fit(LinearSVM()),
        "LinearSVC, same features": lambda turn: fit(make_pipeline(StandardScaler(), LinearSVC())),
        "LinearSVC, not standardised": lambda turn: fit(LinearSVC()),
    }
    times = take_turns(contenders, turns, warm=0)
    _, same_problem, other = contenders
    yield ratio("linear probe, ENZYMES nodes, vs LinearSVC", times, same_problem, "ours", ">= 10")
    yield ratio("linear probe, vs LinearSVC without standardising", times, other, "ours", ">= 1")
    path: dict[str, Callable[[int], object]] = {
        "eight values of C": lambda turn: fit_path([LinearSVM(c) for c in GRID], x, y),
        "one": lambda turn: LinearSVM().fit(x, y),
    }
    times = take_turns(path, turns, warm=1)
    yield ratio("linear probe, eight values of C vs one", times, "eight values of C", "one", "<= 3")


def loading(data: Path, turns: int) -> Iterator[Row]:
    """First and cached loading of the four TU sets, compared with PyG's reader."""
    for name in KNOWN:
        with tempfile.TemporaryDirectory() as scratch:
            raw = Path(scratch, name)
            raw.mkdir()
            with zipfile.ZipFile(data / f"{name}.zip") as archive:
                for member in archive.infolist():
                    (raw / Path(member.filename).name).write_bytes(archive.read(member))

            def first(turn: int, name: str = name, scratch: str = scratch) -> None:
                os.environ["SAME_CACHE"] = str(Path(scratch, f"cache{time.monotonic_ns()}"))
                same.load(name, data)

            times = take_turns(
                {
                    "first": first,
                    "cached": lambda turn, name=name: same.load(name, data),
                    "PyG": lambda turn, raw=raw, name=name: read_tu_data(str(raw), name),
                },
                turns,
                warm=0,
            )
        yield ratio(f"loading {name}, first time, vs PyG's reader", times, "PyG", "first", ">= 3")
        cached = [cpu for cpu, _ in times["cached"]]
        yield Row(f"loading {name}, cached, ms", float(np.median(cached)), (min(cached), max(cached)), "<= 50")


def workers(data: Path) -> Iterator[Row]:
    """Two workers compared with one, on a study of eight runs; wall time."""
    seconds = {}
    # 40 epochs take about as long as evaluating the untrained encoder: runs of equal length keep both workers busy.
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-c", "from same.cli import main; main()", "--quiet", "study"]
            command += f"--out {scratch}/study --questions overview --methods esame --datasets ENZYMES".split()
            command += f"--splits 0-3 --set max_epochs=40 --workers {count} --data {data}".split()
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[count] = time.perf_counter() - start
    value = seconds[1] / seconds[2]
    detail = {f"{count} workers, s": round(s, 1) for count, s in seconds.items()}
    yield Row("two workers vs one, study of 8 runs (wall time)", value, (value, value), ">= 1.8", detail)


def child(arguments: list[str]) -> tuple[Any, str]:
    """Resource usage and output of a Python process."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments}: exit code {process.returncode}")
    return usage, printed


def processes(data: Path) -> Iterator[Row]:
    """Memory of a training process, and CPU time of `same --help`."""
    with tempfile.TemporaryDirectory() as scratch:
        train = f"train ENZYMES --data {data} --set max_epochs=10 --out {scratch}/run".split()
        # Not ru_maxrss: for a child process it includes the memory of its parent at the fork.
        code = "import atexit; atexit.register(lambda: print(open('/proc/self/status').read())); "
        _, printed = child(["-c", f"{code}from same.cli import main; main()", "--quiet", *train])
    resident = next(int(line.split()[1]) for line in printed.splitlines() if line.startswith("VmHWM")) / 1024
    yield Row("memory of a training process, ENZYMES, MB", resident, (resident, resident), "<= 700")
    code = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); "
    spent = []
    for _ in range(5):
        usage, printed = child(["-c", f"{code}from same.cli import main; main()", "--help"])
        spent.append(usage.ru_utime + usage.ru_stime)
    detail = {"imports torch": printed.splitlines()[-1] == "True"}
    yield Row("same --help, s of CPU", float(np.median(spent)), (min(spent), max(spent)), "<= 0.4", detail)


def growth(graphs: int, turns: int) -> Iterator[Row]:
    """An eSAME step on a memory-mapped set of many graphs, compared with a set of a thousand."""
    chunk = 1_000
    with tempfile.TemporaryDirectory() as scratch:
        contenders = {}
        for count in (chunk, graphs):
            folder = Path(scratch, str(count))
            write_store(folder, (planted(chunk, seed=i) for i in range(count // chunk)))
            store = open_store(folder)
            tasks = make_tasks(["gc", "nc", "lp"], store)
            sampler = EpisodeSampler(store, np.arange(count), tasks, BATCH, multi_task_episode)
            torch.manual_seed(0)
            model = Model(Encoder(store.num_features), {task.name: task.head(256) for task in tasks})
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
            method = ESAME()

            def step(turn: int, sampler=sampler, model=model, optimiser=optimiser, method=method) -> None:
                one_step(model, optimiser, lambda: method.losses(model, sampler.draw(0, turn)))

            contenders[f"{count:,}"] = step
        times = take_turns(contenders, min(turns, 60))
    small, large = contenders
    yield ratio(f"esame step, {large} graphs vs {small}", times, large, small, "<= 1.2")


def main() -> None:
    """Measure, print the table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with ENZYMES.zip and the other sets")
    parser.add_argument("--json", type=Path, help="output file for the table (JSON)")
    parser.add_argument("--only", help="any of steps, probe, loading, processes, growth, workers; all by default")
    parser.add_argument("--turns", type=int, default=60, help="number of turns of each contender")
    parser.add_argument("--graphs", type=int, default=1_000_000, help="size of the large set of `growth`")
    options = parser.parse_args()
    limit_threads()
    random.seed(0)
    torch.manual_seed(0)
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "steps": lambda: steps(options.data, options.turns),
        "probe": lambda: probe(options.data, 5),
        "loading": lambda: loading(options.data, 3),
        "processes": lambda: processes(options.data),
        "growth": lambda: growth(options.graphs, options.turns),
        "workers": lambda: workers(options.data),
    }
    rows = []
    print(f"{'what':<58} {'':>8} {'quartiles':>17} {'bar':>8}")
    for name in options.only.split(",") if options.only else parts:
        for row in parts[name]():
            rows.append(row)
            low, high = row.spread
            spread = f"{low:.3g} - {high:.3g}"
            missed = "" if row.met else "missed"
            print(f"{row.what:<58} {row.value:>8.3g} {spread:>17} {row.bar:>8} {missed}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{sum(row.met for row in rows)} of {len(rows)} bars met; peak memory of this process {peak:.0f} MB")
    if options.json:
        table = [asdict(row) | {"met": row.met} for row in rows]
        options.json.write_text(json.dumps(table, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
