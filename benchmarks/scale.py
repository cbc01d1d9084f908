"""What `docs/scaling.md` rests on: the cost of steps, what a second rank gains, and a set that does not fit.

python benchmarks/scale.py steps --data DIR      # CPU time of a meta-step and of a validation, by set and method
python benchmarks/scale.py ranks --data DIR      # two processes under torchrun beside one, wall time
python benchmarks/scale.py large --graphs 1000000  # make, train, embed and probe a large set: time, memory, disk
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from same.runs import lessons, prepare

from same.config import Config
from same.threads import limit_threads
from same.training import train

SETS, METHODS = ("planted", "ENZYMES", "PROTEINS", "DHFR", "COX2"), ("esame", "isame", "classical")


class Enough(Exception):  # noqa: N818
    """There are enough steps."""


def steps(data: Path | None, count: int) -> None:
    """CPU milliseconds of a step, and CPU seconds of a validation, medians."""
    print("| set | method | steps an epoch | ms a step | s a validation |\n|---|---|---|---|---|")
    for dataset in SETS:
        for method in METHODS:
            config = Config(dataset=dataset, method=method, validate_every=1, max_epochs=10**6, patience=10**6)
            setting = prepare(config, data)
            taught, sampler, validation = lessons(config, setting)
            spent: dict[bool, list[float]] = {True: [], False: []}
            last = [time.process_time()]

            def report(step: int, steps: int, news: dict[str, Any], spent=spent, last=last) -> None:
                now = time.process_time()
                spent["losses" in news].append(now - last[0])
                last[0] = now
                if step == count:
                    raise Enough

            try:
                train(setting.model, taught, sampler, validation, config, report=report)
            except Enough:
                step, validating = (float(np.median(spent[kind][2:])) for kind in (True, False))
                print(f"| {dataset} | {method} | {sampler.steps} | {1000 * step:.0f} | {validating:.2f} |", flush=True)


def ranks(data: Path | None, epochs: int, turns: int) -> None:
    """One process with two episodes a step beside two with one each, in turns; the runs must be equal."""
    settings = ["ENZYMES", "--set", f"max_epochs={epochs}", "--set", "patience=100000", "--set", "episodes_per_step=2"]
    settings += ["--set", f"validate_every={epochs}", *([] if data is None else ["--data", str(data)])]
    torchrun = [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node", "2"]
    commands = {"one": [sys.executable, "-m", "same"], "two": [*torchrun, "-m", "same"]}
    found: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(turns):
            models = set()
            for name, command in commands.items():
                out = Path(scratch, f"{name}{turn}")
                subprocess.run([*command, "--quiet", "train", *settings, "--out", out], check=True)
                result = json.loads((out / "result.json").read_text())
                models.add((out / "model.safetensors").read_bytes())
                found[name].append(result["seconds"])
                spent = f"{result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU in the first rank"
                print(f"turn {turn}, {name}: {result['steps']} steps in {spent}", flush=True)
            print("the same bits" if len(models) == 1 else "NOT the same bits")
    ratios = np.array(found["one"]) / found["two"]
    print(f"two ranks beside one: {np.median(ratios):.2f} times ({ratios.min():.2f} - {ratios.max():.2f})")


def large(graphs: int, folder: Path, width: int) -> None:
    """200 steps from a set of many graphs, its embeddings, and linear probes of them."""
    made, trained, embedded = folder / "set", folder / "run", folder / "embeddings"
    batch = -(-graphs * 7 // 10 // 200)
    how = ["--set", "max_epochs=1", "--set", f"batch_size={batch}", "--set", f"width={width}"]
    _watch("make", "data", "make", "--graphs", str(graphs), "--out", made)
    _watch("train", "train", made, *how, "--out", trained)
    _watch("embed", "embed", trained, made, "--out", embedded, "--format", "npy")
    for what in (made, trained, embedded):
        print(f"{what.name}: {sum(path.stat().st_size for path in what.iterdir()) / 1e9:.2f} GB on disk", flush=True)
    for path in embedded.iterdir():
        path.unlink()
    _watch("evaluate", "evaluate", trained, "--probes", "linear", "--no-floors")


def _watch(name: str, *arguments: Any) -> None:
    """Does something, and says its time and its memory: its own, and what it had mapped of files."""
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
        raise SystemExit(f"{name}: ended with code {process.returncode}")
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    own, mapped = (peak[kind] / 1024 for kind in ("RssAnon", "RssFile"))
    print(f"{name}: {wall:.0f} s, {cpu:.0f} s of CPU, {own:.0f} MB of its own, {mapped:.0f} MB of files", flush=True)


def main() -> None:
    """Measures, and prints."""
    limit_threads()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("steps", "ranks", "large"))
    parser.add_argument("--data", type=Path, help="where the paper's sets lie")
    parser.add_argument("--count", type=int, default=40, help="steps to measure")
    parser.add_argument("--epochs", type=int, default=60, help="of a run that ranks share")
    parser.add_argument("--turns", type=int, default=3, help="of one and two ranks")
    parser.add_argument("--graphs", type=int, default=1_000_000, help="of the large set")
    parser.add_argument("--width", type=int, default=64, help="of the encoder of the large set")
    parser.add_argument("--folder", type=Path, help="for the large set; deleted afterwards unless it is named")
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
