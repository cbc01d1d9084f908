"""A task of your own is one class: here, tell whether a node is on a triangle, beside node classification.

A task says what a set must have, which head it wants, how to cut graphs into a support and a target set, and its loss
and score. Everything else, from episodes to saved models, works as for the built-in ones.
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
    """Tell which nodes are on a triangle. The label is in the graphs: it costs nothing."""

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
        """What a probe sees: the embeddings as they are."""
        return h if examples.index is None else h[examples.index]

    def loss(self, output: Tensor, examples: Examples) -> Tensor:
        """Cross-entropy."""
        return F.cross_entropy(output, examples.y)

    def score(self, output: Tensor, examples: Examples) -> float:
        """Accuracy."""
        return float((output.argmax(1) == examples.y).float().mean())


def on_triangle(batch: GraphBatch) -> Tensor:
    """[nodes] 1 where two neighbours of a node are joined, else 0."""
    a = torch.sparse_coo_tensor(batch.edge_index, torch.ones(batch.edge_index.shape[1]), (batch.num_nodes,) * 2)
    paths = (a @ a) * a  # Paths of two steps between nodes that are joined.
    return (torch.sparse.sum(paths, dim=1).to_dense() > 0).long()


def main() -> dict[str, float]:
    """Learns it together with the nodes' classes."""
    graphs = same.graphs.planted(150)
    train, test = graphs[:100], graphs[100:]
    model = same.SAME(tasks=("nc", Triangles), encoder="gin", width=32, degree=8, max_epochs=80).fit(train)
    y = on_triangle(test.cut(np.arange(len(test)))).numpy()
    found = {
        "triangles": model.score(test, task="triangles"),
        "triangles, most common answer": float(max(y.mean(), 1 - y.mean())),
        "nc": model.score(test, task="nc"),
        "nc, most common answer": float(np.bincount(test.node_y).max() / test.num_nodes),
    }
    for name, score in found.items():
        print(f"{name:32} {score:.3f}")
    return found


if __name__ == "__main__":
    main()
