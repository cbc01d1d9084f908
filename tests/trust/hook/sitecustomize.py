"""Python reads this when it starts, if its folder is on the path: a process that dies in the middle of its n-th write.

`TRUST_KILL` says which write, and when: with `half` of it written, `before` the file takes its place, or `after`.
"""

import os
import signal
from pathlib import Path


def _arm(number: int, when: str) -> None:
    replace = Path.replace
    writes = 0

    def die() -> None:
        os.killpg(0, signal.SIGKILL)  # With its workers, or its driver.

    def take_place(self: Path, target: Path) -> Path:
        nonlocal writes
        writes += self.suffix == ".part"
        fatal = writes == number and self.suffix == ".part"
        if fatal and when != "after":
            if when == "half" and self.is_file():
                os.truncate(self, self.stat().st_size // 2)
            die()
        found = replace(self, target)
        if fatal:
            die()
        return found

    Path.replace = take_place


if os.environ.get("TRUST_KILL"):
    _arm(int(os.environ["TRUST_KILL"].split()[0]), os.environ["TRUST_KILL"].split()[1])
