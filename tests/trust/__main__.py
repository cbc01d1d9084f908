"""Injects faults, bad input and mistakes, and prints a summary: `python -m trust [--quick]`, or `make trust`."""

import argparse
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trust import bad_data, faults, load, mutations

Row = tuple[int, int, str]
"""Number of tries, number of failures, and a note."""

TESTS = (
    "tests/trust",
    "tests/test_estimator.py::test_eight_threads_share_a_model",
    "tests/study/test_run.py::test_killed_and_continued_it_ends_in_the_same_table",
    "tests/training/test_loop.py::test_a_loss_that_is_not_finite_stops_with_step_and_task",
    "tests/graphs/io",
)


def _kills(verb: str, kills: int, folder: Path) -> Row:
    done = faults.kill_at_random(verb, kills, 0, folder)
    return done.injected, done.injected - done.survived, f"{done.in_writes} of them during a write"


def _signals(folder: Path) -> Row:
    wrong, longest = 0, 0.0
    cases = [(verb, number) for verb in ("train", "study", "tune") for number in (signal.SIGINT, signal.SIGTERM)]
    for verb, number in cases:
        seconds, code, err = faults.signalled(verb, number, folder / f"{verb}-{number}")
        longest = max(longest, seconds)
        wrong += code != 130 or "run the same command to continue" not in err or "Traceback" in err
    return len(cases), wrong, f"the slowest stopped after {longest:.1f} s"


def _two_processes(folder: Path) -> Row:
    seconds = [faults.second_of_two(verb, folder / verb) for verb in ("train", "study", "tune")]
    wrong = [err for code, err in seconds if code != 2 or "another process is working" not in err]
    return len(seconds), len(wrong), "the second one was refused"


def _no_room(folder: Path) -> Row:
    results = [faults.without_room(limit, folder / f"{i}") for i, limit in enumerate(faults.LIMITS)]
    tried = [result for result in results if result is not None]
    wrong = [err for code, err in tried if code != 2 or "Traceback" in err or not err.splitlines()[-1:]]
    return len(tried), len(wrong), "a full disk, a quota, a read-only disk" if len(tried) == 3 else "a quota"


def _damage(rounds: int, folder: Path) -> Row:
    faults.make_runs(folder / "runs")
    rng, tried, wrong, warned = random.Random(0), 0, 0, 0
    for which, name in faults.DAMAGED:
        for kind in faults.HARMS * rounds:
            same, reported = faults.damage_run(folder / "runs", which, name, kind, rng, folder / "work")
            tried, wrong, warned = tried + 1, wrong + (not same), warned + reported
    return tried, wrong, f"{warned} were repaired with a warning"


def _bad(tally: bad_data.Tally) -> Row:
    for fault in tally.faults[:10]:
        sys.stderr.write(fault + "\n")
    return tally.tried, len(tally.faults), f"{tally.accepted} were valid, the others refused"


def _mutations(count: int) -> Row:
    if not mutations.control():
        return 0, 1, "the tests fail without a mutation"
    chosen = mutations.MUTATIONS[:: max(1, len(mutations.MUTATIONS) // count)][:count]
    missed = [mutation.name for mutation in chosen if not mutations.plant(mutation)]
    return len(chosen), len(missed), f"missed: {', '.join(missed)}" if missed else "caught by the tests"


def _load(runs: int, folder: Path) -> Row:
    measured = load.many_runs(runs, folder)
    return runs, int(not measured.flat), str(measured)


def _tests() -> Row:
    out = mutations.run_tests(mutations.ROOT / "src", TESTS, ("-m", "not slow")).stdout
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|error)", out)}
    passed, wrong = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    return passed + wrong, wrong or int(not passed), "numbers, security, threads, and a sample of the other parts"


SUMS = {
    "fault": ("faults injected / survived", lambda tried, wrong: tried - wrong),
    "bad input": ("bad inputs tried / faults", lambda tried, wrong: wrong),
    "mutation": ("mutations planted / caught", lambda tried, wrong: tried - wrong),
}


def main() -> None:
    """Run all parts; exit with 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="trust")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--only", help="only parts whose name contains this, such as bad or killed")
    options = parser.parse_args()
    quick, begun = options.quick, time.monotonic()
    share = 30 if quick else 1000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parts: dict[str, Callable[[], Row]] = {
            "fault: same train killed": lambda: _kills("train", 2 if quick else 20, folder / "kt"),
            "fault: same study killed": lambda: _kills("study", 2 if quick else 15, folder / "ks"),
            "fault: same tune killed": lambda: _kills("tune", 2 if quick else 15, folder / "ku"),
            "fault: SIGINT, SIGTERM": lambda: _signals(folder / "signals"),
            "fault: two processes": lambda: _two_processes(folder / "two"),
            "fault: no room": lambda: _no_room(folder / "room"),
            "fault: damaged files": lambda: _damage(1 if quick else 5, folder / "damage"),
            "bad input: TU sets": lambda: _bad(bad_data.fuzz_tu(6 * share, 0, folder / "tu")),
            "bad input: PyG graphs": lambda: _bad(bad_data.fuzz_pyg(4 * share, 0)),
            "bad input: configurations": lambda: _bad(bad_data.fuzz_config(2 * share, 0, folder / "config")),
            "bad input: arguments": lambda: _bad(bad_data.fuzz_cli(share, 0, folder / "cli")),
            "mutation": lambda: _mutations(3 if quick else len(mutations.MUTATIONS)),
            "load": lambda: _load(40 if quick else 500, folder / "load"),
            "tests": _tests,
        }
        rows: dict[str, Row] = {}
        table = Table("part", "tried", "failed", "", "seconds", title="Trust", title_justify="left")
        for name, part in parts.items():
            if options.only and options.only not in name:
                continue
            start = time.monotonic()
            try:
                with bad_data.bounded() if name.startswith("bad") else nullcontext():
                    tried, wrong, note = part()
            except Exception:  # The other parts still run.
                traceback.print_exc()
                tried, wrong, note = 1, 1, "raised an exception"
            rows[name] = tried, wrong, note
            seconds = time.monotonic() - start
            sys.stderr.write(f"{name}: {tried:,} tried, {wrong} failed; {note}; {seconds:.0f} s\n")
            table.add_row(name, f"{tried:,}", str(wrong), note, f"{seconds:.0f}")
    Console(soft_wrap=not sys.stdout.isatty()).print(table)
    for kind, (title, count) in SUMS.items():
        tried, wrong = (sum(row[i] for name, row in rows.items() if name.startswith(kind)) for i in (0, 1))
        print(f"{title}: {tried:,} / {count(tried, wrong):,}")
    print(f"time: {time.monotonic() - begun:.0f} s")
    sys.exit(1 if any(wrong for _, wrong, _ in rows.values()) else 0)


if __name__ == "__main__":
    main()
