"""Threads and memory of a process that belongs to this package alone."""

import ctypes
import os

from threadpoolctl import threadpool_limits

_THRESHOLD_BYTES = 2**30
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Constants of glibc's malloc.h.


def limit_threads(threads: int = 1) -> None:
    """Limit numerical libraries to a number of threads, and keep freed memory for the next step.

    Small graphs lose time to threads, and sums that are split among threads round differently.
    """
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)  # For libraries loaded later, here and in children.
    threadpool_limits(threads)  # For libraries already loaded.
    try:
        # Without this, every iSAME step returns thousands of pages to the system: 5-8 % of its time.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_MMAP_THRESHOLD, _THRESHOLD_BYTES)
    except (OSError, AttributeError, TypeError):
        pass  # A C library without mallopt loses only this speed-up.
    import torch

    torch.set_num_threads(threads)
