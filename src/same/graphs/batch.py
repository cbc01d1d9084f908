"""Batches: some graphs of a set as one, in tensors, ready for an encoder."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from same.graphs.inputs import Inputs

Array = np.ndarray

# torch says once per process that CSR tensors are in beta. Let it say so to nobody.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1))


def ranges(starts: Array, lengths: Array) -> Array:
    """The integers start, start+1, …, start+length-1 of every pair, one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def pointers(lengths: Array) -> Array:
    """Where each of a row of blocks starts, and where the last one ends: [0, l₀, l₀+l₁, …].

    >>> pointers(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Some graphs as one: block-diagonal, in tensors, ready for an encoder.

    Attributes:
        x: [n, d] what the encoder sees.
        edges: [2, m] the edges that carry messages, each once.
        node_ptr: [g+1] where each graph's nodes start.
        edge_ptr: [g+1] where each graph's edges start.
        graph_ids: [g] the graphs' places in the store.
        graph_y: [g] or [g, t] classes (int64) or targets (float32) of the graphs, if they have any.
        node_y: [n] or [n, t] the same for the nodes.
    """

    x: Tensor
    edges: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    graph_ids: Tensor
    graph_y: Tensor | None = None
    node_y: Tensor | None = None
    inputs: "Inputs | None" = None

    @property
    def num_graphs(self) -> int:
        """How many graphs."""
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return len(self.x)

    @cached_property
    def batch(self) -> Tensor:
        """[n] the graph of each node, 0..g-1."""
        return torch.repeat_interleave(torch.arange(self.num_graphs, device=self.x.device), self.node_ptr.diff())

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, 2m] every edge in both directions, as PyG layers take it."""
        return torch.cat([self.edges, self.edges.flip(0)], dim=1)

    @cached_property
    def adjacency(self) -> Tensor:
        """[n, n] Â = D^-1/2 (A + I) D^-1/2 as a sparse CSR tensor, D the degrees of A + I."""
        n = self.num_nodes
        u, v = self.edges.cpu().numpy()
        loops = np.arange(n)
        rows, cols = np.concatenate([u, v, loops]), np.concatenate([v, u, loops])
        order = np.argsort(rows * n + cols)
        rows, cols = rows[order], cols[order]
        degree = np.bincount(rows, minlength=n)
        scale = 1.0 / np.sqrt(degree)
        values = (scale[rows] * scale[cols]).astype(np.float64 if self.x.dtype == torch.float64 else np.float32)
        return csr(pointers(degree), cols, values, n).to(self.x.device)

    @cached_property
    def smoothed(self) -> Tensor:
        """[n, d] Â x, the part of a first graph convolution that depends on no parameter."""
        return self.adjacency @ self.x

    def mean(self, h: Tensor) -> Tensor:
        """[g, w] the mean of the rows of `h` over the nodes of each graph."""
        total = h.new_zeros(self.num_graphs, h.shape[1]).index_add(0, self.batch, h)
        return total / self.node_ptr.diff()[:, None]

    @staticmethod
    def concat(batches: "Sequence[GraphBatch]") -> "tuple[GraphBatch, list[int]]":
        """Many batches as one, and how many nodes each has, to split what an encoder makes of them."""
        sizes = [batch.num_nodes for batch in batches]
        nodes, edges = pointers(np.array(sizes)), pointers(np.array([batch.edges.shape[1] for batch in batches]))
        ends = [batch.node_ptr[1:] + start for batch, start in zip(batches, nodes.tolist(), strict=False)]
        edge_ends = [batch.edge_ptr[1:] + start for batch, start in zip(batches, edges.tolist(), strict=False)]
        return (
            GraphBatch(
                x=torch.cat([batch.x for batch in batches]),
                edges=torch.cat([batch.edges + s for batch, s in zip(batches, nodes.tolist(), strict=False)], dim=1),
                node_ptr=torch.cat([batches[0].node_ptr[:1], *ends]),
                edge_ptr=torch.cat([batches[0].edge_ptr[:1], *edge_ends]),
                graph_ids=torch.cat([batch.graph_ids for batch in batches]),
                inputs=batches[0].inputs,
            ),
            sizes,
        )

    def pieces(self, nodes: int) -> "Iterator[GraphBatch]":
        """The batch in runs of whole graphs, each of so many nodes at most, or one graph; itself, if it is small."""
        if self.num_nodes <= nodes:
            yield self
            return
        ends, edge_ends, g = self.node_ptr.tolist(), self.edge_ptr.tolist(), 0
        while g < self.num_graphs:
            stop = max(g + 1, bisect_right(ends, ends[g] + nodes) - 1)
            first, last, edge = ends[g], ends[stop], edge_ends[g]
            yield replace(
                self,
                x=self.x[first:last],
                edges=self.edges[:, edge : edge_ends[stop]] - first,
                node_ptr=self.node_ptr[g : stop + 1] - first,
                edge_ptr=self.edge_ptr[g : stop + 1] - edge,
                graph_ids=self.graph_ids[g:stop],
                graph_y=None if self.graph_y is None else self.graph_y[g:stop],
                node_y=None if self.node_y is None else self.node_y[first:last],
            )
            g = stop

    def drop_edges(self, drop: Tensor) -> "GraphBatch":
        """The batch without some of its edges: they carry no messages and show in no structural input.

        Args:
            drop: [m] which edges go.
        """
        keep = ~drop
        kept_before = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        edges = self.edges[:, keep]
        x = self.x if self.inputs is None else self.inputs.renew(self.x, edges)
        return replace(self, x=x, edges=edges, edge_ptr=kept_before[self.edge_ptr])

    def to(self, where: "torch.device | str | torch.dtype") -> "GraphBatch":
        """The batch on another device, or with floating-point numbers of another type."""
        moved: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name in self.__dataclass_fields__ and isinstance(value, Tensor):
                moved[name] = move_tensor(value, where)
        return replace(self, **moved)


def move_tensor(value: Tensor, where: "torch.device | str | torch.dtype") -> Tensor:
    """A tensor on another device, or, if it holds floating-point numbers, of another type.

    >>> move_tensor(torch.tensor([1]), torch.float64).dtype
    torch.int64
    """
    return value if isinstance(where, torch.dtype) and not value.is_floating_point() else value.to(where)


def csr(crow: Array, col: Array, values: Array, n: int) -> Tensor:
    """A square sparse CSR tensor from arrays that are known to be sound.

    >>> csr(np.array([0, 1, 2]), np.array([1, 0]), np.array([2.0, 3.0]), 2).to_dense()
    tensor([[0., 2.],
            [3., 0.]], dtype=torch.float64)
    """
    # MKL takes 32-bit indices, and torch would turn others into them at every product.
    rows, columns = (torch.from_numpy(index.astype(np.int32)) for index in (crow, col))
    return torch.sparse_csr_tensor(rows, columns, torch.from_numpy(values), (n, n), check_invariants=False)
