"""What an encoder sees of a node: scaled attributes, its class if shown, and encodings of the edges around it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from same.errors import InputError
from same.graphs.flat import Array, ranges
from same.graphs.labels import Labels, Value

Scaling = Literal["standardise", "row", "both", "none"]
Shown = Literal["none", "input"]

DEGREE_WITHOUT_ATTRIBUTES = 16  # Default cap of the degree encoding of sets without attributes.
_CACHE_BYTES = 2**28
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input columns of an encoder: scaled attributes, node classes if shown, then structural encodings.

    Fit it with `Inputs.fit` and pass it to `GraphStore.with_inputs`. Structural encodings are a function of the
    message-passing edges of a batch alone: a held-out edge never shows in them. Attributes are scaled in float64 and
    cast to float32 at the end. In a set without attributes, every node shows its degree, and a constant 1 unless it
    shows its class.

    Node classes are shown one-hot, and are not scaled. Classes of another set are matched by value. An unknown class,
    and one that no training node has, is a row of zeros.

    Attributes:
        scaling: `standardise` ((x - mean) / std over the training nodes), `row` (x / max(Σx, 1)), `both` side by
            side, or `none`.
        degree: cap of the one-hot degree, whose last column means *cap or more*; 0 for none.
        walk: number of return probabilities of a random walk, after 2, 3, …, walk+1 steps; 0 for none.
        mean: [d] means that `standardise` subtracts.
        scale: [d] standard deviations that it divides by; 1 where a column is constant.
        classes: node classes that the encoder sees, those of the training nodes; None if they are not shown.
        cache: [N, num_features] columns of all nodes of the store that the inputs belong to, if it is small.
    """

    scaling: Scaling
    degree: int
    walk: int
    mean: Array
    scale: Array
    classes: tuple[Value, ...] | None = None
    cache: Array | None = None

    @classmethod
    def fit(
        cls,
        store: Any,
        ids: Array,
        *,
        scaling: Scaling = "standardise",
        degree: int = 0,
        walk: int = 0,
        node_labels: Shown = "none",
    ) -> "Inputs":
        """Fit the inputs to the graphs `ids` of a `GraphStore`, usually the training graphs; see the attributes.

        With `node_labels="input"`, node classes are shown.
        """
        if scaling not in get_args(Scaling):
            raise InputError(f"scaling: {scaling!r} is not one of {', '.join(get_args(Scaling))}")
        if node_labels not in get_args(Shown):
            raise InputError(f"node_labels: {node_labels!r} is not one of {', '.join(get_args(Shown))}")
        if degree < 0 or walk < 0:
            raise InputError(f"degree and walk: must be 0 (none) or more, not {min(degree, walk)}")
        ids, d = np.asarray(ids, dtype=np.int64), store.x.shape[1]
        mean, scale = np.zeros(d), np.ones(d)
        if scaling in ("standardise", "both") and d:
            mean, scale = _mean_and_scale(store, ids)
        classes = _seen_classes(store, ids) if node_labels == "input" else None
        degree = int(degree) or (0 if d else DEGREE_WITHOUT_ATTRIBUTES)
        return cls(scaling, degree, int(walk), mean, scale, classes)

    @property
    def num_features(self) -> int:
        """Number of columns."""
        attributes = len(self.mean) * (2 if self.scaling == "both" else 1)
        return (attributes + len(self.classes or ()) or 1) + self.num_structural

    @property
    def num_structural(self) -> int:
        """Number of structural columns; they come last."""
        return (self.degree + 1 if self.degree else 0) + self.walk

    def for_store(self, store: Any) -> "Inputs":
        """The same inputs, with the columns of a small store computed once."""
        if (d := store.x.shape[1]) != len(self.mean):
            raise InputError(f"{store.name}: its nodes have {d} attributes, the inputs were fitted on {len(self.mean)}")
        labels = None if self.classes is None else _shown_labels(store)
        bare = replace(self, cache=None)
        if store.num_nodes * self.num_features * 4 > _CACHE_BYTES:
            return bare
        cache, edges = np.empty((store.num_nodes, self.num_features), np.float32), store.joint_edges
        for first in range(0, store.num_graphs, _CHUNK):
            last = min(first + _CHUNK, store.num_graphs)
            start, end = store.node_ptr[[first, last]]
            inside = edges[:, store.edge_ptr[first] : store.edge_ptr[last]] - start
            part = None if labels is None else labels.take(slice(start, end))
            cache[start:end] = bare.columns(store.x[start:end], inside, np.arange(start, end), part)
        return replace(self, cache=cache)

    def columns(self, x: Array, edges: Array, nodes: Array, labels: Labels | None = None) -> Array:
        """[n, num_features] float32 input columns of whole graphs, from what they have.

        Args:
            x: [n, d] attributes.
            edges: [2, m] edges that carry messages.
            nodes: [n] indices of the nodes in the store of the cache.
            labels: node labels, where the encoder sees them.
        """
        if self.cache is not None:
            return self.cache[nodes]
        return np.concatenate([self._attributes(x, labels), self._structure(edges, len(x))], axis=1)

    def renew(self, x: Tensor, edges: Tensor) -> Tensor:
        """[n, num_features] the columns `x`, with the structural ones recomputed from other edges."""
        if not self.num_structural:
            return x
        structure = torch.from_numpy(self._structure(edges.cpu().numpy(), len(x))).to(x)
        return torch.cat([x[:, : -self.num_structural], structure], dim=1)

    def _attributes(self, x: Array, labels: Labels | None) -> Array:
        if not x.shape[1] and not self.classes:
            return np.ones((len(x), 1), np.float32)
        parts = [x] if self.scaling == "none" else []
        if self.scaling in ("standardise", "both"):
            parts.append((x - self.mean) / self.scale)
        if self.scaling in ("row", "both"):
            total = x.sum(axis=1, keepdims=True, dtype=np.float64)  # Single precision may overflow.
            parts.append(x / np.maximum(total, 1))
        if self.classes and labels is not None:
            parts.append(_one_hot(labels, self.classes))
        return np.concatenate(parts, axis=1).astype(np.float32, copy=False)

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

    def average(centre: Array, power: int) -> Array:
        total, count = np.zeros(store.x.shape[1]), 0
        for nodes in _blocks(store, ids):
            total += ((store.x[nodes].astype(np.float64) - centre) ** power).sum(axis=0)
            count += len(nodes)
        return total / count

    mean = average(np.zeros(store.x.shape[1]), 1)
    mean += average(mean, 1)  # The sum of large numbers is rounded; that of what is left over it is not.
    std = np.sqrt(average(mean, 2))
    # A column whose spread is rounding error of its precision is constant: it becomes 0, not noise.
    return mean, np.where(std > 8 * np.finfo(store.x.dtype).eps * np.abs(mean), std, 1.0)


def _blocks(store: Any, ids: Array) -> Iterator[Array]:
    """Nodes of some graphs, one block of graphs at a time."""
    if not len(ids):
        raise InputError(f"{store.name}: no graphs to fit the inputs on")
    for first in range(0, len(ids), _CHUNK):
        part = ids[first : first + _CHUNK]
        yield ranges(store.node_ptr[part], store.node_ptr[part + 1] - store.node_ptr[part])


def _shown_labels(store: Any) -> Labels:
    """The node labels that an encoder sees; refused unless they are classes."""
    labels: Labels | None = store.column("node")
    if labels is None or labels.classes is None:
        what = "its nodes have none" if labels is None else "its node labels are floats"
        hint = "give the nodes whole numbers, booleans or text"
        raise InputError(f"{store.name}: node_labels=input shows node classes to the encoder, and {what}; {hint}")
    return labels


def _seen_classes(store: Any, ids: Array) -> tuple[Value, ...]:
    """The node classes that occur in some graphs."""
    labels, seen = _shown_labels(store), set[int]()
    for nodes in _blocks(store, ids):
        part = labels.take(nodes)
        seen.update(np.unique(part.y if part.known is None else part.y[part.known]).tolist())
    return tuple(value for code, value in enumerate(labels.classes or ()) if code in seen)


def _one_hot(labels: Labels, classes: tuple[Value, ...]) -> Array:
    """[n, c] whether each entry has each of the classes, matched by value."""
    codes = {value: code for code, value in enumerate(labels.classes or ())}
    hot: Array = labels.y[:, None] == np.array([codes.get(value, -2) for value in classes])
    return hot if labels.known is None else hot & labels.known[:, None]
