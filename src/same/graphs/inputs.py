"""What an encoder sees of a node: its scaled attributes, and structural encodings of the edges around it."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from same.errors import InputError
from same.graphs.flat import Array, ranges

Scaling = Literal["standardise", "row", "both", "none"]

DEGREE_WITHOUT_ATTRIBUTES = 16  # Default cap of the degree encoding of sets without attributes.
_CACHE_BYTES = 2**28
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input columns of an encoder: scaled attributes, then structural encodings of the message-passing edges.

    Fit it with `Inputs.fit` and pass it to `GraphStore.with_inputs`. Structural encodings are a function of the
    message-passing edges of a batch alone: a held-out edge never shows in them. Attributes are scaled in float64 and
    cast to float32 at the end. In a set without attributes, every node shows a constant 1 and its degree.

    Attributes:
        scaling: `standardise` ((x - mean) / std over the training nodes), `row` (x / max(Σx, 1)), `both` side by
            side, or `none`.
        degree: cap of the one-hot degree, whose last column means *cap or more*; 0 for none.
        walk: number of return probabilities of a random walk, after 2, 3, …, walk+1 steps; 0 for none.
        mean: [d] means that `standardise` subtracts.
        scale: [d] standard deviations that it divides by; 1 where a column is constant.
        cache: [N, num_features] columns of all nodes of the store that the inputs belong to, if it is small.
    """

    scaling: Scaling
    degree: int
    walk: int
    mean: Array
    scale: Array
    cache: Array | None = None

    @classmethod
    def fit(
        cls, store: Any, ids: Array, *, scaling: Scaling = "standardise", degree: int = 0, walk: int = 0
    ) -> "Inputs":
        """Fit the scaling on the graphs `ids` of a `GraphStore`, usually the training graphs; see the attributes."""
        if scaling not in get_args(Scaling):
            raise InputError(f"scaling: {scaling!r} is not one of {', '.join(get_args(Scaling))}")
        if degree < 0 or walk < 0:
            raise InputError(f"degree and walk: must be 0 (none) or more, not {min(degree, walk)}")
        d = store.x.shape[1]
        mean, scale = np.zeros(d), np.ones(d)
        if scaling in ("standardise", "both") and d:
            mean, scale = _mean_and_scale(store, np.asarray(ids, dtype=np.int64))
        return cls(scaling, int(degree) or (0 if d else DEGREE_WITHOUT_ATTRIBUTES), int(walk), mean, scale)

    @property
    def num_features(self) -> int:
        """Number of columns."""
        return max(len(self.mean), 1) * (2 if self.scaling == "both" and len(self.mean) else 1) + self.num_structural

    @property
    def num_structural(self) -> int:
        """Number of structural columns; they come last."""
        return (self.degree + 1 if self.degree else 0) + self.walk

    def for_store(self, store: Any) -> "Inputs":
        """The same inputs, with the columns of a small store computed once."""
        if (d := store.x.shape[1]) != len(self.mean):
            raise InputError(f"{store.name}: its nodes have {d} attributes, the inputs were fitted on {len(self.mean)}")
        bare = replace(self, cache=None)
        if store.num_nodes * self.num_features * 4 > _CACHE_BYTES:
            return bare
        cache, edges = np.empty((store.num_nodes, self.num_features), np.float32), store.joint_edges
        for first in range(0, store.num_graphs, _CHUNK):
            last = min(first + _CHUNK, store.num_graphs)
            start, end = store.node_ptr[[first, last]]
            inside = edges[:, store.edge_ptr[first] : store.edge_ptr[last]] - start
            cache[start:end] = bare.columns(store.x[start:end], inside, np.arange(start, end))
        return replace(self, cache=cache)

    def columns(self, x: Array, edges: Array, nodes: Array) -> Array:
        """[n, num_features] float32 input columns of whole graphs, from their attributes, edges and node indices."""
        if self.cache is not None:
            return self.cache[nodes]
        return np.concatenate([self._attributes(x), self._structure(edges, len(x))], axis=1)

    def renew(self, x: Tensor, edges: Tensor) -> Tensor:
        """[n, num_features] the columns `x`, with the structural ones recomputed from other edges."""
        if not self.num_structural:
            return x
        structure = torch.from_numpy(self._structure(edges.cpu().numpy(), len(x))).to(x)
        return torch.cat([x[:, : -self.num_structural], structure], dim=1)

    def _attributes(self, x: Array) -> Array:
        if x.shape[1] == 0:
            return np.ones((len(x), 1), np.float32)
        if self.scaling == "none":
            return x.astype(np.float32, copy=False)
        parts = []
        if self.scaling != "row":
            parts.append((x - self.mean) / self.scale)
        if self.scaling != "standardise":
            total = x.sum(axis=1, keepdims=True, dtype=np.float64)  # Single precision may overflow.
            parts.append(x / np.maximum(total, 1))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _structure(self, edges: Array, n: int) -> Array:
        columns = [np.empty((n, 0), np.float32)]
        if self.degree:
            degree = np.minimum(np.bincount(edges.reshape(-1), minlength=n), self.degree)
            columns.append(np.eye(self.degree + 1, dtype=np.float32)[degree])
        if self.walk:
            columns.append(walk_columns(edges, n, self.walk))
        return np.concatenate(columns, axis=1)


def walk_columns(edges: Array, n: int, steps: int) -> Array:
    r"""[n, steps] probability that a random walk has returned to its start after 2, 3, …, steps+1 steps.

    diag(P^k) with P = D^-1 A equals diag(S^k) with the symmetric S = D^-1/2 A D^-1/2, and
    diag(S^(i+j)) = Σ (S^i ∘ S^j): half of the powers are enough.
    """
    degree = np.maximum(np.bincount(edges.reshape(-1), minlength=n), 1)
    weight = 1.0 / np.sqrt(degree[edges[0]] * degree[edges[1]])
    both = np.concatenate([edges, edges[::-1]], axis=1)
    s = scipy.sparse.csr_array((np.concatenate([weight, weight]), (both[0], both[1])), shape=(n, n))
    powers, out = [s], np.zeros((n, steps), np.float32)
    for k in range(2, steps + 2):
        half = (k + 1) // 2
        if len(powers) < half:
            powers.append(powers[-1] @ s)
        out[:, k - 2] = (powers[half - 1] * powers[k - half - 1]).sum(axis=1)
    return out


def _mean_and_scale(store: Any, ids: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the attributes over the nodes of some graphs, one block of graphs at a time."""
    if not len(ids):
        raise InputError(f"{store.name}: no graphs to fit the scaling on")
    starts, sizes = store.node_ptr[ids], store.node_ptr[ids + 1] - store.node_ptr[ids]

    def average(centre: Array, power: int) -> Array:
        total = np.zeros(store.x.shape[1])
        for first in range(0, len(ids), _CHUNK):
            x = store.x[ranges(starts[first : first + _CHUNK], sizes[first : first + _CHUNK])]
            total += ((x.astype(np.float64) - centre) ** power).sum(axis=0)
        return total / sizes.sum()

    mean = average(np.zeros(store.x.shape[1]), 1)
    mean += average(mean, 1)  # The sum of large numbers is rounded; that of what is left over it is not.
    std = np.sqrt(average(mean, 2))
    # A column whose spread is rounding error of its precision is constant: it becomes 0, not noise.
    return mean, np.where(std > 8 * np.finfo(store.x.dtype).eps * np.abs(mean), std, 1.0)
