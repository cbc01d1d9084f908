"""What an encoder sees of a node: its attributes, scaled, and what the edges around it look like."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from same.errors import InputError

if TYPE_CHECKING:
    from same.graphs.store import GraphStore

Array = np.ndarray
Scaling = Literal["standardise", "row", "both", "none"]

DEGREE_WITHOUT_ATTRIBUTES = 16
"""The cap of the degree encoding of sets that have no attributes, unless another is asked for."""

_CACHE_BYTES = 2**28
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Inputs:
    """The columns an encoder sees: scaled attributes, then structural encodings of the edges that carry messages.

    Make one with `Inputs.fit`; give it to a store with `GraphStore.with_inputs`. Structural encodings are a function of
    a batch's message-carrying edges alone: an edge that is held out never shows in them.

    Attributes:
        scaling: `standardise` ((x - mean) / std over the training nodes), `row` (x / max(Σx, 1)), `both`, side by
            side, or `none`.
        degree: one-hot degree, the last column meaning *this many or more*; 0 for none.
        walk: probabilities that a random walk is back after 2, 3, …, walk+1 steps; 0 for none.
        mean: [d] what `standardise` subtracts.
        scale: [d] what `standardise` divides by; 1 where a column is constant.

    A set without attributes shows a constant 1 and its degree.
    """

    scaling: Scaling
    degree: int
    walk: int
    mean: Array
    scale: Array
    cache: Array | None = None

    @classmethod
    def fit(
        cls, store: "GraphStore", ids: Array, *, scaling: Scaling = "standardise", degree: int = 0, walk: int = 0
    ) -> "Inputs":
        """Inputs whose scaling is fitted on some graphs of a store, which should be the training graphs.

        >>> from same.graphs.planted import planted
        >>> store = planted(graphs=20)
        >>> store = store.with_inputs(Inputs.fit(store, np.arange(14), degree=4))
        >>> store.cut([0]).x.shape[1] == store.x.shape[1] + 5
        True
        """
        if scaling not in get_args(Scaling):
            raise InputError(f"scaling: {scaling!r} is not one of {', '.join(get_args(Scaling))}")
        if degree < 0 or walk < 0:
            raise InputError(f"degree and walk: must be 0 (none) or more, not {min(degree, walk)}")
        d = store.x.shape[1]
        if d == 0:
            degree = degree or DEGREE_WITHOUT_ATTRIBUTES
        mean, scale = np.zeros(d), np.ones(d)
        if scaling in ("standardise", "both") and d:
            mean, scale = _mean_and_scale(store, np.asarray(ids, dtype=np.int64))
        return cls(scaling, int(degree), int(walk), mean, scale)

    @property
    def num_features(self) -> int:
        """How many columns come out."""
        return max(len(self.mean), 1) * (2 if self.scaling == "both" and len(self.mean) else 1) + self.num_structural

    @property
    def num_structural(self) -> int:
        """How many of them, the last ones, are structural encodings."""
        return (self.degree + 1 if self.degree else 0) + self.walk

    def for_store(self, store: "GraphStore") -> "Inputs":
        """The same inputs, with the columns of a store that is not too large computed once."""
        if store.x.shape[1] != len(self.mean):
            found, fitted = store.x.shape[1], len(self.mean)
            raise InputError(f"{store.name}: its nodes have {found} attributes, the inputs were fitted on {fitted}")
        bare = replace(self, cache=None)
        if store.num_nodes * self.num_features * 4 > _CACHE_BYTES:
            return bare
        plain, cache = replace(store, inputs=bare), np.empty((store.num_nodes, self.num_features), np.float32)
        for start in range(0, store.num_graphs, _CHUNK):
            stop = min(start + _CHUNK, store.num_graphs)
            cache[store.node_ptr[start] : store.node_ptr[stop]] = plain.cut(np.arange(start, stop)).x.numpy()
        return replace(self, cache=cache)

    def columns(self, x: Array, edges: Array, nodes: Array) -> Array:
        """[n, num_features] the columns of the nodes of whole graphs.

        Args:
            x: [n, d] their attributes.
            edges: [2, m] all of their edges.
            nodes: [n] their places in the store.
        """
        if self.cache is not None:
            return self.cache[nodes]
        return np.concatenate([self._attributes(x), self._structure(edges, len(x))], axis=1)

    def renew(self, x: Tensor, edges: Tensor) -> Tensor:
        """[n, num_features] the columns `x` with the structural ones computed anew from other edges."""
        if not self.num_structural:
            return x
        structure = torch.from_numpy(self._structure(edges.cpu().numpy(), len(x))).to(x)
        return torch.cat([x[:, : -self.num_structural], structure], dim=1)

    def _attributes(self, x: Array) -> Array:
        if x.shape[1] == 0:
            return np.ones((len(x), 1), np.float32)
        if self.scaling == "none":
            return x
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
            columns.append(degree_columns(edges, n, self.degree))
        if self.walk:
            columns.append(walk_columns(edges, n, self.walk))
        return np.concatenate(columns, axis=1)


def degree_columns(edges: Array, n: int, cap: int) -> Array:
    """[n, cap+1] the degree of each node, one-hot; the last column means *cap or more*.

    >>> degree_columns(np.array([[0, 0, 0], [1, 2, 3]]), 4, 2).argmax(1)
    array([2, 1, 1, 1])
    """
    degree = np.minimum(np.bincount(edges.reshape(-1), minlength=n), cap)
    return np.eye(cap + 1, dtype=np.float32)[degree]


def walk_columns(edges: Array, n: int, steps: int) -> Array:
    r"""[n, steps] the probability that a random walk is back at its start after 2, 3, …, steps+1 steps.

    diag(P^k) with P = D^-1 A equals diag(S^k) with the symmetric S = D^-1/2 A D^-1/2, and so
    diag(S^(i+j)) = Σ (S^i ∘ S^j): half of the powers are enough.

    >>> walk_columns(np.array([[0, 1], [1, 2]]), 3, 2)
    array([[0.5, 0. ],
           [1. , 0. ],
           [0.5, 0. ]], dtype=float32)
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


def _mean_and_scale(store: "GraphStore", ids: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the attributes over the nodes of some graphs, a block of graphs at a time."""
    if not len(ids):
        raise InputError(f"{store.name}: no graphs to fit the scaling on")
    plain = replace(store, inputs=None)

    def total(of: "np.ufunc | object") -> Array:
        blocks = (plain.cut(ids[i : i + _CHUNK]).x.numpy().astype(np.float64) for i in range(0, len(ids), _CHUNK))
        return sum((of(block).sum(axis=0) for block in blocks), np.zeros(store.x.shape[1]))  # type: ignore[operator]

    count = int((store.node_ptr[ids + 1] - store.node_ptr[ids]).sum())
    mean = total(lambda x: x) / count
    std = np.sqrt(total(lambda x: (x - mean) ** 2) / count)
    # A column whose spread is rounding error is constant: it becomes 0, not noise.
    return mean, np.where(std > 1e-7 * np.abs(mean), std, 1.0)
