"""What each optimisation of a step gives: `python benchmarks/ablation.py DIR`, DIR holding ENZYMES.zip.

The first line is a step as it is, the second one by autograd, without derivatives that are written out. Below that,
each of the optimisations that autograd needs is turned off alone. The variants take turns. CPU milliseconds of a step
of 16 graphs on one thread, and how much longer it takes than by autograd with all of them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from bench import BATCH, one_step, take_turns
from torch import Tensor

from same.config import Config
from same.episodes import EpisodeSampler
from same.graphs import batch as batches
from same.machine import settle
from same.nn import encoders, heads
from same.nn.pairs import pair_features
from same.runs import make_method, prepare


class InspectedProduct(torch.autograd.Function):
    """The sparse product in the newer style of `autograd.Function`."""

    @staticmethod
    def forward(h: Tensor, holder: tuple[Tensor]) -> Tensor:
        """See torch."""
        return holder[0] @ h

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        """See torch."""
        ctx.holder = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """See torch."""
        return InspectedProduct.apply(gradient, ctx.holder), None


def plain_norm(s: Tensor) -> Tensor:
    """The unit norm as five operations of torch."""
    return s * torch.rsqrt(s.square().sum(dim=1, keepdim=True) + 1e-12)


def written_out(h: Tensor, weight: Tensor, pairs: Any, pair: Any) -> Tensor:
    """Pair features as an array, times the weights."""
    return pair_features(h, pairs, pair) @ weight


def long_csr(crow: Any, col: Any, values: Any, n: int) -> Tensor:
    """A sparse matrix with 64-bit indices."""
    rows, columns = torch.from_numpy(crow), torch.from_numpy(col)
    return torch.sparse_csr_tensor(rows, columns, torch.from_numpy(values), (n, n), check_invariants=False)


def unsmoothed(self: Any, batch: Any, h: Tensor) -> Tensor:
    """A graph convolution that multiplies with the adjacency in the first layer, too."""
    return encoders.propagate(batch.adjacency, h) @ self.weight + self.bias


OFF: dict[str, tuple[object, str, object]] = {
    "no signature inspection in the sparse product": (
        encoders,
        "propagate",
        lambda a, h: InspectedProduct.apply(h, (a,)),
    ),
    "unit norm with its own derivatives": (encoders, "unit_norm", plain_norm),
    "pair scores with their own derivatives": (heads, "pair_scores", written_out),
    "no search for tied weights": (import_module("same.methods.adapt"), "_has_tied_weights", lambda model: True),
    "32-bit indices": (batches, "csr", long_csr),
    "first layer's ÂX kept, bias added in place": (encoders.GCNLayer, "forward", unsmoothed),
}


AS_IS, BY_AUTOGRAD = "as it is", "by autograd"


@contextmanager
def without(name: str) -> Iterator[None]:
    """One optimisation turned off."""
    with ExitStack() as stack:
        if name != AS_IS:
            module = import_module("same.methods.same")
            stack.enter_context(patch.object(module, "closed_losses", lambda *args, **kwargs: None))
        if name in OFF:
            stack.enter_context(patch.object(*OFF[name]))
        yield


def main(folder: Path, turns: int = 40) -> None:
    """Prints a line for each optimisation."""
    settle()
    print(f"{'without':<52} {'esame':>16} {'isame':>16}")
    columns: dict[str, dict[str, Any]] = {}
    for method_name in ("esame", "isame"):
        config = Config(dataset="ENZYMES", method=method_name, batch_size=BATCH, degree=0)
        setting = prepare(config, folder)
        method, build, _ = make_method(config)
        sampler = EpisodeSampler(setting.store, setting.split.train, setting.tasks, BATCH, build)
        optimiser = torch.optim.Adam(setting.model.parameters(), lr=config.outer_lr, fused=True)

        def contender(name: str, s=setting, m=method, o=optimiser, d=sampler) -> Callable[[int], object]:
            def call(turn: int) -> None:
                with without(name):
                    one_step(s.model, o, lambda: m.losses(s.model, d.draw(*divmod(turn, d.steps))))

            return call

        columns[method_name] = take_turns({name: contender(name) for name in (AS_IS, BY_AUTOGRAD, *OFF)}, turns)
    for name in (AS_IS, BY_AUTOGRAD, *OFF):
        cells = []
        for times in columns.values():
            cpu = {key: np.array(spent)[:, 0] for key, spent in times.items()}
            more = 100 * (np.median(cpu[name] / cpu[BY_AUTOGRAD]) - 1)
            cells.append(f"{np.median(cpu[name]):.1f} ({more:+.0f} %)")
        print(f"{name:<52} " + " ".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
