"""Independent streams of randomness from one integer seed."""

from typing import Literal

import numpy as np

Stream = Literal["splits", "init", "episodes", "probes", "planted", "validation", "dropout", "network", "tune"]
_ORDER: tuple[Stream, ...] = (
    "splits",
    "init",
    "episodes",
    "probes",
    "planted",
    "validation",
    "dropout",
    "network",
    "tune",
)


def stream(seed: int, name: Stream, *keys: int) -> np.random.Generator:
    """A generator for one purpose, independent of the others and of how often they were used.

    Args:
        seed: the seed of the whole run.
        name: the purpose.
        keys: further integers, such as the split or the step, that tell streams of one purpose apart.

    >>> stream(0, "splits").random() == stream(0, "splits").random()
    True
    >>> stream(0, "splits").random() == stream(0, "episodes").random()
    False
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_ORDER.index(name), *keys))))
