"""SIGINT and SIGTERM end a command in order: state is saved first, and the exit code is 130."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a signal arrived, which training polls after every step.

    Before the first poll there is nothing to save, and a signal interrupts at once. So does a second signal.
    Studies and searches do not poll: the signal interrupts their engine, whose workers save their state.
    """
    received: list[int] = []
    polled = False

    def handle(number: int, frame: object) -> None:
        if received or not polled:
            raise KeyboardInterrupt
        received.append(number)

    def stop() -> bool:
        nonlocal polled
        polled = True
        return bool(received)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    except KeyboardInterrupt:
        logging.getLogger("same").warning("interrupted; run the same command to continue")
        raise typer.Exit(130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
