"""Your own graphs, as PyG `Data`: fit, save, load, embed, and classify the embeddings with scikit-learn.

Each graph is a school class of two circles of friends. A child shows five noisy numbers, the first two of which hint at
its circle (the node's class). In half of the graphs the circles keep to themselves, in the others they mix (the graph's
class). To tell which, one has to see children and friendships together.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

import same


def school_class(rng: np.random.Generator) -> Data:
    """One graph, as you would make it from your own files."""
    circle = rng.integers(0, 2, rng.integers(12, 25))
    mixed = int(rng.integers(2))
    u, v = np.triu_indices(len(circle), 1)
    friends = rng.random(len(u)) < np.where(circle[u] == circle[v], 0.3, 0.3 if mixed else 0.03)
    x = rng.normal(size=(len(circle), 5))
    x[np.arange(len(circle)), circle] += 1.5
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([u[friends], v[friends]])),
        y=torch.tensor([mixed]),  # One class a graph …
        node_y=torch.from_numpy(circle),  # … and one a node.
    )


def main() -> dict[str, float]:
    """Fits on 200 graphs, tests on 100 others."""
    rng = np.random.default_rng(0)
    graphs = [school_class(rng) for _ in range(300)]
    train, test = graphs[:200], graphs[200:]
    y_train, y_test = ([int(graph.y) for graph in part] for part in (train, test))

    model = same.SAME(tasks=("gc", "nc", "lp"), width=32, max_epochs=60, seed=0)
    model.fit(train)
    found = {f"own head, {task}": model.score(test, task=task) for task in ("gc", "nc", "lp")}

    # A model is a folder of two files. Neither pickle nor the training graphs are needed to use it.
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        loaded = same.SAME.load(Path(folder, "model"))
    assert np.array_equal(loaded.transform(test), model.transform(test))
    print(f"embeddings: {loaded.transform(test).shape} of nodes, {loaded.graph_embeddings(test).shape} of graphs")

    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(loaded.graph_embeddings(train), y_train)
    found["LogisticRegression, gc"] = classifier.score(loaded.graph_embeddings(test), y_test)
    raw = [np.stack([graph.x.mean(dim=0).numpy() for graph in part]) for part in (train, test)]
    found["LogisticRegression, gc, without edges"] = classifier.fit(raw[0], y_train).score(raw[1], y_test)

    # The same as one scikit-learn estimator, which `cross_val_score` and `GridSearchCV` take as well.
    pipeline = make_pipeline(same.SAME(width=32, max_epochs=60, output="graphs"), classifier)
    found["pipeline, gc"] = pipeline.fit(train, y_train).score(test, y_test)
    for name, score in found.items():
        print(f"{name:40} {score:.3f}")
    return found


if __name__ == "__main__":
    main()
