"""Encoders: from a batch of graphs to node embeddings."""

import copy
import inspect
from typing import Any, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from same.config import Config
from same.errors import InputError
from same.graphs.batch import GraphBatch
from same.nn.norm import unit_norm
from same.nn.sparse import propagate

KINDS: tuple[str, ...] = get_args(Config.model_fields["encoder"].annotation)
_NAMED = {"batch": "batch", "batch_size": "num_graphs", "edge_attr": "edge_attr", "edge_weight": "edge_weight"}
"""Attributes of a batch by the argument of `forward` that takes them."""


class GCNLayer(nn.Module):
    """Graph convolution (Kipf & Welling, 2017): H′ = Â H W + b."""

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(columns, width)))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        """Map [n, columns] to [n, width]."""
        if h is batch.x:
            z = batch.smoothed @ self.weight
        elif self.weight.shape[0] <= self.weight.shape[1]:
            z = propagate(batch.adjacency, h) @ self.weight
        else:
            z = propagate(batch.adjacency, h @ self.weight)
        return z.add_(self.bias)  # Faster than `addmm`, which first copies b into every row.


class PyGLayer(nn.Module):
    """A PyG layer, called as `layer(x, edge_index)`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        """Map [n, columns] to [n, width]."""
        return self.layer(h, batch.edge_index)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over nodes; a batch of one node is normalised by the running statistics."""

    def forward(self, h: Tensor) -> Tensor:
        """Map [n, width] to [n, width]."""
        by_batch = self.training and len(h) > 1
        return F.batch_norm(h, self.running_mean, self.running_var, self.weight, self.bias, by_batch)


class Dropout(nn.Module):
    """Dropout that draws from a generator of its own, which `seed_dropout` seeds; unseeded, from torch's global one."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, h: Tensor) -> Tensor:
        """Map [n, width] to [n, width]."""
        if not self.training or not self.p:
            return h
        keep = torch.empty_like(h).bernoulli_(1 - self.p, generator=self.generator)
        return h * keep.div_(1 - self.p)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "generator": None}


def seed_dropout(model: nn.Module, seed: int) -> None:
    """Seed the dropout layers of a model, each with a generator of its own."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for number, layer in enumerate(module for module in model.modules() if isinstance(module, Dropout)):
        if layer.generator is None or layer.generator.device != device:
            layer.generator = torch.Generator(device)
        layer.generator.manual_seed((seed + number) % 2**63)


class Encoder(nn.Module):
    """Message-passing layers with residual connections and unit norm (the paper's Appendix C):

        H⁽ˡ⁺¹⁾ = norm(dropout(ReLU(layer(H⁽ˡ⁾))) + H⁽ˡ⁾)

    Args:
        columns: number of columns of a batch's `x`.
        kind: kind of layers: `gcn`, or PyG's layers `gin`, `gat`, `sage` or `cheb`.
        layers: number of layers.
        width: width of every layer and of the embeddings.
        residual: whether to add a layer's input to its output where the widths agree.
        unit_norm: whether to scale each node's row to length 1 after every layer.
        dropout: fraction of a layer's outputs set to 0 in training.
        batch_norm: whether to normalise a layer's output before ReLU: over the nodes of the batch in training, by
            running statistics otherwise, so that an embedding never depends on the other graphs of its batch.

    >>> from same.graphs import planted
    >>> Encoder(24, width=8)(planted(10).cut([0, 1])).shape[1]
    8
    """

    def __init__(
        self,
        columns: int,
        *,
        kind: str = "gcn",
        layers: int = 3,
        width: int = 256,
        residual: bool = True,
        unit_norm: bool = True,
        dropout: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_layer(kind, width if i else columns, width) for i in range(layers))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(layers if batch_norm else 0))
        self.dropout = Dropout(dropout)
        self.width, self.residual, self.unit_norm = width, residual, unit_norm

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return the [n, width] embeddings of the nodes of a batch."""
        h = batch.x
        for i, layer in enumerate(self.layers):
            z = layer(batch, h)
            z = self.dropout(F.relu(self.norms[i](z) if self.norms else z, inplace=True))
            h = z + h if self.residual and z.shape == h.shape else z
            if self.unit_norm:
                h = unit_norm(h)
        return h


class PyGEncoder(nn.Module):
    """A PyG module as an encoder, called as `module(x, edge_index)`.

    If its `forward` names `batch`, `batch_size`, `edge_attr` or `edge_weight`, it gets these as well.

    Args:
        module: module that returns one row per node.
        width: width of the rows; the first batch tells it by default.

    >>> from same.graphs import planted
    >>> from torch_geometric.nn import GraphConv
    >>> PyGEncoder(GraphConv(24, 8), width=8)(planted(10).cut([0])).shape[1]
    8
    """

    def __init__(self, module: nn.Module, width: int = 0) -> None:
        super().__init__()
        self.module, self.width = module, width
        self._names = [name for name in inspect.signature(module.forward).parameters if name in _NAMED]

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return the [n, width] embeddings of the nodes of a batch."""
        named = {name: getattr(batch, _NAMED[name], None) for name in self._names}
        h = self.module(batch.x, batch.edge_index, **named)
        self.width = self.width or h.shape[-1]
        if h.shape != (batch.num_nodes, self.width):
            raise InputError(
                f"encoder: returned {tuple(h.shape)}, expected one row for each of {batch.num_nodes} nodes"
            )
        return h


def check_encoder(encoder: nn.Module, first: GraphBatch, second: GraphBatch, *, second_order: bool) -> None:
    """Refuse an encoder that mixes two graphs, or that cannot be differentiated as often as training needs."""
    encoder = copy.deepcopy(encoder).eval()
    with torch.no_grad():
        apart = torch.cat([encoder(first), encoder(second)])
        together = encoder(GraphBatch.concat([first, second])[0])
    if not torch.allclose(apart, together, rtol=1e-3, atol=1e-4 * float(apart.abs().max())):
        change = float((apart - together).abs().max())
        raise InputError(
            f"encoder: the embeddings of a graph change by up to {change:.2g} with the other graphs of its batch; let "
            "its forward take `batch`, and pass it on to layers that normalise or attend over a graph"
        )
    encoder.train()
    if second_order:
        parameters = [p for p in encoder.parameters() if p.requires_grad]
        try:
            loss = encoder(first).square().sum()
            gradients = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
            total = torch.stack([g.square().sum() for g in gradients if g is not None]).sum()
            torch.autograd.grad(total, parameters, allow_unused=True)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"encoder: has no second derivatives ({reason}); use first_order=True or method='esame'"
            ) from None


def make_encoder(config: Config, columns: int) -> Encoder:
    """Build the encoder of a configuration; torch's global generator initialises it."""
    same_names = {"layers", "width", "residual", "unit_norm", "batch_norm", "dropout"}
    return Encoder(columns, kind=config.encoder, **config.model_dump(include=same_names))


def _layer(kind: str, columns: int, width: int) -> nn.Module:
    if kind == "gcn":
        return GCNLayer(columns, width)
    if kind not in KINDS:
        raise InputError(f"encoder: {kind!r} is not one of {', '.join(KINDS)}")
    from torch_geometric import nn as pyg

    if kind == "gin":
        network = nn.Sequential(nn.Linear(columns, width), nn.ReLU(), nn.Linear(width, width))
        return PyGLayer(pyg.GINConv(network))
    if kind == "cheb":
        return PyGLayer(pyg.ChebConv(columns, width, K=3))
    return PyGLayer((pyg.GATConv if kind == "gat" else pyg.SAGEConv)(columns, width))
