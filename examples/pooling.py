"""How the nodes of a graph are pooled, on two sets whose classes hardly show in the mean of the nodes.

In the first set, graphs are cycles of 6 or 12 nodes with random attributes: only the size tells the classes apart. In
the second, graphs are stars of about 200 nodes with random attributes. In one class, a single node has an attribute far
out of the range of the others.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import same
from same.graphs import GraphStore


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


def main() -> dict[str, float]:
    """Score a classifier of the means, the linear heads that `predict` uses, and heads that learned a pooling."""
    scores = {}
    for store, better, options in (
        (cycles(np.random.default_rng(0)), "sum", {"outer_lr": 0.02, "max_epochs": 40}),
        (marks(np.random.default_rng(0)), "max", {"outer_lr": 0.005, "max_epochs": 20}),
    ):
        train, test = store[:200], store[200:]
        # Rows of length 1 would not show how far a node is from the others.
        options |= {"tasks": ("gc",), "layers": 2, "width": 16, "batch_size": 16, "unit_norm": False}
        models = {pool: same.GraphEncoder(pool=pool, validation=0.2, **options).fit(train) for pool in ("mean", better)}
        model = models["mean"]
        means = make_pipeline(StandardScaler(), LogisticRegression()).fit(model.graph_embeddings(train), train.graph_y)
        scores[f"{store.name}, logistic regression of the means"] = means.score(
            model.graph_embeddings(test), test.graph_y
        )
        chosen = model.trained_.linear["gc"].pool  # By the loss on validation graphs.
        scores[f"{store.name}, linear head, {chosen}"] = model.score(test, task="gc")
        for pool, each in models.items():
            scores[f"{store.name}, own head, {pool}"] = each.score(test, task="gc", head="own")
    print("test accuracy")
    for name, score in scores.items():
        print(f"  {name:42} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
