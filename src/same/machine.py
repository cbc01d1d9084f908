"""How a process of ours uses the machine."""

import ctypes
import os

from threadpoolctl import threadpool_limits

_MANY_BYTES = 2**30
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of glibc's malloc.h.


def settle(threads: int = 1) -> None:
    """One thread, and freed memory is kept for the next step rather than given back; for processes that are ours alone.

    Graphs of this size lose time to threads, and sums split among threads round otherwise.

    Args:
        threads: how many, where more pay.
    """
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)  # Of libraries loaded from now on, here and in children.
    threadpool_limits(threads)  # Of those that are loaded.
    try:
        # Otherwise every step of iSAME gives back and asks for thousands of pages: 5-8 % of its time.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _MANY_BYTES)
        mallopt(_MMAP_THRESHOLD, _MANY_BYTES)
    except (OSError, AttributeError, TypeError):
        pass  # Another C library: nothing is lost but that.
    import torch

    torch.set_num_threads(threads)
