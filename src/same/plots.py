"""Pictures."""

from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import shortest_path

from same.files import atomic
from same.graphs.store import GraphStore


def draw_graphs(store: GraphStore, path: Path) -> None:
    """Draws one graph of each class, its nodes coloured by their class, as a PNG.

    Args:
        store: a set with at least one graph.
        path: the file to write.
    """
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    classes = np.zeros(store.num_graphs, np.int64) if store.graph_classes is None else np.asarray(store.graph_y)
    shown = [int(np.flatnonzero(classes == c)[0]) for c in np.unique(classes)[:6]]
    figure = Figure(figsize=(3.6 * len(shown), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    colours = colormaps["tab10"]
    for axes, i in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        batch = store.cut([i])
        edges = batch.edges.numpy()
        place = _layout(edges, batch.num_nodes)
        axes.add_collection(LineCollection(place[edges.T], colors="#999999", linewidths=0.9, zorder=1))
        node_y = np.zeros(batch.num_nodes, int) if store.node_classes is None else np.asarray(batch.node_y)
        for c in np.unique(node_y):
            label = None if store.node_classes is None else store.node_classes[c]
            style = {"color": colours(c % 10), "s": 60, "edgecolors": "white", "zorder": 2, "label": label}
            axes.scatter(*place[node_y == c].T, **style)
        title = "" if store.graph_classes is None else f", class “{store.graph_classes[classes[i]]}”"
        axes.set_title(f"graph {i}{title}\n{batch.num_nodes} nodes, {edges.shape[1]} edges", fontsize=10)
        axes.set_aspect("equal")
        axes.set_axis_off()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.suptitle(f"{store.name}: one graph of each class, nodes coloured by their class", fontsize=11)
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _layout(edges: np.ndarray, n: int) -> np.ndarray:
    """[n, 2] places whose distances are close to the lengths of shortest paths (majorised stress)."""
    adjacency = scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(n, n))
    wanted = shortest_path(adjacency, directed=False, unweighted=True)
    apart = wanted[np.isfinite(wanted)].max() / 2 + 1
    wanted = np.where(np.isfinite(wanted), wanted, apart)
    weight = 1 / np.maximum(wanted, 1) ** 2
    np.fill_diagonal(weight, 0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    turn = np.linspace(0, 2 * np.pi, n, endpoint=False)
    place = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt(n)
    for _ in range(200):
        distance = np.linalg.norm(place[:, None] - place[None], axis=2)
        pull = -weight * wanted / np.maximum(distance, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        place = inverse @ pull @ place
    return place
