"""Overhead of a study with many runs."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from same.graphs import planted, save_store
from same.study.engines import Event, Job, local
from same.study.plan import Plan
from same.study.run import run_study


@dataclass
class Load:
    """Memory in MB and open files of the driver after a tenth of the runs and after all, and seconds per run."""

    runs: int
    memory: tuple[float, float]
    handles: tuple[int, int]
    overhead: float

    @property
    def flat(self) -> bool:
        """Whether neither memory nor open files grow."""
        return self.memory[1] < self.memory[0] + 20 and self.handles[1] <= self.handles[0]

    def __str__(self) -> str:
        memory, handles = (" → ".join(f"{value:.0f}" for value in pair) for pair in (self.memory, self.handles))
        return (
            f"{self.runs} runs: memory of the driver {memory} MB, open files {handles}, "
            f"{self.overhead:.2f} s per run besides training and evaluation"
        )


def _now() -> tuple[float, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20, len(list(Path("/proc/self/fd").iterdir()))


def many_runs(runs: int, folder: Path, workers: int = 2) -> Load:
    """Measure a study of untrained encoders on ten splits of tiny sets."""
    sets = [folder / f"set-{number}" for number in range(runs // 10)]
    for number, place in enumerate(sets):
        save_store(planted(40, seed=number), place)
    plan = Plan(questions=("floors",), datasets=tuple(map(str, sets)), settings={"batch_size": 14, "width": 4})
    seen: list[tuple[float, int]] = []
    busy: dict[str, float] = {}

    def watched(jobs: Sequence[Job], crew: int) -> Iterator[Event]:
        for event in local(jobs, crew):
            if event.what in ("start", "done"):
                busy[event.key] = time.monotonic() - busy.get(event.key, 0.0)
            if event.what == "done":
                seen.append(_now())
            yield event

    start = time.monotonic()
    study = run_study(plan, folder / "study", engine=watched, workers=workers, quiet=True)
    seconds = time.monotonic() - start
    assert len(study.runs) == len(plan.runs()) == runs, next(iter(study.failed.values()), "")
    early, late = seen[runs // 10], seen[-1]
    overhead = (workers * seconds - sum(busy.values())) / runs
    return Load(runs, (early[0], late[0]), (early[1], late[1]), overhead)
