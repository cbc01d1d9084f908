"""Batches: some graphs of a set as one block-diagonal graph, in tensors."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from same.graphs.flat import Array, pointers
from same.graphs.inputs import Inputs
from same.graphs.labels import Level, find_column

# torch warns once per process that CSR tensors are in beta.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1))


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Some graphs as one block-diagonal graph, ready for an encoder.

    Attributes:
        x: [n, d] input columns of the nodes.
        edges: [2, m] message-passing edges, each once.
        node_ptr: [g+1] offsets of each graph's nodes.
        edge_ptr: [g+1] offsets of each graph's edges.
        graph_ids: [g] ids of the graphs in the store.
        labels: codes (int64) or numbers (float32) of each column, one row per graph or per node.
        known: masks of the known entries of the columns that have unknown ones.
        levels: level of each column.
        inputs: the inputs that made `x`.
    """

    x: Tensor
    edges: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    graph_ids: Tensor
    labels: Mapping[str, Tensor] = field(default_factory=dict)
    known: Mapping[str, Tensor] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    inputs: Inputs | None = None

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.x)

    def column(self, level: Level, name: str | None = None) -> Tensor | None:
        """Labels of a column, by default that of graph or node classification; None if there is no such column."""
        found = find_column(self.levels, level, name)
        return None if found is None else self.labels[found]

    @property
    def graph_y(self) -> Tensor | None:
        """[g] or [g, t] labels of the graphs: the column `y`."""
        return self.column("graph")

    @property
    def node_y(self) -> Tensor | None:
        """[n] or [n, t] labels of the nodes: the column `node_y`, or else `y`."""
        return self.column("node")

    @cached_property
    def batch(self) -> Tensor:
        """[n] graph of each node, 0..g-1."""
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
        """[n, d] Â x, the part of a first graph convolution that does not depend on parameters."""
        return self.adjacency @ self.x

    def mean(self, h: Tensor) -> Tensor:
        """[g, w] mean of the rows of `h` over the nodes of each graph."""
        total = h.new_zeros(self.num_graphs, h.shape[1]).index_add(0, self.batch, h)
        return total / self.node_ptr.diff()[:, None]

    @staticmethod
    def concat(batches: "Sequence[GraphBatch]") -> "tuple[GraphBatch, list[int]]":
        """Many batches as one, and the number of nodes of each, to split the encoder's output."""
        first, sizes = batches[0], [batch.num_nodes for batch in batches]
        nodes = pointers(np.array(sizes)).tolist()
        edges = pointers(np.array([batch.edges.shape[1] for batch in batches])).tolist()
        ends = [batch.node_ptr[1:] + start for batch, start in zip(batches, nodes, strict=False)]
        edge_ends = [batch.edge_ptr[1:] + start for batch, start in zip(batches, edges, strict=False)]
        joined = replace(
            first,
            x=torch.cat([batch.x for batch in batches]),
            edges=torch.cat([batch.edges + start for batch, start in zip(batches, nodes, strict=False)], dim=1),
            node_ptr=torch.cat([first.node_ptr[:1], *ends]),
            edge_ptr=torch.cat([first.edge_ptr[:1], *edge_ends]),
            graph_ids=torch.cat([batch.graph_ids for batch in batches]),
            labels={name: torch.cat([batch.labels[name] for batch in batches]) for name in first.labels},
            known={name: torch.cat([batch.known[name] for batch in batches]) for name in first.known},
        )
        return joined, sizes

    def pieces(self, nodes: int) -> "Iterator[GraphBatch]":
        """Consecutive graphs in batches of at most so many nodes, or of one larger graph."""
        if self.num_nodes <= nodes:
            yield self
            return
        ends, edge_ends, g = self.node_ptr.tolist(), self.edge_ptr.tolist(), 0
        while g < self.num_graphs:
            stop = max(g + 1, bisect_right(ends, ends[g] + nodes) - 1)
            first, last, edge = ends[g], ends[stop], edge_ends[g]
            rows = {"graph": slice(g, stop), "node": slice(first, last)}
            yield replace(
                self,
                x=self.x[first:last],
                edges=self.edges[:, edge : edge_ends[stop]] - first,
                node_ptr=self.node_ptr[g : stop + 1] - first,
                edge_ptr=self.edge_ptr[g : stop + 1] - edge,
                graph_ids=self.graph_ids[g:stop],
                labels={name: y[rows[self.levels[name]]] for name, y in self.labels.items()},
                known={name: mask[rows[self.levels[name]]] for name, mask in self.known.items()},
            )
            g = stop

    def drop_edges(self, drop: Tensor) -> "GraphBatch":
        """The batch without some edges: they carry no messages and show in no structural input.

        Args:
            drop: [m] mask of the edges to remove.
        """
        keep = ~drop
        kept_before = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        edges = self.edges[:, keep]
        x = self.x if self.inputs is None else self.inputs.renew(self.x, edges)
        return replace(self, x=x, edges=edges, edge_ptr=kept_before[self.edge_ptr])

    def to(self, where: torch.device | str | torch.dtype) -> "GraphBatch":
        """The batch on another device, or with another floating-point type."""
        changed: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, Tensor):
                changed[name] = move_tensor(value, where)
            elif name in ("labels", "known"):
                changed[name] = {column: move_tensor(tensor, where) for column, tensor in value.items()}
        return replace(self, **changed)


def move_tensor(value: Tensor, where: torch.device | str | torch.dtype) -> Tensor:
    """A tensor on another device, or, if it is a floating-point tensor, of another type.

    >>> move_tensor(torch.tensor([1]), torch.float64).dtype
    torch.int64
    """
    return value if isinstance(where, torch.dtype) and not value.is_floating_point() else value.to(where)


def csr(crow: Array, col: Array, values: Array, n: int) -> Tensor:
    """A square sparse CSR tensor from arrays that need no checking.

    >>> csr(np.array([0, 1, 2]), np.array([1, 0]), np.array([2.0, 3.0]), 2).to_dense()
    tensor([[0., 2.],
            [3., 0.]], dtype=torch.float64)
    """
    # MKL takes 32-bit indices; torch would convert others at every product.
    rows, columns = (torch.from_numpy(index.astype(np.int32)) for index in (crow, col))
    return torch.sparse_csr_tensor(rows, columns, torch.from_numpy(values), (n, n), check_invariants=False)
