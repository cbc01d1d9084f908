"""Embeddings of a set of graphs by a trained run, as a file."""

from pathlib import Path

import numpy as np
import torch

from same.errors import InputError
from same.files import atomic
from same.graphs import load
from same.runs import open_run

_CHUNK = 512


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
    embeddings = np.empty((store.num_nodes, run.config.width), np.float32)
    means = np.empty((store.num_graphs, run.config.width), np.float32)
    with torch.no_grad():
        for start in range(0, store.num_graphs, _CHUNK):
            stop = min(start + _CHUNK, store.num_graphs)
            batch = store.cut(np.arange(start, stop))
            h = run.encoder(batch)
            embeddings[store.node_ptr[start] : store.node_ptr[stop]] = h.numpy()
            means[start:stop] = batch.mean(h).numpy()
    node_ptr = np.asarray(store.node_ptr)
    graph = np.repeat(np.arange(store.num_graphs), np.diff(node_ptr))
    with atomic(out) as temporary, temporary.open("wb") as file:
        if kind == "npz":
            np.savez(file, embeddings=embeddings, graph=graph, node_ptr=node_ptr, graph_means=means)
        else:
            _write_parquet(file, graph, np.arange(len(graph)) - node_ptr[graph], embeddings)
    return store.num_nodes


def _write_parquet(file: object, graph: np.ndarray, node: np.ndarray, embeddings: np.ndarray) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError("format: parquet needs pyarrow: pip install pyarrow, or choose npz") from None
    rows = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), embeddings.shape[1])
    parquet.write_table(pa.table({"graph": graph, "node": node, "embedding": rows}), file)
