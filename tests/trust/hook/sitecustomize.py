"""Python reads this when it starts, if its folder is on the path: a process that dies in the middle of its n-th write.

`TRUST_KILL` says which write, and when: with `half` of it written, `before` the file takes its place, or `after`.
"""

import os
import signal
from pathlib import Path


def _arm(number: int, when: str) -> None:
    chmod, replace = Path.chmod, Path.replace
    writes = 0

    def die() -> None:
        os.killpg(0, signal.SIGKILL)  # With its workers, or its driver.

    def last_step_of_a_write(self: Path, *arguments: object, **options: object) -> None:
        nonlocal writes
        writes += self.suffix == ".part"
        if writes == number and when != "after":
            if when == "half" and self.is_file():
                os.truncate(self, self.stat().st_size // 2)
            die()
        chmod(self, *arguments, **options)

    def take_place(self: Path, target: Path) -> Path:
        found = replace(self, target)
        if writes == number and self.suffix == ".part":
            die()
        return found

    Path.chmod, Path.replace = last_step_of_a_write, take_place


if os.environ.get("TRUST_KILL"):
    _arm(int(os.environ["TRUST_KILL"].split()[0]), os.environ["TRUST_KILL"].split()[1])
