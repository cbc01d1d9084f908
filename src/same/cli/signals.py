"""SIGINT and SIGTERM end a command in order: state is saved first."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

_log = logging.getLogger("same")


@contextmanager
def interruptible() -> Iterator[None]:
    """For studies and searches: both signals interrupt the engine, whose workers save their state; exit code 130."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        _log.warning("interrupted; run the same command to continue")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """For one training: a function that says whether a signal arrived, polled after every step.

    Before the first poll there is nothing to save, and a signal interrupts at once. So does a second signal.
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
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
