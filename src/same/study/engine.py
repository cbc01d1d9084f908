"""Engines: how the runs of a study are done. An engine of your own is one function like `local`."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from same.config import Config

Event = tuple[str, str, Any]
"""What happened (`start`, `step`, `done`, `failed`), to the run of which key, and more about it."""


@dataclass(frozen=True)
class Job:
    """A run to be done.

    Attributes:
        config: what to do.
        folder: the run's.
        data: where local sets lie.
        after: the key of the run it waits for.
        evaluate: whether to evaluate it on its test graphs, too.
        choose_c: what linear probes choose their C by then, see `same.names.CHOOSE_C`.
        networks: the tasks for which a network is trained on the embeddings then.
        give_up: asked with the history after every validation whether to leave it unfinished; goes to other processes.
    """

    config: Config
    folder: Path
    data: Path | None = None
    after: str | None = None
    evaluate: bool = True
    choose_c: str | None = None
    networks: tuple[str, ...] = ()
    give_up: Callable[[Sequence[dict[str, Any]]], bool] | None = None


Engine = Callable[[Sequence[Job], int], Iterator[Event]]


def execute(
    job: Job,
    report: Callable[[int, int, dict[str, Any]], None],
    stop: Callable[[], bool],
    saved: Callable[[], None] = lambda: None,
) -> None:
    """Trains and evaluates one run; what is there already is not done again.

    Args:
        job: what to do.
        report: is told how training goes.
        stop: asked after every step whether to save and stop.
        saved: called when training is over: nothing that follows is lost if it is interrupted.
    """
    from same.runs import run
    from same.study.results import evaluate_once
    from same.training import GivenUpTraining

    give_up = job.give_up or (lambda history: False)
    try:
        run(job.config, job.folder, data=job.data, report=report, stop=stop, give_up=give_up)
    except GivenUpTraining:
        return
    saved()
    if job.evaluate:
        evaluate_once(job.folder, job.data, choose_c=job.choose_c, networks=job.networks)


def take(waiting: list[Job], ended: set[str], planned: set[str]) -> Job | None:
    """Takes the first job that need not wait for another one that is planned and has not ended."""
    for job in waiting:
        if job.after is None or job.after in ended or job.after not in planned:
            waiting.remove(job)
            return job
    return None


def local(jobs: Sequence[Job], workers: int) -> Iterator[Event]:
    """Does the jobs in single-threaded processes of this machine.

    A worker that dies takes only its run with it. If this process dies, the workers end by themselves.
    """
    context = multiprocessing.get_context("spawn")
    waiting, ended = list(jobs), set[str]()
    running: dict[Any, str] = {}
    planned = {job.config.key for job in jobs}
    crew: dict[Connection, Any] = {}

    def hire() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        # A child that is interrupted while it starts would say so at length. For us the signal only waits.
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
            hire()
        while waiting or running:
            for line in [line for line in crew if line not in running]:
                if (job := take(waiting, ended, planned)) is not None:
                    running[line] = job.config.key
                    line.send(job)
                    yield "start", job.config.key, None
            for line in [each for each in wait(list(running), timeout=1.0) if isinstance(each, Connection)]:
                key = running[line]
                try:
                    what, more = line.recv()
                except (EOFError, OSError):
                    process = crew.pop(line)
                    process.join()
                    what, more = "failed", f"its process ended with code {process.exitcode}"
                    if waiting:
                        hire()
                if what in ("done", "failed"):
                    del running[line]
                    ended.add(key)
                yield what, key, more
    finally:
        for process in crew.values():
            process.terminate()
        end = time.monotonic() + 20
        for process in crew.values():
            process.join(timeout=max(0.0, end - time.monotonic()))
            process.kill()


def _work(line: Connection, parent: int) -> None:
    """A worker: does the jobs it is sent until it is told to stop."""
    from same.machine import settle
    from same.training import InterruptedTraining

    settle()
    stopped, at_once = threading.Event(), threading.Event()

    def leave(*signal: object) -> None:
        stopped.set()
        if at_once.is_set():
            raise InterruptedTraining

    def stop() -> bool:
        at_once.clear()  # Who asks has something to save.
        return stopped.is_set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The driver decides.
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    while not stopped.is_set():
        if not line.poll(0.2):
            continue
        try:
            job: Job = line.recv()
        except (EOFError, OSError):  # The driver is gone.
            return
        said = 0.0

        def report(step: int, steps: int, news: dict[str, Any]) -> None:
            nonlocal said
            if (now := time.monotonic()) - said > 0.5:
                said = now
                line.send(("step", (step, steps)))

        try:
            at_once.set()
            execute(job, report, stop, at_once.set)
            at_once.clear()
            line.send(("done", None))
        except InterruptedTraining:
            return
        except Exception as error:  # Whatever it is, the other runs go on.
            at_once.clear()
            line.send(("failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))


def _watch(parent: int) -> None:
    """Ends this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
