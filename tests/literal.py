"""The paper's algorithms as they are printed: slow, with loops over graphs and dense matrices."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from same.episodes import Episode, Part, to_device
from same.graphs.store import GraphStore
from same.tasks import Examples

# --- Algorithm 4 -----------------------------------------------------------------------------------------------------


def graph(store: GraphStore, g: int) -> dict:
    """One graph as a dictionary of plain values."""
    nodes = slice(store.node_ptr[g], store.node_ptr[g + 1])
    edges = store.edges[:, store.edge_ptr[g] : store.edge_ptr[g + 1]].T.tolist()
    return {
        "id": int(g),
        "x": torch.from_numpy(np.array(store.x[nodes])).double(),
        "edges": [tuple(edge) for edge in edges],
        "graph_y": int(store.graph_y[g]),
        "node_y": store.node_y[nodes].tolist(),
    }


def part_of(count: int, share: float) -> int:
    """A rounded share of a count; of two or more, at least 1 and never all."""
    rounded = math.floor(share * count + 0.5)
    return rounded if count < 2 else min(max(rounded, 1), count - 1)


def cut_gc(graphs: list[dict], rng) -> tuple[list[dict], list[dict]]:
    order = rng.permutation(len(graphs)).tolist()
    first = part_of(len(graphs), 0.6)
    return [graphs[i] for i in order[:first]], [graphs[i] for i in order[first:]]


def cut_nc(graphs: list[dict], rng) -> tuple[list[dict], list[dict]]:
    support, target = [], []
    for g in graphs:
        size = part_of(len(g["node_y"]), 0.3)
        per_class = {c: [v for v, y in enumerate(g["node_y"]) if y == c] for c in set(g["node_y"])}
        chosen: list[int] = []
        while len(chosen) < size:
            classes = [c for c in per_class if per_class[c]]
            for c in rng.permutation(classes).tolist():
                if len(chosen) < size:
                    chosen.append(per_class[c].pop(rng.integers(len(per_class[c]))))
        support.append({**g, "labelled_nodes": sorted(chosen)})
        target.append({**g, "labelled_nodes": [v for v in range(len(g["node_y"])) if v not in chosen]})
    return support, target


def cut_lp(graphs: list[dict], rng) -> tuple[list[dict], list[dict]]:
    support, target = [], []
    for g in graphs:
        n, edges = len(g["node_y"]), g["edges"]
        others = [(u, v) for u in range(n) for v in range(u + 1, n) if (u, v) not in edges]
        negative = [others[i] for i in rng.permutation(len(others))[: len(edges)]]
        second = part_of(len(negative), 0.2)
        removed = {edges[i] for i in rng.permutation(len(edges))[: part_of(len(edges), 0.2)].tolist()}
        remaining = [edge for edge in edges if edge not in removed]
        thinner = {**g, "edges": remaining}
        support.append({**thinner, "positive": remaining, "negative": negative[second:]})
        target.append({**thinner, "positive": sorted(removed), "negative": negative[:second]})
    return support, target


CUTS = {"gc": cut_gc, "nc": cut_nc, "lp": cut_lp}

# --- The model of Appendix C -----------------------------------------------------------------------------------------


def encode(p: dict, g: dict, unit_norm: bool) -> torch.Tensor:
    n = len(g["x"])
    a = torch.eye(n, dtype=torch.float64)
    for u, v in g["edges"]:
        a[u, v] = a[v, u] = 1
    d = torch.diag(a.sum(1) ** -0.5)
    a = d @ a @ d
    h = g["x"]
    for i in range(3):
        z = torch.relu(a @ h @ p[f"encoder.layers.{i}.weight"] + p[f"encoder.layers.{i}.bias"])
        h = z if i == 0 else z + h
        if unit_norm:
            h = h / torch.sqrt((h * h).sum(1, keepdim=True) + 1e-12)
    return h


def pooled(h: torch.Tensor, sizes: list[int], pool: str) -> torch.Tensor:
    """Each pooling as its definition says: one row for each graph of so many nodes."""
    rows, start = [], 0
    for n in sizes:
        nodes, start = [h[v] for v in range(start, start + n)], start + n
        mean, largest = sum(nodes) / n, nodes[0]
        for row in nodes:
            largest = torch.where(row > largest, row, largest)
        kinds = {
            "mean": mean,
            "sum": sum(nodes),
            "max": largest,
            "std": torch.sqrt(sum((row - mean) ** 2 for row in nodes) / n + 1e-8),
            "size": torch.tensor([math.log(n)], dtype=h.dtype),
        }
        rows.append(torch.cat([kinds[kind] for kind in pool.split("+")]))
    return torch.stack(rows)


def loss(p: dict, task: str, graphs: list[dict], unit_norm: bool, pair: str) -> torch.Tensor:
    outputs, labels = [], []
    for g in graphs:
        h = encode(p, g, unit_norm)
        if task == "gc":
            h = torch.relu(h @ p["heads.gc.node.weight"].T + p["heads.gc.node.bias"]).mean(0)
            outputs.append(h @ p["heads.gc.out.weight"].T + p["heads.gc.out.bias"])
            labels.append(g["graph_y"])
        elif task == "nc":
            for v in g["labelled_nodes"]:
                outputs.append(h[v] @ p["heads.nc.out.weight"].T + p["heads.nc.out.bias"])
                labels.append(g["node_y"][v])
        else:
            h = torch.relu(h @ p["heads.lp.node.weight"].T + p["heads.lp.node.bias"])
            for y, pairs in ((1.0, g["positive"]), (0.0, g["negative"])):
                for u, v in pairs:
                    pair_of = [h[u], h[v]] if pair == "concat" else [(h[u] - h[v]).abs(), h[u] * h[v]]
                    outputs.append(torch.cat(pair_of) @ p["heads.lp.out.weight"][0] + p["heads.lp.out.bias"][0])
                    labels.append(y)
    if task == "lp":
        probability = torch.sigmoid(torch.stack(outputs))
        y = torch.tensor(labels, dtype=torch.float64)
        return -(y * probability.log() + (1 - y) * (1 - probability).log()).mean()
    return -F.softmax(torch.stack(outputs), 1).log()[range(len(labels)), labels].mean()


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------


def outer_loss(theta: dict, episode: dict, variant: str, alpha: float, steps: int = 1, **shape) -> torch.Tensor:
    """One pass through the outer loop's body, up to UPDATE. `episode` has (support, target) for each task."""
    o_loss = torch.zeros((), dtype=torch.float64)
    for t, (support, target) in episode.items():
        adapted = dict(theta)
        names = [n for n in theta if n.startswith(f"heads.{t}.") or (variant == "isame" and n.startswith("encoder."))]
        for _ in range(steps):
            i_loss = loss(adapted, t, support, **shape)
            gradients = torch.autograd.grad(i_loss, [adapted[n] for n in names], create_graph=True)
            adapted |= {n: adapted[n] - alpha * g for n, g in zip(names, gradients, strict=True)}
        o_loss = o_loss + loss(adapted, t, target, **shape)
    return o_loss


# --- Algorithms 2 and 3 ----------------------------------------------------------------------------------------------


def concurrent(batch: dict, rng) -> dict:
    """All tasks on all graphs: every graph, every node, and a fifth of the edges, hidden, with as many non-edges."""
    hidden = []
    for g in batch:
        _, (target,) = cut_lp([g], rng)
        n, edges = len(g["node_y"]), g["edges"]
        others = [(u, v) for u in range(n) for v in range(u + 1, n) if (u, v) not in edges]
        drawn = rng.permutation(len(others))[: len(target["positive"])]
        hidden.append({**target, "negative": [others[i] for i in drawn]})
    nodes = [{**g, "labelled_nodes": range(len(g["node_y"]))} for g in batch]
    return {"gc": batch, "nc": nodes, "lp": hidden}


def classical_loss(theta: dict, batch: dict, weights: dict, **shape) -> torch.Tensor:
    return sum(weights[t] * loss(theta, t, graphs, **shape) for t, graphs in batch.items())


def traditional_loss(theta: dict, support: dict, target: dict, weights: dict, alpha: float, heads_only: bool, **shape):
    # The weights λ weigh the outer sum only.
    i_loss = classical_loss(theta, support, dict.fromkeys(weights, 1.0), **shape)
    names = [n for n in theta if n.startswith("heads.") or (n.startswith("encoder.") and not heads_only)]
    gradients = torch.autograd.grad(i_loss, [theta[n] for n in names], create_graph=True)
    adapted = theta | {n: theta[n] - alpha * g for n, g in zip(names, gradients, strict=True)}
    return classical_loss(adapted, target, weights, **shape)


# --- To the form of the package and back -----------------------------------------------------------------------------


def to_examples(store: GraphStore, task: str, graphs: list[dict]) -> Examples:
    """Literal examples in the form of the package."""
    batch = store.cut([g["id"] for g in graphs])
    starts = batch.node_ptr.tolist()
    if task == "gc":
        return Examples(batch, batch.graph_y)
    if task == "nc":
        index = torch.tensor([s + v for g, s in zip(graphs, starts, strict=False) for v in g["labelled_nodes"]])
        return Examples(batch, batch.node_y[index], index)
    kept = {(u + s, v + s) for g, s in zip(graphs, starts, strict=False) for u, v in g["edges"]}
    batch = batch.drop_edges(torch.tensor([tuple(e) not in kept for e in batch.edges.T.tolist()]))
    pairs = [
        (y, u + s, v + s)
        for k, y in (("positive", 1.0), ("negative", 0.0))
        for g, s in zip(graphs, starts, strict=False)
        for u, v in g[k]
    ]
    y, u, v = zip(*pairs, strict=True)
    return Examples(batch, torch.tensor(y), torch.tensor([u, v]))


def to_episode(store: GraphStore, tasks: list, episode: dict) -> Episode:
    """A literal episode in the form of the package, in double precision."""
    parts = []
    for task in tasks:
        support, target = (to_examples(store, task.name, graphs) for graphs in episode[task.name])
        parts.append(Part(task, support, target))
    return to_device(parts, torch.float64)


def from_examples(store: GraphStore, task: str, examples: Examples) -> list[dict]:
    """Examples of the package in literal form."""
    batch = examples.inputs
    graphs = [graph(store, g) for g in batch.graph_ids.tolist()]
    starts, of = batch.node_ptr.tolist(), batch.batch.tolist()
    for g in graphs:
        g |= {"edges": [], "labelled_nodes": [], "positive": [], "negative": []}
    for u, v in batch.edges.T.tolist():
        graphs[of[u]]["edges"].append((u - starts[of[u]], v - starts[of[u]]))
    if task == "nc":
        for v in examples.index.tolist():
            graphs[of[v]]["labelled_nodes"].append(v - starts[of[v]])
    if task == "lp":
        for y, u, v in zip(examples.y.tolist(), *examples.index.tolist(), strict=True):
            graphs[of[u]]["positive" if y else "negative"].append((u - starts[of[u]], v - starts[of[u]]))
    return graphs
