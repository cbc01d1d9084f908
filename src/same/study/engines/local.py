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

from same.files import clean
from same.study.engines.base import Event, Job, execute, take
from same.threads import limit_threads
from same.training.loop import InterruptedTraining


def local(jobs: Sequence[Job], workers: int) -> Iterator[Event]:
    """Execute jobs in processes of this machine.

    A worker that dies takes only its run with it. If this process dies, the workers end by themselves.
    """
    context = multiprocessing.get_context("spawn")
    waiting, pending = list(jobs), {job.config.key for job in jobs}
    running, crew = dict[Connection, Job](), dict[Connection, Any]()

    def start_worker() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        # A signal that arrives meanwhile waits: an interrupted start would leave a child that prints a traceback.
        signals = {signal.SIGINT, signal.SIGTERM}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals) if sys.platform != "win32" else None
        try:
            process.start()
            crew[ours] = process
        finally:
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    try:
        for _ in range(min(workers, len(jobs))):
            start_worker()
        while waiting or running:
            for pipe in [pipe for pipe in crew if pipe not in running]:
                if (job := take(waiting, pending)) is not None:
                    running[pipe] = job
                    pipe.send(job)
                    yield Event("start", job.config.key)
            for pipe in [each for each in wait(list(running), timeout=1.0) if isinstance(each, Connection)]:
                key = running[pipe].config.key
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
                    pending.remove(key)
                yield Event(what, key, value)
    finally:
        for process in crew.values():
            process.terminate()
        end = time.monotonic() + 20
        for process in crew.values():
            process.join(timeout=max(0.0, end - time.monotonic()))
            process.kill()
        for job in running.values():
            clean(job.folder)


def _work(pipe: Connection, parent: int) -> None:
    """Worker process: execute the jobs that are sent until SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The driver decides.
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # It was blocked when this process started.
    limit_threads()
    stopped = training = False

    def leave(*_: object) -> None:
        nonlocal stopped
        stopped = True
        if not training:  # There is nothing to save. Raised here, an exception could end up in any code that runs.
            os._exit(0)

    def stop() -> bool:
        nonlocal training
        training = True  # First poll: from here on there is state worth saving.
        return stopped

    def saved() -> None:
        nonlocal training
        training = False
        if stopped:
            raise InterruptedTraining

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    while not stopped:
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
            pipe.send(("done", execute(job, report, stop, saved)))
        except InterruptedTraining:
            return
        except Exception as error:  # Whatever it is, the other runs go on.
            pipe.send(("failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))
        training = False


def _watch(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
