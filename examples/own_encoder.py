"""Your own encoder: any PyG module that is called as `module(x, edge_index)`."""

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, SAGEConv

import same


class Mixture(nn.Module):
    """A SAGE layer, then an attention layer, with a skip connection from the input.

    Args:
        columns: number of input columns.
        width: width of the embeddings.
    """

    def __init__(self, columns: int, width: int = 32) -> None:
        super().__init__()
        self.first = SAGEConv(columns, width)
        self.second = GATv2Conv(width, width // 2, heads=2)
        self.skip = nn.Linear(columns, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the [nodes, width] embeddings."""
        h = torch.relu(self.first(x, edge_index))
        return self.second(h, edge_index) + self.skip(x)


def main() -> dict[str, float]:
    """Train the encoder, and compare its embeddings with those of the same encoder untrained and of a built-in one."""
    graphs = same.load("planted")
    train, test = graphs[:240], graphs[240:]
    scores = {}
    for name, parameters in {
        "own encoder": {"encoder": Mixture},  # Called with the number of input columns.
        "own encoder, untrained": {"encoder": Mixture, "method": "untrained"},
        "built in": {"encoder": "gcn", "width": 32},
    }.items():
        model = same.GraphEncoder(tasks=("nc", "lp"), max_epochs=30, **parameters).fit(train)
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        probe.fit(model.transform(train), train.node_y)
        scores[f"{name}, nc"] = probe.score(model.transform(test), test.node_y)
        if "method" not in parameters:  # An untrained model has no head of its own.
            scores[f"{name}, lp, own head"] = model.score(test, task="lp", head="own")
    for name, score in scores.items():
        print(f"{name:28} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
