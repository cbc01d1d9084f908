"""New tasks for a trained model: classes of graphs, numbers, and pairs of nodes, from the labels of a hundred graphs.

The model learns to classify nodes and to predict links. It never sees the labels of the three new tasks. Its encoder
stays as it is: a new task is a linear head on the embeddings, which is fitted in a fraction of a second. The same heads
on an untrained encoder show what the training was for.
"""

import tempfile
from pathlib import Path

import numpy as np

import same

Array = np.ndarray


def classes(graphs: same.GraphStore) -> Array:
    """Class of each graph: whether its edges join nodes of the same role, of different roles, or any."""
    return graphs.labels["y"].values


def shares(graphs: same.GraphStore) -> Array:
    """Share of the edges of each graph that join nodes of the same role: a number."""
    u, v = graphs.joint_edges
    graph = np.repeat(np.arange(len(graphs)), np.diff(graphs.edge_ptr))
    equal = np.bincount(graph, graphs.node_y[u] == graphs.node_y[v], len(graphs))
    return equal / np.diff(graphs.edge_ptr)


def same_role(graphs: same.GraphStore) -> tuple[Array, Array]:
    """Random pairs of nodes, and whether both have the same role."""
    rng = np.random.default_rng(0)
    graph = rng.integers(0, len(graphs), 2000)
    u, v = (graphs.node_ptr[graph] + rng.integers(0, np.diff(graphs.node_ptr)[graph]) for _ in range(2))
    return np.stack([u, v]), graphs.node_y[u] == graphs.node_y[v]


def main() -> dict[str, float]:
    """Train once, add three tasks, and score them on graphs that were neither trained on nor labelled."""
    graphs = same.load("planted")
    train, labelled, test = graphs[:240], graphs[:100], graphs[240:]
    pairs, roles = same_role(labelled)
    test_pairs, test_roles = same_role(test)
    scores = {}
    for method in ("esame", "untrained"):
        model = same.GraphEncoder(method=method, tasks=("nc", "lp"), width=64, max_epochs=20).fit(train)
        print(f"{method}:")
        print(" ", model.add_task("pattern", labelled, classes(labelled)))
        print(" ", model.add_task("share", labelled, shares(labelled)))
        print(" ", model.add_task("same_role", labelled, roles, pairs=pairs))
        scores[f"pattern, {method}"] = model.score(test, classes(test), task="pattern")
        scores[f"share, {method}"] = model.score(test, shares(test), task="share")
        scores[f"same_role, {method}"] = model.score(test, test_roles, task="same_role", pairs=test_pairs)
        if method == "esame":
            print("  predicted:", *model.predict(test[:5], task="pattern"))
            with tempfile.TemporaryDirectory() as folder:  # The new tasks are saved with the model.
                model.save(Path(folder, "model"))
                loaded = same.GraphEncoder.load(Path(folder, "model"))
            assert np.array_equal(loaded.predict(test, task="share"), model.predict(test, task="share"))
    print("scores on other graphs (accuracy, R², ROC AUC):")
    for name, score in scores.items():
        print(f"  {name:24} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
