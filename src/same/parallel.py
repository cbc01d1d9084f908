"""Several processes that train one model: each learns from its own episodes, and all take the same steps.

`torchrun` starts them. A step sums what the ranks found and divides it by the number of episodes, so that N ranks with
one episode each do what one process does with N episodes a step.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from same.errors import InputError

T = TypeVar("T")

TIMEOUT = 300.0
"""How many seconds a rank waits for the others."""


class LostRankError(Exception):
    """Another rank has ended, or has not answered in time."""


class Ranks:
    """One process on its own, and what several would do together."""

    rank, size = 0, 1

    def sum(self, vector: Tensor) -> Tensor:
        """The sum over all ranks, the same bits on each of them."""
        return vector

    def any(self, flag: bool) -> bool:
        """Whether any rank says so."""
        return flag

    def gather(self, mine: T) -> list[T]:
        """What each rank has."""
        return [mine]

    def first(self, make: Callable[[], T]) -> T:
        """What the first rank makes, on all of them; its error, if it fails, too."""
        return make()


ALONE = Ranks()


class Together(Ranks):
    """The ranks of a process group of torch.distributed."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")

    def sum(self, vector: Tensor) -> Tensor:
        """The sum over all ranks, the same bits on each of them."""
        vector = vector.clone()
        self._try(lambda: dist.all_reduce(vector))
        return vector

    def any(self, flag: bool) -> bool:
        """Whether any rank says so."""
        return bool(self.sum(torch.tensor(float(flag), device=self._device)))

    def gather(self, mine: T) -> list[T]:
        """What each rank has."""
        found: list[Any] = [None] * self.size
        self._try(lambda: dist.all_gather_object(found, mine))
        return found

    def first(self, make: Callable[[], T]) -> T:
        """What the first rank makes, on all of them; its error, if it fails, too."""
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except InputError as error:
                made[1] = str(error)
        self._try(lambda: dist.broadcast_object_list(made))
        if made[1] is not None:
            raise InputError(made[1])
        return made[0]

    def _try(self, talk: Callable[[], Any]) -> None:
        try:
            talk()
        except RuntimeError as error:
            reason = next(iter(str(error).splitlines()), "")
            raise LostRankError(f"rank {self.rank}: another rank has ended or does not answer ({reason})") from None


def join(device: str = "auto", timeout: float = TIMEOUT) -> Ranks:
    """The ranks this process was started with by `torchrun`; it is alone without.

    Args:
        device: `cuda` gives every rank of a machine a GPU of its own; `auto` does where there is one for each.
        timeout: how many seconds a rank waits for the others before it gives up.
    """
    size, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if size < 2:
        return ALONE
    gpus = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    if gpus and local >= gpus:
        raise InputError(f"device: rank {local} of this machine has no GPU of its own ({gpus} are there); choose cpu")
    if gpus:
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("nccl" if gpus else "gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise LostRankError(f"the {size} ranks do not meet ({str(error).splitlines()[0]})") from None
    return Together()


def leave() -> None:
    """Ends what `join` began."""
    if dist.is_initialized():
        dist.destroy_process_group()
