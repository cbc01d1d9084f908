"""Figures: of a study for its report, and of some graphs of a dataset."""

import logging
from pathlib import Path

import numpy as np

from same.errors import InputError
from same.files import atomic
from same.graphs.store import GraphStore
from same.study.engines.base import RUNS
from same.study.plan import SAMES, TASKS
from same.study.published import NAMES
from same.study.report.svg import bars, scatter
from same.study.report.tables import LABELS, Table
from same.study.results import Study

log = logging.getLogger("same")

_DRAWN = 600


def make_figures(study: Study, tables: list[Table], data: Path | None) -> dict[str, str]:
    """All figures of a study as SVG, by name; those of embeddings need a study that keeps its models."""
    return {**bar_figures(study, tables), **embedding_figures(study, data)}


def bar_figures(study: Study, tables: list[Table]) -> dict[str, str]:
    """Figure 1, Figure 2 and Δm."""
    figures = {}
    by_key = {table.key: table for table in tables}
    for key, name, title in (
        ("figure1", "figure1", "Figure 1: transfer of single-task embeddings"),
        ("table4", "figure2", "Figure 2: tasks that two-task models were not trained on"),
        ("table3", "delta", "Δm"),
    ):
        for number, dataset in enumerate(study.plan.datasets if key in by_key else ()):
            groups: dict[str, list[tuple[str, float, float]]] = {}
            for label, model, cells in by_key[key].rows:
                c = cells[number]
                source, _, target = label.partition("→")
                group = {"figure1": f"→{target}", "delta": label.lower()}.get(name, label)
                bar = f"{source}→" if name == "figure1" and source else model
                if c.values and (bar == LABELS["untrained"] or model in NAMES.values()):
                    groups.setdefault(group, []).append((bar, c.mean, c.std))
            if groups:
                figures[f"{name}-{dataset}"] = bars(f"{title}, {dataset}", list(groups.items()))
    return figures


def embedding_figures(study: Study, data: Path | None) -> dict[str, str]:
    """Node and graph embeddings of a three-task SAME run in two dimensions: UMAP if it is installed, otherwise PCA."""
    import torch

    from same.graphs import load, split
    from same.saved import load_trained

    figures = {}
    for dataset in study.plan.datasets:
        kind, kept = (dataset, TASKS, study.plan.splits[0]), (study.folder / RUNS)
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
            if y is None or names is None:
                continue
            chosen = np.random.default_rng(0).permutation(len(rows))[:_DRAWN]
            method, points = _two_dimensions(rows[chosen])
            title = f"{LABELS[run.method]} embeddings of test {what}, {dataset} ({method})"
            figures[f"embeddings-{what}-{dataset}"] = scatter(title, points, [str(names[c]) for c in y.numpy()[chosen]])
    return figures


def _two_dimensions(rows: np.ndarray) -> tuple[str, np.ndarray]:
    try:
        from umap import UMAP
    except ImportError:
        u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        return "PCA", u[:, :2] * s[:2]
    return "UMAP", np.asarray(UMAP(random_state=0).fit_transform(rows))


def draw_graphs(store: GraphStore, path: Path) -> None:
    """Draw one graph of each class, with nodes in the colours of their classes, as a PNG.

    Args:
        store: dataset with at least one graph.
        path: file to write.
    """
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    classes = np.zeros(store.num_graphs, np.int64) if store.graph_classes is None else np.asarray(store.graph_y)
    shown = [int(np.flatnonzero(classes == c)[0]) for c in np.unique(classes)[:6]]
    figure = Figure(figsize=(3.6 * len(shown), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, i in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        batch = store.cut([i])
        edges = batch.edges.numpy()
        place = _layout(edges, batch.num_nodes)
        axes.add_collection(LineCollection(place[edges.T], colors="#999999", linewidths=0.9, zorder=1))
        node_y = np.zeros(batch.num_nodes, int) if store.node_classes is None else np.asarray(batch.node_y)
        for c in np.unique(node_y):
            label = None if store.node_classes is None else store.node_classes[c]
            style = {"color": colormaps["tab10"](c % 10), "s": 60, "edgecolors": "white", "zorder": 2, "label": label}
            axes.scatter(*place[node_y == c].T, **style)
        title = "" if store.graph_classes is None else f", class “{store.graph_classes[classes[i]]}”"
        axes.set_title(f"graph {i}{title}\n{batch.num_nodes} nodes, {edges.shape[1]} edges", fontsize=10)
        axes.set_aspect("equal")
        axes.set_axis_off()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.suptitle(f"{store.name}: one graph of each class, nodes in the colours of their classes", fontsize=11)
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _layout(edges: np.ndarray, n: int) -> np.ndarray:
    """[n, 2] positions whose distances are close to the lengths of shortest paths (stress majorisation)."""
    import scipy.sparse
    from scipy.sparse.csgraph import shortest_path

    adjacency = scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(n, n))
    wanted = shortest_path(adjacency, directed=False, unweighted=True)
    wanted[np.isinf(wanted)] = wanted[np.isfinite(wanted)].max() / 2 + 1
    weight = 1 / np.maximum(wanted, 1) ** 2
    np.fill_diagonal(weight, 0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt(n)
    for _ in range(200):
        distance = np.linalg.norm(place[:, None] - place[None], axis=2)
        pull = -weight * wanted / np.maximum(distance, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        place = inverse @ pull @ place
    return place
