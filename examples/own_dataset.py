"""Use your own graphs, given as PyG `Data`: fit, save, load, embed, and classify the embeddings with scikit-learn.

Each graph is a school class with two circles of friends. Each child has five noisy attributes; the first two hint at
the circle (the class of the node). In half of the graphs friendships stay within the circles, in the other half they do
not (the class of the graph). Attributes or friendships alone do not show which: a model needs both.
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
    """Generate one graph; replace this by code that reads your files."""
    circle = rng.integers(0, 2, rng.integers(12, 25))
    mixed = int(rng.integers(2))
    u, v = np.triu_indices(len(circle), 1)
    friends = rng.random(len(u)) < np.where(circle[u] == circle[v], 0.3, 0.3 if mixed else 0.03)
    x = rng.normal(size=(len(circle), 5))
    x[np.arange(len(circle)), circle] += 1.5
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([u[friends], v[friends]])),
        y=torch.tensor([mixed]),  # The class of the graph.
        node_y=torch.from_numpy(circle),  # The class of each node.
    )


def main() -> dict[str, float]:
    """Fit on 200 graphs and score on 100 others."""
    rng = np.random.default_rng(0)
    graphs = [school_class(rng) for _ in range(300)]
    train, test = graphs[:200], graphs[200:]
    y_train, y_test = ([int(graph.y) for graph in part] for part in (train, test))

    model = same.GraphEncoder(tasks=("gc", "nc", "lp"), width=32, max_epochs=60, seed=0).fit(train)
    scores = {f"predicted, {task}": model.score(test, task=task) for task in ("gc", "nc", "lp")}

    # A saved model is a folder. Loading it needs neither pickle nor the training graphs.
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        loaded = same.GraphEncoder.load(Path(folder, "model"))
    assert np.array_equal(loaded.transform(test), model.transform(test))
    print(f"embeddings: {loaded.transform(test).shape} of nodes, {loaded.graph_embeddings(test).shape} of graphs")

    # Any scikit-learn model can use the embeddings. The mean attributes of a graph are the baseline.
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(loaded.graph_embeddings(train), y_train)
    scores["LogisticRegression, gc"] = classifier.score(loaded.graph_embeddings(test), y_test)
    means = [np.stack([graph.x.mean(dim=0).numpy() for graph in part]) for part in (train, test)]
    scores["LogisticRegression, gc, without edges"] = classifier.fit(means[0], y_train).score(means[1], y_test)

    # Encoder and classifier as one estimator, ready for `cross_val_score` or `GridSearchCV`.
    pipeline = make_pipeline(same.GraphEncoder(width=32, max_epochs=60, output="graphs"), classifier)
    scores["pipeline, gc"] = pipeline.fit(train, y_train).score(test, y_test)
    print("test scores (accuracy; ROC AUC for lp)")
    for name, score in scores.items():
        print(f"  {name:40} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
