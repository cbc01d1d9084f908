"""Algorithms 1, 2 and 4 as a competent user of PyTorch Geometric would write them, to compare with.

They use lists of `Data`, `Batch.from_data_list`, `GCNConv`, Python loops over graphs, and an inner loop with
`autograd.grad(create_graph=True)` or TorchOpt's differentiable SGD. The model has the layers, widths, heads, losses and
shares of support and target of the package.
"""

import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_mean_pool
from torch_geometric.utils import negative_sampling


class Net(nn.Module):
    """The encoder and three heads of the paper's Appendix C."""

    def __init__(self, columns: int, width: int, graph_classes: int, node_classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList([GCNConv(columns, width), GCNConv(width, width), GCNConv(width, width)])
        self.heads = nn.ModuleDict(
            {
                "gc": nn.ModuleList([nn.Linear(width, width), nn.Linear(width, graph_classes)]),
                "nc": nn.ModuleList([nn.Linear(width, node_classes)]),
                "lp": nn.ModuleList([nn.Linear(width, width), nn.Linear(2 * width, 1)]),
            }
        )

    def encode(self, batch: Data) -> Tensor:
        """Node embeddings."""
        h = batch.x
        for conv in self.convs:
            z = F.relu(conv(h, batch.edge_index))
            h = F.normalize(z + h if z.shape == h.shape else z)
        return h

    def forward(self, task: str, batch: Data, which: str, h: Tensor | None = None) -> Tensor:
        """Loss of a task on its support set, its target set or all its examples."""
        h = self.encode(batch) if h is None else h
        head = self.heads[task]
        if task == "gc":
            return F.cross_entropy(head[1](global_mean_pool(F.relu(head[0](h)), batch.batch)), batch.y)
        if task == "nc":
            chosen = batch[which] if which in batch else slice(None)
            return F.cross_entropy(head[0](h[chosen]), batch.node_y[chosen])
        pairs, label = batch[f"{which}_pairs"], batch[f"{which}_label"]
        z = F.relu(head[0](h))
        u, v = z[pairs[0]], z[pairs[1]]
        return F.binary_cross_entropy_with_logits(head[1](torch.cat([(u - v).abs(), u * v], 1))[:, 0], label)


def cut_nodes(data: Data) -> Data:
    """30 % of the nodes, taken from each class in turn, as support set; the others as target set."""
    by_class = [(data.node_y == c).nonzero()[:, 0].tolist() for c in data.node_y.unique()]
    for members in by_class:
        random.shuffle(members)
    chosen: list[int] = []
    wanted = max(1, round(0.3 * data.num_nodes))
    while len(chosen) < wanted:
        for members in by_class:
            if members and len(chosen) < wanted:
                chosen.append(members.pop())
    support = torch.zeros(data.num_nodes, dtype=torch.bool)
    support[chosen] = True
    cut = data.clone()
    cut.support, cut.target = support, ~support
    return cut


def _labelled(data: Data, which: str, positive: Tensor, negative: Tensor) -> None:
    data[f"{which}_pairs"] = torch.cat([positive, negative], 1)
    data[f"{which}_label"] = torch.cat([torch.ones(positive.shape[1]), torch.zeros(negative.shape[1])])


class PairData(Data):
    """Graph whose pairs of nodes are renumbered like edges when graphs are batched."""

    def __inc__(self, key: str, value: object, *args: object, **kwargs: object) -> object:
        """Treat pairs like edges."""
        return self.num_nodes if key.endswith("_pairs") else super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: object, *args: object, **kwargs: object) -> object:
        """Treat pairs like edges."""
        return 1 if key.endswith("_pairs") else super().__cat_dim__(key, value, *args, **kwargs)


def cut_edges(data: Data, *, episode: bool) -> Data:
    """A fifth of the edges, removed, as target set, the others as support set; as many non-edges, cut alike."""
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    order = torch.randperm(edges.shape[1])
    first = max(1, round(0.2 * edges.shape[1]))
    target, support = edges[:, order[:first]], edges[:, order[first:]]
    cut = PairData(x=data.x, edge_index=torch.cat([support, support.flip(0)], 1))
    wanted = edges.shape[1] if episode else first
    negative = negative_sampling(data.edge_index, data.num_nodes, wanted)
    part = max(1, round(0.2 * negative.shape[1])) if episode else wanted
    _labelled(cut, "target", target, negative[:, :part])
    if episode:
        _labelled(cut, "support", support, negative[:, part:])
    return cut


def episode(graphs: list[Data]) -> list[tuple[str, Data, Data]]:
    """Algorithm 4: (task, support, target) for each task, each from a third of the graphs."""
    graphs = random.sample(graphs, len(graphs))
    third = len(graphs) // 3
    gc, nc, lp = graphs[:third], graphs[third : 2 * third], graphs[2 * third :]
    first = round(0.6 * len(gc))
    nodes = Batch.from_data_list([cut_nodes(data) for data in nc])
    links = Batch.from_data_list([cut_edges(data, episode=True) for data in lp])
    return [
        ("gc", Batch.from_data_list(gc[:first]), Batch.from_data_list(gc[first:])),
        ("nc", nodes, nodes),
        ("lp", links, links),
    ]


def outer_loss(
    net: Net, parts: list[tuple[str, Data, Data]], *, adapt_encoder: bool, once: bool = False, lr: float = 0.1
) -> Tensor:
    """Algorithm 1: sum over tasks of the loss after one inner step.

    Args:
        net: model to adapt.
        parts: (task, support, target) for each task.
        adapt_encoder: whether to adapt the encoder too (iSAME), or the head alone (eSAME).
        once: for eSAME, whether to encode each graph once: embeddings do not change in the inner loop, and support and
            target set of nc and lp have the same graphs.
        lr: learning rate of the inner loop.
    """
    total = torch.zeros(())
    for task, support, target in parts:
        h = net.encode(support) if once else None
        again = (h if target is support else net.encode(target)) if once else None
        names = ("convs.", f"heads.{task}.") if adapt_encoder else (f"heads.{task}.",)
        params = {name: p for name, p in net.named_parameters() if name.startswith(names)}
        loss = functional_call(net, params, (task, support, "support", h))
        gradients = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        adapted = {name: p - lr * g for (name, p), g in zip(params.items(), gradients, strict=True)}
        total = total + functional_call(net, adapted, (task, target, "target", again))
    return total


def outer_loss_torchopt(
    net: Net, parts: list[tuple[str, Data, Data]], *, adapt_encoder: bool, lr: float = 0.1
) -> Tensor:
    """Algorithm 1 with TorchOpt's differentiable SGD as the inner loop."""
    import torchopt

    total = torch.zeros(())
    for task, support, target in parts:
        adapted = nn.ModuleList([net.convs, net.heads[task]]) if adapt_encoder else net.heads[task]
        before = torchopt.extract_state_dict(adapted, by="reference")
        torchopt.MetaSGD(adapted, lr=lr).step(net(task, support, "support"))
        total = total + net(task, target, "target")
        torchopt.recover_state_dict(adapted, before)
    return total


def classical_loss(net: Net, graphs: list[Data]) -> Tensor:
    """Algorithm 2: sum of the losses of the three tasks on all graphs; a copy without target edges serves links."""
    whole = Batch.from_data_list(graphs)
    thinned = Batch.from_data_list([cut_edges(data, episode=False) for data in graphs])
    h = net.encode(whole)
    return net("gc", whole, "all", h) + net("nc", whole, "all", h) + net("lp", thinned, "target")
