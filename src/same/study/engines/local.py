"""The local engine: single-threaded processes of this machine."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from same.study.engines.base import Event, Job, execute, take


def local(jobs: Sequence[Job], workers: int) -> Iterator[Event]:
    """Execute jobs in processes of this machine.

    A worker that dies takes only its run with it. If this process dies, the workers end by themselves.
    """
    context = multiprocessing.get_context("spawn")
    waiting, ended = list(jobs), set[str]()
    planned = {job.config.key for job in jobs}
    running: dict[Connection, str] = {}
    crew: dict[Connection, Any] = {}

    def start_worker() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        # A child interrupted during start-up would print a traceback. The signal only waits for us.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if sys.platform != "win32" else None
        try:
            process.start()
        finally:
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        crew[ours] = process

    try:
        for _ in range(min(workers, len(jobs))):
            start_worker()
        while waiting or running:
            for pipe in [pipe for pipe in crew if pipe not in running]:
                if (job := take(waiting, ended, planned)) is not None:
                    running[pipe] = job.config.key
                    pipe.send(job)
                    yield Event("start", job.config.key)
            for pipe in [each for each in wait(list(running), timeout=1.0) if isinstance(each, Connection)]:
                key = running[pipe]
                try:
                    what, value = pipe.recv()
                except (EOFError, OSError):
                    process = crew.pop(pipe)
                    process.join()
                    what, value = "failed", f"its process ended with code {process.exitcode}"
                    if waiting:
                        start_worker()
                if what in ("done", "failed"):
                    del running[pipe]
                    ended.add(key)
                yield Event(what, key, value)
    finally:
        for process in crew.values():
            process.terminate()
        end = time.monotonic() + 20
        for process in crew.values():
            process.join(timeout=max(0.0, end - time.monotonic()))
            process.kill()


def _work(pipe: Connection, parent: int) -> None:
    """Worker process: execute the jobs that are sent until SIGTERM."""
    from same.threads import limit_threads
    from same.training import InterruptedTraining

    limit_threads()
    stopped, at_once = threading.Event(), threading.Event()

    def leave(*signal: object) -> None:
        stopped.set()
        if at_once.is_set():
            raise InterruptedTraining

    def stop() -> bool:
        at_once.clear()  # First poll: from here on there is state worth saving.
        return stopped.is_set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The driver decides.
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    while not stopped.is_set():
        if not pipe.poll(0.2):
            continue
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError):  # The driver has ended.
            return
        last = 0.0

        def report(step: int, steps: int, news: dict[str, Any]) -> None:
            nonlocal last
            if (now := time.monotonic()) - last > 0.5:
                last = now
                pipe.send(("step", (step, steps)))

        try:
            at_once.set()
            outcome = execute(job, report, stop, at_once.set)
            at_once.clear()
            pipe.send(("done", outcome))
        except InterruptedTraining:
            return
        except Exception as error:  # Whatever it is, the other runs go on.
            at_once.clear()
            pipe.send(("failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))


def _watch(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
