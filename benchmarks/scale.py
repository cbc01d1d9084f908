"""Measurements of `docs/scaling.md`: cost of steps, gain of a second rank, and a set that does not fit into memory.

python benchmarks/scale.py steps --data DIR        # CPU time of a step and of a validation, by set and method
python benchmarks/scale.py ranks --data DIR        # two processes under torchrun compared with one, wall time
python benchmarks/scale.py large --graphs 1000000  # make, train, embed and probe a large set: time, memory, disk
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from same.config import Config
from same.experiment import run
from same.saved import finished
from same.threads import limit_threads

SETS, METHODS = ("planted", "ENZYMES", "PROTEINS", "DHFR", "COX2"), ("esame", "isame", "classical")


class Enough(Exception):  # noqa: N818
    """Enough steps were measured."""


def steps(data: Path | None, count: int) -> None:
    """Print the median CPU time of a step in milliseconds, and of a validation in seconds."""
    print("| set | method | steps per epoch | ms per step | s per validation |\n|---|---|---|---|---|")
    for dataset, method in product(SETS, METHODS):
        config = Config(dataset=dataset, method=method, validate_every=1, max_epochs=10**6, patience=10**6)
        spent: dict[int, float] = {}
        validated, last, size = set(), time.process_time(), 0

        def report(step: int, steps: int, record: dict[str, Any]) -> None:
            nonlocal last, size
            now = time.process_time()
            if "losses" in record:
                spent[step] = now - last  # noqa: B023 (called before the next turn of the loop)
            else:
                validated.add(step)  # noqa: B023 (the validation is part of the time of its step)
            last, size = now, steps // 10**6
            if step == count:
                raise Enough

        with tempfile.TemporaryDirectory() as folder, suppress(Enough):
            run(config, Path(folder, "run"), data=data, device="cpu", report=report)
        step = float(np.median([seconds for number, seconds in spent.items() if number not in validated]))
        both = float(np.median([seconds for number, seconds in spent.items() if number in validated]))
        print(f"| {dataset} | {method} | {size} | {1000 * step:.0f} | {both - step:.2f} |", flush=True)


def ranks(data: Path | None, epochs: int, turns: int) -> None:
    """Compare one process that draws two episodes per step with two that draw one each; the runs must be equal."""
    settings = ["ENZYMES", "--set", f"max_epochs={epochs}", "--set", "patience=100000", "--set", "episodes_per_step=2"]
    settings += ["--set", f"validate_every={epochs}", *([] if data is None else ["--data", str(data)])]
    torchrun = [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node", "2"]
    commands = {"one": [sys.executable, "-m", "same"], "two": [*torchrun, "-m", "same"]}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(turns):
            models = set()
            for name, command in commands.items():
                out = Path(scratch, f"{name}{turn}")
                subprocess.run([*command, "--quiet", "train", *settings, "--out", out], check=True)
                result = finished(out)
                assert result is not None
                models.add((out / "model.safetensors").read_bytes())
                seconds[name].append(result["seconds"])
                spent = f"{result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU in the first rank"
                print(f"turn {turn}, {name}: {result['steps']} steps in {spent}", flush=True)
            print("bit-identical models" if len(models) == 1 else "the models DIFFER")
    ratios = np.array(seconds["one"]) / seconds["two"]
    print(f"speed of two ranks vs one: {np.median(ratios):.2f} ({ratios.min():.2f} - {ratios.max():.2f})")


def large(graphs: int, folder: Path, width: int) -> None:
    """Train 200 steps on a set of many graphs, embed it, and fit linear probes."""
    made, trained, embedded = folder / "set", folder / "run", folder / "embeddings"
    batch = -(-graphs * 7 // 10 // 200)
    settings = ["--set", "max_epochs=1", "--set", f"batch_size={batch}", "--set", f"width={width}"]
    _watch("make", "data", "make", "--graphs", str(graphs), "--out", made)
    _watch("train", "train", made, *settings, "--out", trained)
    _watch("embed", "embed", trained, made, "--out", embedded, "--format", "npy")
    for what in (made, trained, embedded):
        print(f"{what.name}: {sum(path.stat().st_size for path in what.iterdir()) / 1e9:.2f} GB on disk", flush=True)
    for path in embedded.iterdir():
        path.unlink()
    _watch("evaluate", "evaluate", trained, "--probes", "linear", "--no-floors")


def _watch(name: str, *arguments: Any) -> None:
    """Run a verb, and print its time, its private memory and its memory-mapped pages."""
    start, peak = time.perf_counter(), {"RssAnon": 0, "RssFile": 0}
    process = subprocess.Popen([sys.executable, "-m", "same", *map(str, arguments)])
    before = os.times()
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        for line in status.splitlines():
            if (kind := line.partition(":")[0]) in peak:
                peak[kind] = max(peak[kind], int(line.split()[1]))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{name}: exit code {process.returncode}")
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    private, mapped = (peak[kind] / 1024 for kind in ("RssAnon", "RssFile"))
    print(f"{name}: {wall:.0f} s, {cpu:.0f} s of CPU, {private:.0f} MB private, {mapped:.0f} MB mapped", flush=True)


def main() -> None:
    """Measure and print."""
    limit_threads()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("steps", "ranks", "large"))
    parser.add_argument("--data", type=Path, help="folder of the paper's sets")
    parser.add_argument("--count", type=int, default=40, help="steps to measure in `steps`")
    parser.add_argument("--epochs", type=int, default=60, help="epochs of the runs of `ranks`")
    parser.add_argument("--turns", type=int, default=3, help="turns of `ranks`")
    parser.add_argument("--graphs", type=int, default=1_000_000, help="size of the large set")
    parser.add_argument("--width", type=int, default=64, help="width of the encoder of `large`")
    parser.add_argument("--folder", type=Path, help="folder for the large set; a temporary one by default")
    options = parser.parse_args()
    if options.what == "steps":
        steps(options.data, options.count)
    elif options.what == "ranks":
        ranks(options.data, options.epochs, options.turns)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            large(options.graphs, options.folder or Path(scratch), options.width)


if __name__ == "__main__":
    main()
