"""A store of many small graphs, written, reopened and cut: `python benchmarks/million.py [GRAPHS]`. Time and memory."""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from same.graphs import GraphStore, planted

CHUNK = 2_000


def resident() -> float:
    """Megabytes of private memory of this process; pages of mapped files, which the system may drop, do not count."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


def main(graphs: int) -> None:
    """Prints what each stage took and the memory after it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, start = Path(scratch, "store"), time.perf_counter()
        print(f"start: {resident():.0f} MB")
        GraphStore.write(folder, (planted(CHUNK, seed=i) for i in range(graphs // CHUNK)))
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        print(f"written: {graphs:,} graphs, {size:,.0f} MB, {time.perf_counter() - start:.1f} s, {resident():.0f} MB")
        start = time.perf_counter()
        store = GraphStore.open(folder)
        print(f"opened: {store}, {1000 * (time.perf_counter() - start):.1f} ms, {resident():.0f} MB")
        rng, cuts = np.random.default_rng(0), 2_000
        start = time.process_time()
        for _ in range(cuts):
            store.cut(rng.integers(store.num_graphs, size=24))
        each = 1000 * (time.process_time() - start) / cuts
        print(f"cut: {cuts:,} random batches of 24 graphs, {each:.2f} ms of CPU each, {resident():.0f} MB")
    print(f"peak resident, mapped files included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
