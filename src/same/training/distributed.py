"""Training one model in several processes: each rank draws its own episodes, and all take the same steps."""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from same.errors import InputError

T = TypeVar("T")


class LostRankError(Exception):
    """Another rank has ended or does not answer."""


class Ranks:
    """A single process, and the interface of several."""

    rank, size = 0, 1

    def sum(self, vector: Tensor) -> Tensor:
        """Return the sum over all ranks, with the same bits on each."""
        return vector

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        return any(self.gather(flag))

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks."""
        return [value]

    def first(self, make: Callable[[], T]) -> T:
        """Call a function on the first rank, and return its result, or raise its error, on all ranks."""
        return make()


ALONE = Ranks()


class _ProcessGroup(Ranks):
    """The ranks of a process group of torch.distributed."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def sum(self, vector: Tensor) -> Tensor:
        vector = vector.clone()
        self._call(lambda: dist.all_reduce(vector))
        return vector

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        self._call(lambda: dist.all_gather_object(values, value))
        return values

    def first(self, make: Callable[[], T]) -> T:
        result: list[Any] = [None, None]
        if self.rank == 0:
            try:
                result[0] = make()
            except InputError as error:
                result[1] = str(error)
        self._call(lambda: dist.broadcast_object_list(result))
        if result[1] is not None:
            raise InputError(result[1])
        return result[0]

    def _call(self, collective: Callable[[], Any]) -> None:
        try:
            collective()
        except RuntimeError as error:
            reason = next(iter(str(error).splitlines()), "")
            raise LostRankError(f"rank {self.rank}: another rank has ended or does not answer ({reason})") from None


def join(device: str = "auto", timeout: float = 300.0) -> Ranks:
    """Return the ranks that `torchrun` started this process with; without `torchrun`, a single process."""
    size, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if size < 2:
        return ALONE
    gpus = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    if gpus and local >= gpus:
        raise InputError(f"device: rank {local} of this machine has no GPU ({gpus} available); choose cpu")
    if gpus:
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("nccl" if gpus else "gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise LostRankError(f"the {size} ranks cannot connect ({str(error).splitlines()[0]})") from None
    return _ProcessGroup()


def leave() -> None:
    """End what `join` began."""
    if dist.is_initialized():
        dist.destroy_process_group()


class Accumulator:
    """Accumulates gradients and buffers over several episodes in one flat vector, for a single all-reduce.

    Every episode starts from the same buffers (running statistics, learned weights), and their mean is kept.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.parameters = [p for module in modules for p in module.parameters()]
        self.buffers = [b for module in modules for b in module.buffers() if b.is_floating_point()]
        self.before = [buffer.clone() for buffer in self.buffers]
        self.total: Tensor | None = None

    def restore(self) -> None:
        """Restore the buffers before the next episode."""
        for buffer, value in zip(self.buffers, self.before, strict=True):
            buffer.copy_(value)

    def add(self) -> None:
        """Add the gradients and buffers that an episode left."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        # Parameters without a gradient are left alone.
        present = torch.tensor([float(p.grad is not None) for p in self.parameters]).to(gradients[0])
        vector = torch.cat([part.reshape(-1) for part in (*gradients, *self.buffers, present)])
        self.total = vector if self.total is None else self.total.add_(vector)

    def share(self, ranks: Ranks, episodes: int) -> None:
        """Write the means over all episodes of all ranks into the gradients and buffers."""
        assert self.total is not None
        tensors = (*self.parameters, *self.buffers)
        sizes = [*(tensor.numel() for tensor in tensors), len(self.parameters)]
        *parts, present = ranks.sum(self.total).div_(episodes).split(sizes)
        for p, part, has_gradient in zip(self.parameters, parts, present.tolist(), strict=False):
            p.grad = part.view_as(p) if has_gradient else None
        for buffer, part in zip(self.buffers, parts[len(self.parameters) :], strict=True):
            buffer.copy_(part.view_as(buffer))
