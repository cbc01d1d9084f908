"""Embeddings of a set of graphs by a trained run, as a file."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from same.errors import InputError
from same.files import atomic
from same.graphs import GraphStore, load
from same.runs import open_run

CHUNK = 512
"""How many graphs are encoded at once."""


def embed_set(folder: Path, dataset: str, out: Path, *, data: str | Path | None = None, kind: str = "npz") -> int:
    """Writes the node embeddings of a set by the encoder of a finished run.

    `npz` holds `embeddings` [N, w], `graph` [N] (the graph of each node), `node_ptr` [G+1] and `graph_means` [G, w];
    `parquet` a row a node: its graph, its place in the graph, and its embedding.

    Args:
        folder: of the run; the graphs it was trained on are not needed.
        dataset: name, folder or zip of a set whose nodes have the attributes the run was trained with.
        out: the file.
        data: where local sets lie.
        kind: `npz` or `parquet`.

    Returns:
        How many nodes were embedded.
    """
    if kind not in ("npz", "parquet"):
        raise InputError(f"format: {kind!r} is not one of npz, parquet")
    run = open_run(folder)
    store = load(dataset, data).with_inputs(run.inputs)
    node_ptr = np.asarray(store.node_ptr)
    graph = np.repeat(np.arange(store.num_graphs), np.diff(node_ptr))
    with atomic(out) as temporary, temporary.open("wb") as file:
        embeddings, means = embed_graphs(run.encoder, store)
        if kind == "npz":
            np.savez(file, embeddings=embeddings, graph=graph, node_ptr=node_ptr, graph_means=means)
        else:
            _write_parquet(file, graph, np.arange(len(graph)) - node_ptr[graph], embeddings)
    return store.num_nodes


def embed_graphs(encoder: nn.Module, store: GraphStore) -> tuple[np.ndarray, np.ndarray]:
    """[N, w] the embeddings of all nodes, and [G, w] their mean in each graph; a block of graphs at a time.

    >>> from same.graphs import planted
    >>> from same.nn import Encoder
    >>> nodes, means = embed_graphs(Encoder(24, width=8), planted(10))
    >>> nodes.shape[1], means.shape
    (8, (10, 8))
    """
    where = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    nodes, means = [], []
    with torch.no_grad():
        for start in range(0, store.num_graphs, CHUNK):
            batch = store.cut(np.arange(start, min(start + CHUNK, store.num_graphs))).to(where)
            h = encoder(batch)
            nodes.append(h.cpu().numpy())
            means.append(batch.mean(h).cpu().numpy())
    return np.concatenate(nodes), np.concatenate(means)


def _write_parquet(file: object, graph: np.ndarray, node: np.ndarray, embeddings: np.ndarray) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError("format: parquet needs pyarrow: pip install pyarrow, or choose npz") from None
    rows = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), embeddings.shape[1])
    parquet.write_table(pa.table({"graph": graph, "node": node, "embedding": rows}), file)
