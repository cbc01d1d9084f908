"""Link prediction (LP)."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from same.graphs.batch import Examples, GraphBatch
from same.graphs.flat import Array, pointers, ranges
from same.graphs.store import GraphStore
from same.metrics import roc_auc
from same.nn.heads import PairHead
from same.nn.pairs import Pair, pair_features
from same.tasks.task import GraphTask, loss_of, ranks, share


class LinkPrediction(GraphTask):
    """Predict whether two nodes are linked. A fifth of the edges is removed and is the target, the rest the support.

    Messages pass over the remaining edges only, in support and target alike.

    Args:
        pair: pair features of the head, `symmetric` or the paper's `concat`.
        linear: leave out the hidden layer of the head.
    """

    name = "lp"
    kind = "links"

    def __init__(self, pair: Pair = "symmetric", *, linear: bool = False) -> None:
        self.pair, self.linear = pair, linear

    def missing(self, store: GraphStore) -> str | None:
        """Edges are needed."""
        return None if store.num_edges else "edges"

    def head(self, width: int) -> nn.Module:
        """See `PairHead`."""
        return PairHead(width, self.pair, linear=self.linear)

    def cut(self, store: GraphStore, ids: Array, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """80 % of the edges of each graph and of as many random non-edges; and the others, whose edges are removed."""
        batch = store.cut(ids)
        removed, thinned = _remove(batch, rng)
        pairs, graph = _non_edges(batch, np.diff(batch.edge_ptr.numpy()), rng)
        apart = ranks(graph, rng) < share(np.bincount(graph, minlength=batch.num_graphs), 0.2)[graph]
        edges = batch.edges.numpy()
        support = _examples(thinned, edges[:, ~removed], pairs[:, ~apart], rng)
        return support, _examples(thinned, edges[:, removed], pairs[:, apart], rng)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """A fifth of the edges of each graph, removed, and as many random non-edges."""
        removed, thinned = _remove(batch, rng)
        counts = np.diff(batch.edge_ptr.numpy()) - np.diff(thinned.edge_ptr.numpy())
        return _examples(thinned, batch.edges.numpy()[:, removed], _non_edges(batch, counts, rng)[0], rng)

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """Pair features of the embeddings."""
        return pair_features(h, examples.index, self.pair)

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Binary cross-entropy."""
        return loss_of(F.binary_cross_entropy_with_logits, output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Area under the ROC curve; 0.5 without both edges and non-edges."""
        if len(examples.y.unique()) < 2:
            return 0.5
        return roc_auc(examples.y.cpu().numpy(), output.cpu().numpy())


class GivenPairs(LinkPrediction):
    """Predict a yes or no for given pairs of nodes, such as whether two atoms interact. All edges carry messages."""

    name = "pairs"

    def missing(self, store: GraphStore) -> str:
        """No set holds such pairs."""
        return "given pairs and their labels (pass pairs and y)"


def _remove(batch: GraphBatch, rng: np.random.Generator) -> tuple[Array, GraphBatch]:
    """Mask of the edges to remove, a fifth of each graph's, and the batch without them."""
    counts = np.diff(batch.edge_ptr.numpy())
    graph = np.repeat(np.arange(len(counts)), counts)
    removed = ranks(graph, rng) < share(counts, 0.2)[graph]
    return removed, batch.drop_edges(torch.from_numpy(removed))


def _examples(batch: GraphBatch, edges: Array, others: Array, rng: np.random.Generator) -> Examples:
    y = torch.zeros(edges.shape[1] + others.shape[1], dtype=batch.x.dtype)
    y[: edges.shape[1]] = 1
    pairs = np.concatenate([edges, others], axis=1)
    # Stored edges have the smaller node first. Swap at random: concatenated pairs would otherwise depend on the order
    # of nodes in the file.
    swapped = rng.random(pairs.shape[1]) < 0.5
    pairs[:, swapped] = pairs[::-1, swapped]
    return Examples(batch, y, torch.from_numpy(pairs))


def _non_edges(batch: GraphBatch, wanted: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """[2, p] random non-edges without repeats, [g] `wanted` or all of each graph, and [p] the graph of each, sorted."""
    # Pairs u < v are numbered row by row, and non-edges among themselves. Numbers of non-edges are drawn.
    starts, edge_ptr = batch.node_ptr.numpy(), batch.edge_ptr.numpy()
    n, m = np.diff(starts), np.diff(edge_ptr)
    free = n * (n - 1) // 2 - m
    first = pointers(free)
    drawn, graph = _draw(free, np.minimum(wanted, free), first, rng)

    # Before the i-th edge of a graph come (its number - i) non-edges.
    u, v = batch.edges.numpy()
    of = np.repeat(np.arange(len(m)), m)
    u, v = u - starts[of], v - starts[of]
    number = u * n[of] - u * (u + 1) // 2 + v - u - 1
    before = number - (np.arange(len(u)) - edge_ptr[of]) + first[of]
    number = drawn - first[graph] + np.searchsorted(before, drawn, side="right") - edge_ptr[graph]
    u, v = numbered_pair(number, n[graph])
    return np.stack([u, v]) + starts[graph], graph


def numbered_pair(number: Array, n: Array) -> tuple[Array, Array]:
    """Pair u < v with this number among the pairs of n nodes, row by row."""

    def row_start(u: Array) -> Array:
        return u * n - u * (u + 1) // 2

    u = (((2 * n - 1) - np.sqrt((2.0 * n - 1) ** 2 - 8.0 * number)) / 2).astype(np.int64)
    u -= row_start(u) > number  # The rounded root may be one row off.
    u += row_start(u + 1) <= number
    return u, number - row_start(u) + u + 1


def _draw(free: Array, wanted: Array, first: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Distinct random integers, `wanted` from each range first..first+free-1, and the range of each; sorted."""
    # Shuffle a range if most of it is wanted; otherwise draw until there are no repeats.
    dense = free < 3 * wanted
    group = np.repeat(np.flatnonzero(dense), free[dense])
    shuffled = ranks(group, rng) < wanted[group]
    drawn = ranges(first[:-1][dense], free[dense])[shuffled]

    group = np.repeat(np.flatnonzero(~dense), wanted[~dense])
    kept = np.empty(0, np.int64)
    while len(group):
        fresh = first[group] + (rng.random(len(group)) * free[group]).astype(np.int64)
        both = np.sort(np.concatenate([kept, fresh]))
        kept = both[np.diff(both, prepend=-1) > 0]
        have = np.bincount(np.searchsorted(first, kept, side="right") - 1, minlength=len(free))
        short = np.where(dense, 0, wanted - have)
        group = np.repeat(np.arange(len(free)), short)
    drawn = np.sort(np.concatenate([drawn, kept]))
    return drawn, np.searchsorted(first, drawn, side="right") - 1
