"""Figures: of a study for its report, and of some graphs of a dataset."""

import logging
from pathlib import Path

import numpy as np

from same.errors import InputError
from same.files import atomic
from same.graphs.store import GraphStore
from same.study.engines.base import RUNS
from same.study.plan import SAMES, TASKS
from same.study.report.svg import bars, scatter
from same.study.report.tables import LABELS, Table
from same.study.results import Study

log = logging.getLogger("same")

_DRAWN = 600
_BARS = {
    "figure1": ("figure1", "Figure 1: transfer of single-task embeddings"),
    "table4": ("figure2", "Figure 2: tasks that two-task models were not trained on"),
    "table3": ("delta", "Δm"),
}
"""Name and title of the figure of a table."""


def make_figures(study: Study, tables: list[Table], data: Path | None) -> dict[str, str]:
    """All figures of a study as SVG, by name; those of embeddings need a study that keeps its models."""
    return {**bar_figures(study, tables), **embedding_figures(study, data)}


def bar_figures(study: Study, tables: list[Table]) -> dict[str, str]:
    """Figure 1, Figure 2 and Δm, of each dataset."""
    figures, skipped = {}, (LABELS["majority"], LABELS["raw"])
    for table in [table for table in tables if table.key in _BARS]:
        name, title = _BARS[table.key]
        for number, dataset in enumerate(study.plan.datasets):
            groups: dict[str, list[tuple[str, float, float]]] = {}
            for label, model, cells in table.rows:
                # In Figure 1, bars are tasks that classical models were trained on, grouped by the measured task.
                source, arrow, target = label.partition("→") if name == "figure1" else (label, "", "")
                if (cell := cells[number]).values and not model.startswith(skipped):
                    bar = f"{source}→" if arrow and source else model
                    groups.setdefault(arrow + target or label, []).append((bar, cell.mean, cell.std))
            if groups:
                figures[f"{name}-{dataset}"] = bars(f"{title}, {dataset}", list(groups.items()))
    return figures


def embedding_figures(study: Study, data: Path | None) -> dict[str, str]:
    """Node and graph embeddings of a three-task SAME run, as the first two principal components."""
    import torch
    from sklearn.decomposition import PCA

    from same.experiment import load_trained
    from same.graphs import load, split

    figures = {}
    for dataset in study.plan.datasets:
        kind, kept = (dataset, TASKS, study.plan.splits[0]), study.folder / RUNS
        runs = {r.method: r for r in study.runs.values() if (r.dataset, r.tasks, r.split) == kind}
        run = next((runs[m] for m in reversed(SAMES) if m in runs and (kept / runs[m].run).is_dir()), None)
        if run is None:
            continue
        try:
            trained = load_trained(kept / run.run)
            store = load(dataset, data).with_inputs(trained.inputs)
        except InputError as error:
            log.warning("no figure of embeddings: %s", error)
            continue
        batch = store.cut(split(store, run.split, trained.config.seed).test)
        with torch.no_grad():
            h = trained.encoder(batch)
        for what, rows, y, names in (
            ("nodes", h.numpy(), batch.node_y, store.node_classes),
            ("graphs", batch.mean(h).numpy(), batch.graph_y, store.graph_classes),
        ):
            if y is not None and names is not None:
                chosen = np.random.default_rng(0).permutation(len(rows))[:_DRAWN]
                points, classes = PCA(2).fit_transform(rows[chosen]), [str(names[c]) for c in y.numpy()[chosen]]
                title = f"{LABELS[run.method]} embeddings of test {what}, {dataset} (PCA)"
                figures[f"embeddings-{what}-{dataset}"] = scatter(title, points, classes)
    return figures


def draw_graphs(store: GraphStore, path: Path) -> None:
    """Draw one graph of each class, with nodes in the colours of their classes, as a PNG.

    Args:
        store: dataset with at least one graph.
        path: file to write.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    classes = np.zeros(store.num_graphs, np.int64) if store.graph_classes is None else np.asarray(store.graph_y)
    shown = [int(np.flatnonzero(classes == c)[0]) for c in np.unique(classes)[:6]]
    figure = Figure((3.6 * len(shown), 4.2), layout="constrained")
    for axes, i in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        batch = store.cut([i])
        edges = batch.edges.numpy()
        place = _layout(edges, batch.num_nodes)
        axes.add_collection(LineCollection(place[edges.T], colors="#999999", linewidths=0.9, zorder=1))
        node_y = np.zeros(batch.num_nodes, int) if store.node_classes is None else np.asarray(batch.node_y)
        for c in np.unique(node_y):
            label = None if store.node_classes is None else store.node_classes[c]
            style = {"color": f"C{c}", "s": 60, "edgecolors": "white", "zorder": 2, "label": label}
            axes.scatter(*place[node_y == c].T, **style)
        title = "" if store.graph_classes is None else f", class “{store.graph_classes[classes[i]]}”"
        axes.set_title(f"graph {i}{title}\n{batch.num_nodes} nodes, {edges.shape[1]} edges", fontsize=10)
        axes.set_aspect("equal")
        axes.set_axis_off()
    if store.node_classes is not None:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.suptitle(f"{store.name}: one graph of each class, nodes in the colours of their classes", fontsize=11)
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _layout(edges: np.ndarray, n: int) -> np.ndarray:
    """[n, 2] positions whose distances are close to the lengths of shortest paths."""
    if n == 1:
        return np.zeros((1, 2))
    import scipy.sparse
    from scipy.sparse.csgraph import shortest_path
    from sklearn.manifold import smacof

    adjacency = scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(n, n))
    wanted = shortest_path(adjacency, directed=False, unweighted=True)
    wanted[np.isinf(wanted)] = wanted[np.isfinite(wanted)].max() / 2 + 1
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt(n)
    return np.asarray(smacof(wanted, init=circle, n_init=1, normalized_stress=False)[0])
