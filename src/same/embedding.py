"""Embeddings of a set of graphs by a trained run, as files; never more than a block of them is in memory."""

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from same.errors import InputError
from same.files import atomic
from same.graphs import GraphStore, load
from same.runs import open_run

Array = np.ndarray

CHUNK = 512
"""How many graphs are encoded at once."""


def embed_set(folder: Path, dataset: str, out: Path, *, data: str | Path | None = None, kind: str = "npz") -> int:
    """Writes the node embeddings of a set by the encoder of a finished run.

    `npz` holds `embeddings` [N, w], `graph` [N] (the graph of each node), `node_ptr` [G+1] and `graph_means` [G, w];
    `npy` is a folder with a file for each of them, which `np.load(file, mmap_mode="r")` maps into memory;
    `parquet` has a row a node: its graph, its place in the graph, and its embedding.

    Args:
        folder: of the run; the graphs it was trained on are not needed.
        dataset: name, folder or zip of a set whose nodes have the attributes the run was trained with.
        out: the file, or for `npy` the folder.
        data: where local sets lie.
        kind: `npz`, `npy` or `parquet`.

    Returns:
        How many nodes were embedded.
    """
    if kind not in ("npz", "npy", "parquet"):
        raise InputError(f"format: {kind!r} is not one of npz, npy, parquet")
    run = open_run(folder)
    store = load(dataset, data).with_inputs(run.inputs)
    blocks = _blocks(run.encoder, store)
    if kind == "npy":
        with atomic(out, folder=True) as temporary:
            _write_arrays(temporary, blocks, store)
    elif kind == "npz":
        # A zip cannot be written in several places at once: the arrays grow beside it first.
        with atomic(out) as temporary, tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
            _write_arrays(Path(beside), blocks, store)
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                for path in sorted(Path(beside).iterdir()):
                    archive.write(path, path.name)
                    path.unlink()
    else:
        with atomic(out) as temporary:
            _write_parquet(temporary, blocks, store)
    return store.num_nodes


def _blocks(encoder: nn.Module, store: GraphStore) -> Iterator[tuple[slice, Array, Array]]:
    """The places of some graphs, the embeddings of their nodes, and the means of their graphs; block by block."""
    where = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    for start in range(0, store.num_graphs, CHUNK):
        part = slice(start, min(start + CHUNK, store.num_graphs))
        with torch.no_grad():
            batch = store.cut(np.arange(part.start, part.stop)).to(where)
            h = encoder(batch)
            yield part, h.cpu().numpy(), batch.mean(h).cpu().numpy()


def _graph_of(store: GraphStore, part: slice) -> Array:
    """[n] the graph of each node of some graphs."""
    return np.repeat(np.arange(part.start, part.stop), np.diff(store.node_ptr[part.start : part.stop + 1]))


def _write_arrays(folder: Path, blocks: Iterator[tuple[slice, Array, Array]], store: GraphStore) -> None:
    arrays: dict[str, Array] = {}

    def put(name: str, start: int, rows: Array, total: int) -> None:
        if name not in arrays:
            path, shape = folder / f"{name}.npy", (total, *rows.shape[1:])
            arrays[name] = np.lib.format.open_memmap(path, mode="w+", dtype=rows.dtype, shape=shape)
        arrays[name][start : start + len(rows)] = rows

    put("node_ptr", 0, np.asarray(store.node_ptr), len(store.node_ptr))
    for part, h, means in blocks:
        start = int(store.node_ptr[part.start])
        put("embeddings", start, h, store.num_nodes)
        put("graph", start, _graph_of(store, part), store.num_nodes)
        put("graph_means", part.start, means, store.num_graphs)


def embed_graphs(encoder: nn.Module, store: GraphStore) -> tuple[Array, Array]:
    """[N, w] the embeddings of all nodes, and [G, w] their mean in each graph.

    >>> from same.graphs import planted
    >>> from same.nn import Encoder
    >>> nodes, means = embed_graphs(Encoder(24, width=8), planted(10))
    >>> nodes.shape[1], means.shape
    (8, (10, 8))
    """
    found = [(nodes, means) for _, nodes, means in _blocks(encoder, store)]
    return np.concatenate([nodes for nodes, _ in found]), np.concatenate([means for _, means in found])


def _write_parquet(path: Path, blocks: Iterator[tuple[slice, Array, Array]], store: GraphStore) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError("format: parquet needs pyarrow: pip install pyarrow, or choose npz") from None
    writer = None
    try:
        for part, h, _ in blocks:
            graph = _graph_of(store, part)
            place = np.arange(len(graph)) + store.node_ptr[part.start] - store.node_ptr[graph]
            rows = pa.FixedSizeListArray.from_arrays(pa.array(h.reshape(-1)), h.shape[1])
            table = pa.table({"graph": graph, "node": place, "embedding": rows})
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
