"""Independent random streams from one integer seed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import numpy as np

Stream = Literal["splits", "init", "episodes", "probes", "planted", "validation", "dropout", "network", "tune"]
"""Purpose of a stream. New ones come last: the position selects the numbers that are drawn."""

_TORCH = threading.RLock()


def stream(seed: int, name: Stream, *keys: int) -> np.random.Generator:
    """Return a generator for one purpose, independent of all other purposes.

    The keys are further integers that select a stream within the purpose, such as the split or the step.
    """
    spawn_key = (get_args(Stream).index(name), *keys)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=spawn_key)))


def stream_seed(seed: int, name: Stream, *keys: int) -> int:
    """Return an integer seed for torch from the stream with these arguments (see `stream`)."""
    return int(stream(seed, name, *keys).integers(2**63))


@contextmanager
def forked_torch(seed: int) -> Iterator[None]:
    """Run a block with torch's global generator seeded, and restore the generator afterwards.

    The global generator is shared by all threads, so one such block runs at a time.
    """
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with _TORCH, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
