"""Pooling: from the rows of the nodes to one row for each graph."""

import torch
from torch import Tensor

from same.config import POOLS, parse_pool
from same.graphs.batch import GraphBatch

__all__ = ["POOLS", "parse_pool", "pool_nodes", "pooled_width"]

_EPSILON = 1e-8  # Under the root of `std`, whose derivatives are finite where the nodes of a graph are equal.


def pool_nodes(batch: GraphBatch, h: Tensor, pool: str) -> Tensor:
    """Return the [g, k] pooled rows of the nodes of each graph.

    For a graph with the rows h_v of n nodes, and in each column:

        mean = Σ h_v / n,   sum = Σ h_v,   max = max h_v,   std = (Σ (h_v − mean)² / n + 1e-8)^½,   size = log n

    All have exact first and second derivatives; nodes that share a maximum share its gradient equally.

    Args:
        batch: graphs of the nodes.
        h: [n, w] rows of the nodes.
        pool: one of `POOLS`, or several joined by `+`, whose columns are concatenated in this order.

    >>> from same.graphs import planted
    >>> batch = planted(10).cut([0, 1])
    >>> pool_nodes(batch, batch.x, "mean+size").shape
    torch.Size([2, 25])
    """
    parts = [_pool(batch, h, kind) for kind in parse_pool(pool)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def pooled_width(width: int, pool: str) -> int:
    """Return the number of columns that pooled rows have.

    >>> pooled_width(16, "mean+std+size")
    33
    """
    return sum(1 if kind == "size" else width for kind in parse_pool(pool))


def _pool(batch: GraphBatch, h: Tensor, kind: str) -> Tensor:
    if kind == "mean":
        return batch.mean(h)
    if kind == "sum":
        return h.new_zeros(batch.num_graphs, h.shape[1]).index_add(0, batch.batch, h)
    if kind == "max":
        # The start is no maximum of any graph: torch would give it a share of the gradient.
        start = h.new_full((batch.num_graphs, h.shape[1]), -torch.inf)
        return start.scatter_reduce(0, batch.batch[:, None].expand_as(h), h, "amax")
    if kind == "std":
        centred = h - batch.mean(h).index_select(0, batch.batch)
        return (batch.mean(centred.square()) + _EPSILON).sqrt()
    size = batch.node_ptr.diff().to(h.dtype).log()[:, None]
    return size + h[:0].sum()  # An empty sum: the gradient by `h` is 0, where there would be none.
