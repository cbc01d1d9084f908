"""The synthetic set: graph classes, node classes and edges are planted in structure and noisy features."""

from collections.abc import Iterator

import numpy as np

from same.graphs.flat import pointers, ranges
from same.graphs.labels import Labels
from same.graphs.store import GraphStore
from same.seeding import stream, stream_seed

_ROLES = 3
_WIRING = ("alike", "unlike", "any")


def planted(graphs: int = 300, seed: int = 0) -> GraphStore:
    """Generate a set of graphs in which every task needs both features and structure.

    Each graph has 16 to 32 nodes, a wiring (the graph class: edges join nodes *alike*, *unlike* or *any*) and a sign.
    Each node has one of three roles (the node class; role c is 2.5 times as common in class c) and an angle on a
    circle. The probability of an edge falls with the distance on the circle and depends on roles and wiring:

        p(u, v) = min(1, 2 · w · ((1 + cos(a_u − a_v)) / 2)^8),   w = 0.85 wanted, 0.15 unwanted, 0.5 for *any*

    A node has 24 attributes: noise of standard deviation 0.7, plus 1.4 · (sign of its graph) in the column of its role,
    plus 0.4 in a second column of its role, plus 0.56 · (cos a, sin a). So roles show mostly in a product that no
    linear model of the attributes sees, neighbours have similar angles and help to estimate them, and the wiring shows
    in the edges only.

    Args:
        graphs: number of graphs.
        seed: seed of the set; other seeds give other sets from the same distribution.
    """
    rng = stream(seed, "planted")
    sizes = rng.integers(16, 33, graphs)
    graph = np.repeat(np.arange(graphs), sizes)
    n = len(graph)
    wiring = rng.permutation(np.arange(graphs) % len(_WIRING))
    sign = rng.choice([-1.0, 1.0], graphs)

    shares = (1 + 1.5 * np.eye(_ROLES)) / (_ROLES + 1.5)
    role = (rng.random((n, 1)) > shares.cumsum(axis=1)[wiring[graph], :-1]).sum(axis=1)
    angle = rng.uniform(0, 2 * np.pi, n)

    later = pointers(sizes)[graph + 1] - 1 - np.arange(n)
    u, v = np.repeat(np.arange(n), later), ranges(np.arange(n) + 1, later)
    alike = role[u] == role[v]
    wanted = np.stack([np.where(alike, 0.85, 0.15), np.where(alike, 0.15, 0.85), np.full(len(u), 0.5)])
    nearness = ((1 + np.cos(angle[u] - angle[v])) / 2) ** 8
    joined = rng.random(len(u)) < 2 * wanted[wiring[graph[u]], np.arange(len(u))] * nearness

    x = rng.normal(scale=0.7, size=(n, 24))
    x[np.arange(n), role] += 1.4 * sign[graph]
    x[np.arange(n), _ROLES + role] += 0.4
    x[:, 2 * _ROLES : 2 * _ROLES + 2] += 0.56 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return GraphStore.build(
        "planted",
        x=x.astype(np.float32),
        sizes=sizes,
        edge_index=np.stack([u[joined], v[joined]]),
        graph_y=Labels("graph", wiring.astype(np.int32), _WIRING),
        node_y=Labels("node", role.astype(np.int32), tuple(f"role {c}" for c in range(_ROLES))),
    )


def planted_parts(graphs: int, seed: int = 0, part: int = 10_000) -> Iterator[GraphStore]:
    """Generate a large set like `planted` in parts of `part` graphs, for `write_store`: only one part is in memory."""
    for number, start in enumerate(range(0, graphs, part)):
        yield planted(min(part, graphs - start), stream_seed(seed, "planted", number))
