"""Loading TU sets beside PyG's own reader: `python benchmarks/loading.py DIR`, DIR holding the zips. CPU seconds."""

import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch_geometric.io import read_tu_data

import same
from same.graphs.sources import KNOWN


def cpu_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main(folder: Path) -> None:
    """Prints a line a set: first time (parsing a zip and writing the cache), cached, PyG's reader, and the ratio."""
    torch.set_num_threads(1)
    print(f"{'set':<15} {'first':>8} {'cached':>8} {'PyG':>8} {'PyG/first':>10}")
    for name in KNOWN:
        with tempfile.TemporaryDirectory() as scratch:
            raw = Path(scratch, name)
            raw.mkdir()
            with zipfile.ZipFile(folder / f"{name}.zip") as archive:
                for member in archive.infolist():
                    (raw / Path(member.filename).name).write_bytes(archive.read(member))
            first = []
            for attempt in range(3):
                os.environ["SAME_CACHE"] = str(Path(scratch, f"cache{attempt}"))
                first.append(cpu_seconds(lambda name=name: same.load(name, folder), repeats=1))
            cached = cpu_seconds(lambda name=name: same.load(name, folder))
            pyg = cpu_seconds(lambda raw=raw, name=name: read_tu_data(str(raw), name))
        print(f"{name:<15} {min(first):8.3f} {cached:8.4f} {pyg:8.3f} {pyg / min(first):9.1f}x")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
