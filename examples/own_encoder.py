"""An encoder of your own: any PyG module that is called as `module(x, edge_index)`."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, SAGEConv

import same


class Mixture(nn.Module):
    """A layer that averages neighbours, then one that attends to them; both see what the node itself shows."""

    def __init__(self, columns: int, width: int = 32) -> None:
        super().__init__()
        self.first = SAGEConv(columns, width)
        self.second = GATv2Conv(width, width // 2, heads=2)
        self.skip = nn.Linear(columns, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """[nodes, width], a row a node."""
        h = torch.relu(self.first(x, edge_index))
        return self.second(h, edge_index) + self.skip(x)


def main() -> dict[str, float]:
    """Trains it on the embedded set, beside the same encoder untrained and the one that is built in."""
    graphs = same.graphs.planted(150)
    train, test = graphs[:100], graphs[100:]
    found = {}
    for name, parameters in {
        "own encoder": {"encoder": Mixture},  # Called with the number of columns of the graphs.
        "own encoder, untrained": {"encoder": Mixture, "method": "untrained"},
        "built in": {"encoder": "gcn", "width": 32},
    }.items():
        model = same.SAME(tasks=("nc", "lp"), max_epochs=40, **parameters).fit(train)
        for task in ("nc", "lp"):
            found[f"{name}, {task}"] = model.score(test, task=task)
            print(f"{name:24} {task}  {found[f'{name}, {task}']:.3f}")
    return found


if __name__ == "__main__":
    main()
