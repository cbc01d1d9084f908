"""Encoders: from a batch of graphs to node embeddings."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from same.errors import InputError
from same.graphs.batch import GraphBatch
from same.nn.chain import Convolution, Op
from same.nn.norm import unit_norm
from same.nn.sparse import propagate

Kind = Literal["gcn", "gin", "gat", "sage", "cheb"]


class GCNLayer(nn.Module):
    """A graph convolution (Kipf & Welling, 2017): H′ = Â H W + b.

    Args:
        columns: the width of H.
        width: the width of H′.
    """

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(columns, width)))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        """[n, width] from [n, columns]."""
        if h is batch.x:
            z = batch.smoothed @ self.weight
        elif self.weight.shape[0] <= self.weight.shape[1]:
            z = propagate(batch.adjacency, h) @ self.weight
        else:
            z = propagate(batch.adjacency, h @ self.weight)
        return z.add_(self.bias)  # In place: faster than `addmm`, which begins with writing b into every row.


class PyGLayer(nn.Module):
    """Any layer that PyG users write as `layer(x, edge_index)`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        """[n, width] from [n, columns]."""
        return self.layer(h, batch.edge_index)


class BatchNorm(nn.BatchNorm1d):
    """Batch norm over nodes; a node on its own, which has no spread, is standardised by the running means."""

    def forward(self, h: Tensor) -> Tensor:
        """[n, width] from [n, width]."""
        alone = len(h) < 2
        return F.batch_norm(
            h,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.training and not alone,
            momentum=0.1,
            eps=self.eps,
        )


class Encoder(nn.Module):
    """Message-passing layers with ReLU, residual connections where the widths agree, and optional unit norm.

    H⁽ˡ⁺¹⁾ = norm(dropout(ReLU(layer(H⁽ˡ⁾))) + H⁽ˡ⁾), as in the paper's Appendix C.

    Args:
        columns: how many columns a batch's `x` has.
        kind: `gcn`, or PyG's layer of the name `gin`, `gat`, `sage` or `cheb`.
        layers: how many.
        width: of every layer, and of the embeddings.
        residual: whether to add a layer's input to its output.
        unit_norm: whether to scale each node's row to length 1 after every layer.
        dropout: the share of numbers that are set to 0 in training.
        batch_norm: whether to standardise what a layer gives, before ReLU: over the nodes of the batch in training, by
            running means otherwise, so that an embedding never depends on which graphs are embedded together.

    >>> from same.graphs import planted
    >>> Encoder(24, width=8)(planted(10).cut([0, 1])).shape[1]
    8
    """

    def __init__(
        self,
        columns: int,
        *,
        kind: Kind = "gcn",
        layers: int = 3,
        width: int = 256,
        residual: bool = True,
        unit_norm: bool = True,
        dropout: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        make = _layer(kind)
        self.layers = nn.ModuleList(make(columns if i == 0 else width, width) for i in range(layers))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(layers if batch_norm else 0))
        self.width, self.residual, self.unit_norm, self.dropout = width, residual, unit_norm, dropout

    def forward(self, batch: GraphBatch) -> Tensor:
        """[n, width] the embeddings of the nodes of a batch."""
        h = batch.x
        for i, layer in enumerate(self.layers):
            z = layer(batch, h)
            z = F.relu(self.norms[i](z) if self.norms else z, inplace=True)
            if self.dropout:
                z = F.dropout(z, self.dropout, self.training)
            h = z + h if self.residual and z.shape == h.shape else z
            if self.unit_norm:
                h = unit_norm(h)
        return h

    def ops(self, name: str, batch: GraphBatch) -> list[Op] | None:
        """What `forward` consists of, for `same.nn.chain`; None where that is not known."""
        if self.norms or (self.dropout and self.training):
            return None
        found: list[Op] = []
        columns = batch.x.shape[1]
        for i, layer in enumerate(self.layers):
            if type(layer) is not GCNLayer:
                return None
            residual = self.residual and (i > 0 or columns == self.width)
            own = f"{name}.layers.{i}"
            found.append(Convolution(own, batch, first=i == 0, residual=residual, unit_norm=self.unit_norm))
        return found


class PyGEncoder(nn.Module):
    """Any PyG module, called as `module(x, edge_index)`, as an encoder.

    Args:
        module: gives a row for each node.
        width: how long the rows are.

    >>> from same.graphs import planted
    >>> from torch_geometric.nn import GraphConv
    >>> PyGEncoder(GraphConv(24, 8), width=8)(planted(10).cut([0])).shape[1]
    8
    """

    def __init__(self, module: nn.Module, width: int) -> None:
        super().__init__()
        self.module, self.width = module, width

    def forward(self, batch: GraphBatch) -> Tensor:
        """[n, width] the embeddings of the nodes of a batch."""
        h = self.module(batch.x, batch.edge_index)
        if h.shape != (batch.num_nodes, self.width):
            raise InputError(f"the encoder gave {tuple(h.shape)}, expected ({batch.num_nodes}, {self.width})")
        return h


def _layer(kind: Kind) -> Callable[[int, int], nn.Module]:
    if kind == "gcn":
        return GCNLayer
    if kind not in get_args(Kind):
        raise InputError(f"encoder: {kind!r} is not one of {', '.join(get_args(Kind))}")
    from torch_geometric import nn as pyg

    def gin(columns: int, width: int) -> nn.Module:
        return pyg.GINConv(nn.Sequential(nn.Linear(columns, width), nn.ReLU(), nn.Linear(width, width)))

    layers: dict[str, Callable[[int, int], Any]] = {
        "gin": gin,
        "gat": pyg.GATConv,
        "sage": pyg.SAGEConv,
        "cheb": lambda columns, width: pyg.ChebConv(columns, width, K=3),
    }
    return lambda columns, width: PyGLayer(layers[kind](columns, width))
