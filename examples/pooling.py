"""Choose how the nodes of a graph are pooled, on two sets whose classes hardly show in the mean of the nodes.

In the first set, graphs are cycles of 6 or 12 nodes with random attributes: only the size tells the classes apart. In
the second, graphs are stars of about 200 nodes with random attributes. In one class, a single node has an attribute far
out of the range of the others.
"""

import numpy as np
import torch

import same
from same.graphs import GraphStore
from same.linear import LinearHead
from same.nn import pool_nodes

POOLS = ("mean", "sum", "max", "mean+max", "mean+std+size")


def cycles(rng: np.random.Generator, graphs: int = 300) -> GraphStore:
    """Generate cycles of 6 nodes (class 0) or 12 nodes (class 1)."""
    y = rng.integers(0, 2, graphs)
    sizes = 6 + 6 * y
    nodes, first, size = np.arange(sizes.sum()), np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)
    x = rng.uniform(-1, 1, (len(nodes), 4))
    edges = np.stack([nodes, first + (nodes - first + 1) % size])
    return GraphStore.build("cycles", x=x, sizes=sizes, edge_index=edges, graph_y=y)


def marks(rng: np.random.Generator, graphs: int = 300) -> GraphStore:
    """Generate stars; in class 1, one node of each has 4 as its first attribute."""
    y, sizes = rng.integers(0, 2, graphs), rng.integers(160, 240, graphs)
    first = np.cumsum(sizes) - sizes
    x = rng.uniform(-1, 1, (sizes.sum(), 4))
    x[(first + rng.integers(1, sizes))[y == 1], 0] = 4
    edges = np.stack([np.repeat(first, sizes - 1), np.setdiff1d(np.arange(len(x)), first)])
    return GraphStore.build("marks", x=x, sizes=sizes, edge_index=edges, graph_y=y)


def linear_score(model: same.GraphEncoder, parts: list[GraphStore], pool: str) -> float:
    """Fit a linear head to pooled embeddings of the training graphs, and return its accuracy on the test graphs."""
    rows = []
    for part in parts:
        batch = part.with_inputs(model.trained_.inputs).cut(np.arange(len(part)))
        with torch.no_grad():
            rows.append((pool_nodes(batch, model.model_.encoder(batch), pool).numpy(), part.graph_y))
    train, validation, (x, y) = rows
    head = LinearHead.fit("classes", *train, validation)
    return float(np.mean(head.predict(head.decision(x)) == y))


def main() -> dict[str, float]:
    """Score linear heads on embeddings trained with the mean, and heads that were trained with the encoder."""
    scores = {}
    for store, better, options in (
        (cycles(np.random.default_rng(0)), "sum", {"outer_lr": 0.02, "max_epochs": 40}),
        (marks(np.random.default_rng(0)), "max", {"outer_lr": 0.005, "max_epochs": 20}),
    ):
        # Rows of length 1 would not show how far a node is from the others.
        options |= {"tasks": ("gc",), "layers": 2, "width": 16, "batch_size": 16, "unit_norm": False}
        options["validation"] = np.arange(160, 200)
        models = {pool: same.GraphEncoder(pool=pool, **options).fit(store[:200]) for pool in ("mean", better)}
        for pool in POOLS:
            parts = [store[:160], store[160:200], store[200:]]
            scores[f"{store.name}, linear head, {pool}"] = linear_score(models["mean"], parts, pool)
        for pool, model in models.items():
            scores[f"{store.name}, own head, {pool}"] = model.score(store[200:], task="gc")
    print("test accuracy")
    for name, score in scores.items():
        print(f"  {name:36} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
