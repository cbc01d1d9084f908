"""Batches: some graphs of a set as one block-diagonal graph, in tensors; and labelled examples of a task."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from same.graphs.flat import pick, pointers
from same.graphs.inputs import Inputs
from same.graphs.labels import Graphs, Labels

# torch warns once per process that CSR tensors are in beta.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1))


@dataclass(frozen=True, eq=False)
class GraphBatch(Graphs):
    """Some graphs as one block-diagonal graph, ready for an encoder.

    Attributes:
        x: [n, d] input columns of the nodes.
        edges: [2, m] message-passing edges, each once.
        node_ptr: [g+1] offsets of each graph's nodes.
        edge_ptr: [g+1] offsets of each graph's edges.
        graph_ids: [g] ids of the graphs in the store.
        labels: label columns by name, as tensors.
        inputs: the inputs that made `x`.
    """

    x: Tensor
    edges: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    graph_ids: Tensor
    labels: Mapping[str, Labels] = field(default_factory=dict)
    inputs: Inputs | None = None

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
        # MKL takes 32-bit indices; torch would convert others at every product.
        crow, col = (torch.from_numpy(index.astype(np.int32)) for index in (pointers(degree), cols))
        matrix = torch.sparse_csr_tensor(crow, col, torch.from_numpy(values), (n, n), check_invariants=False)
        return matrix.to(self.x.device)

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
        parts = list(zip(batches, nodes, edges, strict=False))
        labels = {}
        for name, column in first.labels.items():
            known = None if column.known is None else torch.cat([batch.labels[name].known for batch in batches])
            labels[name] = replace(column, y=torch.cat([batch.labels[name].y for batch in batches]), known=known)
        joined = replace(
            first,
            x=torch.cat([batch.x for batch in batches]),
            edges=torch.cat([batch.edges + start for batch, start, _ in parts], dim=1),
            node_ptr=torch.cat([first.node_ptr[:1], *(batch.node_ptr[1:] + start for batch, start, _ in parts)]),
            edge_ptr=torch.cat([first.edge_ptr[:1], *(batch.edge_ptr[1:] + start for batch, _, start in parts)]),
            graph_ids=torch.cat([batch.graph_ids for batch in batches]),
            labels=labels,
        )
        return joined, sizes

    def take(self, ids: Any) -> "GraphBatch":
        """Batch of some graphs of this batch, by their places in it, in the given order."""
        ids, old = np.asarray(ids), self.node_ptr.cpu().numpy()
        nodes, node_ptr, edges, edge_ptr = pick(old, self.edge_ptr.cpu().numpy(), ids)
        shift = np.repeat(node_ptr[:-1] - old[ids], np.diff(edge_ptr))
        start, end, moved = (torch.from_numpy(array).to(self.x.device) for array in (node_ptr, edge_ptr, shift))
        return replace(
            self,
            x=self.x[nodes],
            edges=self.edges[:, edges] + moved,
            node_ptr=start,
            edge_ptr=end,
            graph_ids=self.graph_ids[ids],
            labels={name: c.take(ids if c.level == "graph" else nodes) for name, c in self.labels.items()},
        )

    def pieces(self, nodes: int) -> "Iterator[GraphBatch]":
        """Consecutive graphs in batches of at most so many nodes, or of one larger graph."""
        if self.num_nodes <= nodes:
            yield self
            return
        ends, g = self.node_ptr.tolist(), 0
        while g < self.num_graphs:
            stop = max(g + 1, bisect_right(ends, ends[g] + nodes) - 1)
            yield self.take(np.arange(g, stop))
            g = stop

    def drop_edges(self, drop: Tensor) -> "GraphBatch":
        """The batch without the edges in the [m] mask `drop`, in messages and in structural inputs."""
        keep = ~drop
        kept_before = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        edges = self.edges[:, keep]
        x = self.x if self.inputs is None else self.inputs.renew(self.x, edges)
        return replace(self, x=x, edges=edges, edge_ptr=kept_before[self.edge_ptr])

    def to(self, where: torch.device | str | torch.dtype) -> "GraphBatch":
        """The batch on another device, or with another floating-point type."""
        names = ("x", "edges", "node_ptr", "edge_ptr", "graph_ids")
        changed: dict[str, Any] = {name: move_tensor(getattr(self, name), where) for name in names}
        labels = {name: column.map(lambda y: move_tensor(y, where)) for name, column in self.labels.items()}
        return replace(self, labels=labels, **changed)


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled examples of one task: a support set or a target set.

    Attributes:
        inputs: input of the encoder; for graphs, a `GraphBatch` of the message-passing edges.
        y: labels.
        index: rows of the encoder's output, or [2, p] pairs of rows, that the labels belong to; None for all rows.
        embeddings: output of the encoder, where it has been computed already.
    """

    inputs: Any
    y: Tensor
    index: Tensor | None = None
    embeddings: Tensor | None = None


def move_tensor(value: Tensor, where: torch.device | str | torch.dtype) -> Tensor:
    """A tensor on another device, or, if it is a floating-point tensor, of another type."""
    return value if isinstance(where, torch.dtype) and not value.is_floating_point() else value.to(where)
