"""Add a task: predict which nodes lie on a triangle, together with node classification.

A task is one class. It says what a set of graphs must have, which head it needs, how to cut graphs into a support and a
target set, and its loss and score. Episodes, training, saving and loading then work as for the built-in tasks.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import same
from same.graphs import GraphBatch, GraphStore
from same.nn import NodeHead
from same.tasks import Examples, GraphTask


class Triangles(GraphTask):
    """Predict whether a node lies on a triangle. The labels come from the edges, so no annotation is needed."""

    name = "triangles"
    kind = "classes"

    def missing(self, store: GraphStore) -> str | None:
        """Edges are needed."""
        return None if store.num_edges else "edges"

    def head(self, width: int) -> nn.Module:
        """One linear layer on the embedding of a node."""
        return NodeHead(width, 2)

    def cut(self, store: GraphStore, ids: np.ndarray, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """Support and target are different nodes of the same graphs, half each."""
        batch = store.cut(ids)
        order = torch.from_numpy(rng.permutation(batch.num_nodes))
        y, half = on_triangle(batch), batch.num_nodes // 2
        support, target = order[:half], order[half:]
        return Examples(batch, y[support], support), Examples(batch, y[target], target)

    def examples(self, batch: GraphBatch, rng: np.random.Generator) -> Examples:
        """All nodes."""
        return Examples(batch, on_triangle(batch))

    def features(self, h: Tensor, examples: Examples) -> Tensor:
        """Input of a linear probe: the embeddings as they are."""
        return h if examples.index is None else h[examples.index]

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy."""
        return F.cross_entropy(output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy."""
        return float((output.argmax(1) == examples.y).float().mean())


def on_triangle(batch: GraphBatch) -> Tensor:
    """[nodes] 1 where two neighbours of a node are linked, else 0."""
    a = torch.sparse_coo_tensor(batch.edge_index, torch.ones(batch.edge_index.shape[1]), (batch.num_nodes,) * 2)
    paths = (a @ a) * a  # Paths of two steps between linked nodes.
    return (torch.sparse.sum(paths, dim=1).to_dense() > 0).long()


def main() -> dict[str, float]:
    """Train both tasks at once and compare each with the most frequent class."""
    graphs = same.graphs.planted(150)
    train, test = graphs[:100], graphs[100:]
    model = same.GraphEncoder(tasks=("nc", Triangles), encoder="gin", width=32, degree=8, max_epochs=80).fit(train)
    y = on_triangle(test.cut(np.arange(len(test)))).numpy()
    scores = {
        "triangles": model.score(test, task="triangles"),
        "triangles, most common answer": float(max(y.mean(), 1 - y.mean())),
        "nc": model.score(test, task="nc"),
        "nc, most common answer": float(np.bincount(test.node_y).max() / test.num_nodes),
    }
    print("test accuracy")
    for name, score in scores.items():
        print(f"  {name:32} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
