"""The Ray engine: each run is a task of a cluster, which need not share any files with the driver."""

import contextlib
import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from same.errors import InputError
from same.files import CONFIG
from same.study.engines.base import Event, Job, take
from same.study.engines.worker import Driver, RemoteFolder, pack_set, read_files, work, write_files

log = logging.getLogger("same")

_PATIENCE_SECONDS = 20


@dataclass(frozen=True)
class RayEngine:
    """Executes jobs on a Ray cluster, with results bit-identical to those of `same.study.engines.local`.

    `checkpoints` is a folder or fsspec address that all machines can reach. A local Ray uses the folders of the runs
    by default; on a cluster without one, a lost run starts again.
    """

    address: str | None = None  # HOST:PORT; by default RAY_ADDRESS, or a new local Ray
    cpus: float = 1  # per run; also its number of threads
    gpus: float = 0  # per run; fractions are possible
    retries: int = 3  # of a run whose worker or machine is lost
    checkpoints: str | None = None

    def __call__(self, jobs: Sequence[Job], workers: int) -> Iterator[Event]:
        """Execute jobs, `workers` at a time; 0 for as many as the cluster has room for."""
        ray = connect(self.address)
        if self.checkpoints:
            RemoteFolder(self.checkpoints).check()
        self._warn(ray)
        task = ray.remote(work).options(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)
        sets = {name: ray.put(pack_set(name, data)) for name, data in {(j.config.dataset, j.data) for j in jobs}}
        waiting, pending, lost = list(jobs), {job.config.key for job in jobs}, Counter[str]()
        running: dict[Any, Job] = {}
        is_local = self.address is None and "RAY_ADDRESS" not in os.environ

        def submit(job: Job) -> None:
            remote = str(job.folder.resolve()) if is_local else None
            if self.checkpoints:
                remote = f"{self.checkpoints.rstrip('/')}/{job.config.key}"
            driver = Driver(str(Path.cwd()), remote, self.cpus, self.gpus)
            first = read_files(job.folder.parent / job.after) if job.after else {}
            running[task.remote(job, read_files(job.folder), first, sets[job.config.dataset], driver)] = job

        try:
            while waiting or running:
                while len(running) < (workers or self._room(ray)) and (job := take(waiting, pending)):
                    submit(job)
                    yield Event("start", job.config.key)
                for ref in ray.wait(list(running), timeout=1.0)[0]:
                    job = running.pop(ref)
                    key = job.config.key
                    try:
                        outcome, files, problem = ray.get(ref)
                        if CONFIG in files:
                            write_files(job.folder, files)
                        event = Event("failed", key, problem) if problem else Event("done", key, outcome)
                    except ray.exceptions.RayTaskError as error:
                        event = Event("failed", key, f"{type(error.cause).__name__}: {error.cause}\n{error}")
                    except ray.exceptions.RayError as error:  # The worker, its machine, or its return value is lost.
                        lost[key] += 1
                        reason = f"{type(error).__name__}: {_line(error)}"
                        if lost[key] <= self.retries:
                            log.warning("%s: lost (%s); retry %d of %d", key, reason, lost[key], self.retries)
                            submit(job)
                            continue
                        event = Event("failed", key, f"lost {lost[key]} times, the last time by {reason}")
                    pending.remove(key)
                    yield event
        finally:
            for ref in running:
                with contextlib.suppress(Exception):  # Tasks that still run save their state.
                    ray.cancel(ref)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=_PATIENCE_SECONDS)

    def _room(self, ray: Any) -> int:
        resources = ray.cluster_resources()
        rooms = [resources.get(what, 0) / each for what, each in (("CPU", self.cpus), ("GPU", self.gpus)) if each]
        return max(1, int(min(rooms, default=1)))

    def _warn(self, ray: Any) -> None:
        for option, what, each in (("cpus", "CPU", self.cpus), ("gpus", "GPU", self.gpus)):
            most = max((node["Resources"].get(what, 0) for node in ray.nodes() if node["Alive"]), default=0)
            if each > most:
                log.warning("--%s-per-run: no machine has %g yet (at most %g); runs wait for one", option, each, most)


def connect(address: str | None) -> Any:
    """The module `ray`, connected to a cluster, or to a local Ray that ends with this process."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None and "RAY_AUTH_MODE" not in os.environ:
        # A local Ray listens on the network too: accept nobody else.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
    except ImportError:
        raise InputError("--engine: ray is not installed: pip install 'same-gnn[ray]'") from None
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is None:
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": 2**28}
    else:
        _check_listening(address)
        options["address"] = address
    try:
        # Ray prints news of its workers to standard output, which is for results; we report them ourselves.
        ray._private.worker._worker_logs_enabled = False
        ray.init(**options)
    except Exception as error:  # Ray often raises nothing more specific.
        what = f"--address: {address}" if address else "--engine: ray"
        raise InputError(f"{what}: {_line(error)}; every machine, including this one, joins with `ray start`") from None
    return ray


def _check_listening(address: str) -> None:
    """Reject an address at which nothing listens; Ray would try for a minute."""
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
