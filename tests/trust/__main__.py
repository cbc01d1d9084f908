"""Prints what was done to break things, and what came of it: `python -m trust [--quick]`, or `make trust`."""

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
"""How many were tried, how many went wrong, and what else there is to say."""

TESTS = (
    "tests/trust",
    "tests/test_estimator.py::test_eight_threads_get_one_answer",
    "tests/study/test_run.py::test_killed_and_continued_it_ends_in_the_same_table",
    "tests/test_training.py::test_a_loss_that_is_not_finite_stops_with_step_and_task",
    "tests/graphs/io/test_sources.py",
    "tests/graphs/io/test_tu.py",
)


def _kills(verb: str, kills: int, folder: Path) -> Row:
    found = faults.kill_at_random(verb, kills, 0, folder)
    return found.injected, found.injected - found.survived, f"{found.in_writes} of them during a write"


def _signals(folder: Path) -> Row:
    wrong, longest = 0, 0.0
    cases = [(verb, number) for verb in ("train", "study", "tune") for number in (signal.SIGINT, signal.SIGTERM)]
    for verb, number in cases:
        seconds, code, said = faults.signalled(verb, number, folder / f"{verb}-{number}")
        longest = max(longest, seconds)
        wrong += code != 130 or "run the same command to continue" not in said or "Traceback" in said
    return len(cases), wrong, f"the slowest stopped after {longest:.1f} s"


def _two_processes(folder: Path) -> Row:
    found = [faults.second_of_two(verb, folder / verb) for verb in ("train", "study", "tune")]
    wrong = [said for code, said in found if code != 2 or "another process is at work" not in said]
    return len(found), len(wrong), "the second one was told"


def _no_room(folder: Path) -> Row:
    found = [faults.without_room(limit, folder / f"{i}") for i, limit in enumerate(faults.LIMITS)]
    tried = [one for one in found if one is not None]
    wrong = [said for code, said in tried if code != 2 or "Traceback" in said or not said.splitlines()[-1:]]
    return len(tried), len(wrong), "a full disk, a quota, a read-only disk" if len(tried) == 3 else "a quota"


def _damage(rounds: int, folder: Path) -> Row:
    faults.make_runs(folder / "runs")
    rng, tried, wrong, said = random.Random(0), 0, 0, 0
    for which, name in faults.DAMAGED:
        for how in faults.HARMS * rounds:
            same, told = faults.damage_run(folder / "runs", which, name, how, rng, folder / "work")
            tried, wrong, said = tried + 1, wrong + (not same), said + told
    return tried, wrong, f"{said} needed mending, and it was said"


def _bad(found: bad_data.Tally) -> Row:
    for fault in found.faults[:10]:
        sys.stderr.write(fault + "\n")
    return found.tried, len(found.faults), f"{found.taken} were sound, the others refused"


def _mutations(count: int) -> Row:
    if not mutations.control():
        return 0, 1, "the tests fail without any mistake planted"
    chosen = mutations.MUTATIONS[:: max(1, len(mutations.MUTATIONS) // count)][:count]
    missed = [mutation.name for mutation in chosen if not mutations.plant(mutation)]
    return len(chosen), len(missed), f"missed: {', '.join(missed)}" if missed else "caught by the tests"


def _load(runs: int, folder: Path) -> Row:
    found = load.many_runs(runs, folder)
    return runs, int(not found.flat), str(found)


def _tests() -> Row:
    said = mutations.run_tests(mutations.ROOT / "src", TESTS, ("-m", "not slow")).stdout
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|error)", said)}
    passed, wrong = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    return passed + wrong, wrong or int(not passed), "numbers, security, threads, and samples of the rest"


SUMS = {
    "fault": ("faults injected / survived", lambda tried, wrong: tried - wrong),
    "bad input": ("bad inputs tried / tracebacks", lambda tried, wrong: wrong),
    "mutation": ("mutations planted / caught", lambda tried, wrong: tried - wrong),
}


def main() -> None:
    """Does everything, and ends with exit code 1 if anything was lost, let in or missed."""
    parser = argparse.ArgumentParser(prog="trust")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--only", help="parts of which this is a part, like bad or killed")
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
        found: dict[str, Row] = {}
        table = Table("part", "tried", "went wrong", "", "seconds", title="Trust", title_justify="left")
        for name, part in parts.items():
            if options.only and options.only not in name:
                continue
            start = time.monotonic()
            try:
                with bad_data.bounded() if name.startswith("bad") else nullcontext():
                    tried, wrong, note = part()
            except Exception:  # The other parts are still of interest.
                traceback.print_exc()
                tried, wrong, note = 1, 1, "came to no end"
            found[name] = tried, wrong, note
            seconds = time.monotonic() - start
            sys.stderr.write(f"{name}: {tried:,} tried, {wrong} went wrong; {note}; {seconds:.0f} s\n")
            table.add_row(name, f"{tried:,}", str(wrong), note, f"{seconds:.0f}")
    Console(soft_wrap=not sys.stdout.isatty()).print(table)
    for kind, (title, count) in SUMS.items():
        rows = [row for name, row in found.items() if name.startswith(kind)]
        tried, wrong = (sum(row[i] for row in rows) for i in (0, 1))
        print(f"{title}: {tried:,} / {count(tried, wrong):,}")
    print(f"time: {time.monotonic() - begun:.0f} s")
    sys.exit(1 if any(wrong for _, wrong, _ in found.values()) else 0)


if __name__ == "__main__":
    main()
