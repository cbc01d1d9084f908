"""Prints what was done to break things, and what came of it: `python -m trust [--quick]`, or `make trust`."""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trust import bad_data, faults, load, mutations

Row = tuple[int, int, str]


def _kills(verb: str, kills: int, folder: Path) -> Row:
    found = faults.kill_at_random(verb, kills, 0, folder)
    return found.injected, found.injected - found.survived, f"{found.in_writes} of them during a write"


def _signals(folder: Path) -> Row:
    wrong, longest = 0, 0.0
    cases = [(verb, number) for verb in ("train", "study", "tune") for number in (signal.SIGINT, signal.SIGTERM)]
    for verb, number in cases:
        seconds, code, said = faults.signalled(verb, number, folder / f"{verb}-{number}")
        longest = max(longest, seconds)
        wrong += code != 130 or "goes on from here" not in said or "Traceback" in said
    return len(cases), wrong, f"the slowest stopped after {longest:.1f} s"


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
    grown = found.memory[1] > found.memory[0] + 20 or found.handles[1] > found.handles[0]
    return runs, int(grown), str(found)


def main() -> None:
    """Does everything, and ends with exit code 1 if anything was lost, let in or missed."""
    parser = argparse.ArgumentParser(prog="trust")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--only", help="parts whose names begin so, like bad or killed")
    options = parser.parse_args()
    quick, begun = options.quick, time.monotonic()
    share = 30 if quick else 1000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parts: dict[str, Callable[[], Row]] = {
            "killed: same train": lambda: _kills("train", 2 if quick else 20, folder / "kt"),
            "killed: same study": lambda: _kills("study", 2 if quick else 15, folder / "ks"),
            "killed: same tune": lambda: _kills("tune", 2 if quick else 15, folder / "ku"),
            "signals": lambda: _signals(folder / "signals"),
            "damaged files": lambda: _damage(1 if quick else 5, folder / "damage"),
            "bad TU sets": lambda: _bad(bad_data.fuzz_tu(6 * share, 0, folder / "tu")),
            "bad PyG graphs": lambda: _bad(bad_data.fuzz_pyg(4 * share, 0)),
            "bad configurations": lambda: _bad(bad_data.fuzz_config(2 * share, 0, folder / "config")),
            "bad arguments": lambda: _bad(bad_data.fuzz_cli(share, 0, folder / "cli")),
            "mutations": lambda: _mutations(3 if quick else 10),
            "load": lambda: _load(40 if quick else 500, folder / "load"),
        }
        table = Table("part", "tried", "went wrong", "", "seconds", title="Trust", title_justify="left")
        total = 0
        for name, part in parts.items():
            if options.only and not name.startswith(options.only):
                continue
            start = time.monotonic()
            with bad_data.bounded() if name.startswith("bad") else nullcontext():
                tried, wrong, note = part()
            total += wrong
            sys.stderr.write(f"{name}: {tried} tried, {wrong} went wrong; {note}\n")
            table.add_row(name, f"{tried:,}", str(wrong), note, f"{time.monotonic() - start:.0f}")
    Console(soft_wrap=not sys.stdout.isatty()).print(table)
    print(f"{time.monotonic() - begun:.0f} s in all")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
