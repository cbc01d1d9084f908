"""An engine on Ray: each run is a task of a cluster, which need not share any files with the driver.

A worker runs in a scratch folder of its own. It begins with what the driver knows of the run and what is on the shelf
(a path or address that all machines see), puts its checkpoints on the shelf as it goes, and sends the files of the run
back to the driver, which writes them into the run's folder.
"""

import contextlib
import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from same import __version__
from same.errors import InputError
from same.study.engine import Event, Job, take
from same.study.ray_worker import MARK, make_mark, pack_set, read_files, work, write_files
from same.study.shelf import Shelf

log = logging.getLogger("same")

_PATIENCE_SECONDS = 20


@dataclass(frozen=True)
class RayEngine:
    """Does the jobs on a Ray cluster; the results are those of `same.study.engine.local`, to the bit.

    Attributes:
        address: `HOST:PORT` of a cluster that this machine is part of; `RAY_ADDRESS`, or a Ray of our own, by default.
        cpus: how many a run gets, and how many threads.
        gpus: how many a run gets; parts of one are possible.
        retries: how often a run is tried again when its worker or machine is lost.
        checkpoints: a folder or fsspec address that all machines see. By default the runs' own folders, on the machines
            that see them; a run that is lost elsewhere begins anew.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    retries: int = 3
    checkpoints: str | None = None

    def __call__(self, jobs: Sequence[Job], workers: int) -> Iterator[Event]:
        """Does the jobs, so many at once; with 0 workers, as many as the cluster has room for."""
        ray = connect(self.address)
        if self.checkpoints:
            Shelf(self.checkpoints).check()
        self._warn(ray)
        task = ray.remote(work).options(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)
        sets = {name: ray.put(pack_set(name, data)) for name, data in {(j.config.dataset, j.data) for j in jobs}}
        waiting, ended, lost = list(jobs), set[str](), Counter[str]()
        planned = {job.config.key for job in jobs}
        running: dict[Any, Job] = {}

        def submit(job: Job) -> None:
            sent = replace(job, folder=job.folder.resolve())
            beside = read_files(job.folder.parent / job.after) if job.after else {}
            mark = make_mark(sent.folder.parent) if self.checkpoints is None else ""
            about = {"version": __version__, "cwd": str(Path.cwd()), "mark": mark, "cpus": self.cpus, "gpus": self.gpus}
            given = sets[job.config.dataset]
            running[task.remote(sent, read_files(sent.folder), beside, given, self.checkpoints, about)] = job

        try:
            while waiting or running:
                while len(running) < (workers or self._room(ray)) and (job := take(waiting, ended, planned)):
                    submit(job)
                    yield "start", job.config.key, None
                for ref in ray.wait(list(running), timeout=1.0)[0]:
                    job = running.pop(ref)
                    key = job.config.key
                    event: Event
                    try:
                        files, problem = ray.get(ref)
                        if "config.json" in files:
                            write_files(job.folder, files)
                        event = ("failed", key, problem) if problem else ("done", key, None)
                    except ray.exceptions.RayTaskError as error:
                        event = "failed", key, f"{type(error.cause).__name__}: {error.cause}\n{error}"
                    except ray.exceptions.RayError as error:  # Its worker, its machine, or what it sent is lost.
                        lost[key] += 1
                        reason = f"{type(error).__name__}: {_line(error)}"
                        if lost[key] <= self.retries:
                            log.warning("%s: lost (%s); retry %d of %d", key, reason, lost[key], self.retries)
                            submit(job)
                            continue
                        event = "failed", key, f"lost {lost[key]} times, the last time by {reason}"
                    ended.add(key)
                    yield event
        finally:
            for ref in running:
                with contextlib.suppress(Exception):  # Those that still run save where they stand.
                    ray.cancel(ref)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=_PATIENCE_SECONDS)
            if self.checkpoints is None:
                for parent in {job.folder.resolve().parent for job in jobs}:
                    (parent / MARK).unlink(missing_ok=True)

    def _room(self, ray: Any) -> int:
        """How many runs the cluster has room for; machines may come and go."""
        there = ray.cluster_resources()
        rooms = [there.get(what, 0) / each for what, each in (("CPU", self.cpus), ("GPU", self.gpus)) if each]
        return max(1, int(min(rooms, default=1)))

    def _warn(self, ray: Any) -> None:
        for option, what, each in (("cpus", "CPU", self.cpus), ("gpus", "GPU", self.gpus)):
            most = max((node["Resources"].get(what, 0) for node in ray.nodes() if node["Alive"]), default=0)
            if each > most:
                log.warning("--%s-per-run: no machine has %g yet (at most %g); runs wait for one", option, each, most)


def connect(address: str | None) -> Any:
    """The module `ray`, connected: to a cluster, or to a Ray on this machine that ends with this process."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None and "RAY_AUTH_MODE" not in os.environ:
        # A Ray of our own listens on the network: let it obey nobody else.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
    except ImportError:
        raise InputError("--engine: ray is not installed: pip install 'same-gnn[ray]'") from None
    if ray.is_initialized():
        return ray
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is None:
        how |= {"address": "local", "include_dashboard": False, "object_store_memory": 2**28}
    else:
        _answers(address)
        how["address"] = address
    try:
        # Ray would print what happens to its workers to standard output, where results belong; we say it ourselves.
        ray._private.worker._worker_logs_enabled = False
        ray.init(**how)
    except Exception as error:  # Ray's own are often no more than that.
        what = f"--address: {address}" if address else "--engine: ray"
        raise InputError(f"{what}: {_line(error)}; every machine, this one too, joins with `ray start`") from None
    return ray


def _answers(address: str) -> None:
    """Asks whether anything listens there, which Ray would do for a minute."""
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise InputError(f"--address: {address!r} is not HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--address: nothing answers at {address} ({error})") from None


def _line(error: BaseException) -> str:
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return line.partition(". ")[0]  # Ray goes on with where to look for more.
