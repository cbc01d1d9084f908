"""Learn from one large graph: cut into ego-nets, it serves node classification and link prediction.

The network resembles one of citations: 2,400 papers of six fields. Each paper shows 40 words that hint at its field,
and most links stay within a field. The model is trained on a random half of the papers and the links among them, and
tested on the other half: no ego-net of one half contains a node or an edge of the other. Links to predict are removed
before ego-nets are cut. The embedding of a node is that of the centre of its ego-net.
"""

import numpy as np
import torch
from scipy.sparse import csr_array, identity, triu
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import same
from same.graphs import GraphStore
from same.graphs.flat import ranges
from same.nn import pair_features

Array, Rng = np.ndarray, np.random.Generator


def network(rng: Rng, nodes: int = 2400, fields: int = 6) -> tuple[Array, Array, csr_array]:
    """Generate words, fields and links: a stochastic block model whose nodes show a few words of their field."""
    field = rng.integers(0, fields, nodes)
    u, v = np.triu_indices(nodes, 1)
    joined = rng.random(len(u)) < np.where(field[u] == field[v], 0.025, 0.00125)
    likely = rng.random((fields, 40)) < 0.25
    words = rng.random((nodes, 40)) < np.where(likely[field], 0.22, 0.1)
    return words.astype(np.float32), field, both_ways(u[joined], v[joined], nodes)


def both_ways(u: Array, v: Array, nodes: int) -> csr_array:
    """Links as a symmetric matrix."""
    links = csr_array((np.ones(len(u)), (u, v)), shape=(nodes, nodes))
    return csr_array(links + links.T)


def hide(links: csr_array, rng: Rng) -> tuple[csr_array, Array, Array]:
    """Remove a tenth of the links. Return the rest, pairs (removed links and non-links), and which pairs are links."""
    u, v = triu(links).nonzero()
    gone = rng.random(len(u)) < 0.1
    a, b = rng.integers(0, links.shape[0], (2, gone.sum()))
    apart = (a != b) & (np.asarray(links[a, b]).ravel() == 0)
    pairs = np.concatenate([[u[gone], v[gone]], [a[apart], b[apart]]], axis=1)
    return both_ways(u[~gone], v[~gone], links.shape[0]), pairs, np.arange(pairs.shape[1]) < gone.sum()


def ego_nets(words: Array, field: Array, links: csr_array, rng: Rng, size: int = 24) -> GraphStore:
    """Cut one graph per node: the node itself first, then its neighbours and their neighbours, at most `size` nodes."""
    n = len(words)
    near = (links @ links + 1e3 * links + 1e6 * identity(n)).tocoo()
    centre, node = near.row.astype(np.int64), near.col.astype(np.int64)
    order = np.lexsort((rng.random(len(centre)), -near.data, centre))
    centre, node = centre[order], node[order]
    first = np.arange(len(centre)) - np.searchsorted(centre, centre) < size
    centre, node = centre[first], node[first]
    # Keep the links between members of the same ego-net.
    degree = np.diff(links.indptr)[node]
    start = np.repeat(np.arange(len(node)), degree)
    wanted = centre[start] * n + links.indices[ranges(links.indptr[node], degree)]
    members, by_key = centre * n + node, np.argsort(centre * n + node)
    end = by_key[np.minimum(np.searchsorted(members, wanted, sorter=by_key), len(node) - 1)]
    edges = np.stack([start, end])[:, members[end] == wanted]
    return GraphStore.build("ego-nets", x=words[node], sizes=np.bincount(centre), edge_index=edges, node_y=field[node])


def main() -> dict[str, float]:
    """Train on one half of the network, and predict the fields and links of the other."""
    rng = np.random.default_rng(0)
    words, field, links = network(rng)
    halves = np.array_split(rng.permutation(len(words)), 2)
    shown, pairs, joined = zip(*(hide(links[half][:, half], rng) for half in halves), strict=True)
    nets = [ego_nets(words[half], field[half], rest, rng) for half, rest in zip(halves, shown, strict=True)]
    model = same.GraphEncoder(tasks=("nc", "lp"), width=64, max_epochs=15, batch_size=64).fit(nets[0])

    def links_from(rows: list[Array]) -> float:
        x = [pair_features(*map(torch.from_numpy, both), "symmetric") for both in zip(rows, pairs, strict=True)]
        probe = LogisticRegression(max_iter=1000).fit(x[0], joined[0])
        return float(roc_auc_score(joined[1], probe.decision_function(x[1])))

    raw, y = [words[half] for half in halves], [field[half] for half in halves]
    scores = {
        "field, predicted": float(np.mean(model.predict(nets[1], task="nc")[nets[1].node_ptr[:-1]] == y[1])),
        "field, words alone": LogisticRegression(max_iter=1000).fit(raw[0], y[0]).score(raw[1], y[1]),
        "field, most common": float(np.bincount(y[1]).max() / len(y[1])),
        "links, embeddings (ROC AUC)": links_from([model.transform(part)[part.node_ptr[:-1]] for part in nets]),
        "links, words alone (ROC AUC)": links_from(raw),
    }
    print(f"{nets[0]}; test scores:")
    for name, score in scores.items():
        print(f"  {name:30} {score:.3f}")
    return scores


if __name__ == "__main__":
    main()
