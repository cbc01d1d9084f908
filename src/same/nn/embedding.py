"""Embeddings of examples, of a whole set in memory, and of a set of any size in files."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from same.errors import InputError
from same.files import atomic
from same.graphs.batch import Examples
from same.graphs.flat import Array
from same.graphs.store import GraphStore

Block = tuple[Array, Array, Array]
CHUNK = 512  # Graphs that are encoded at once.


def encode_once(encoder: Callable[[Any], Tensor], sets: Sequence[Examples]) -> list[Examples]:
    """Return examples with their embeddings, encoding all inputs in one call and shared inputs once."""
    inputs = list({id(examples.inputs): examples.inputs for examples in sets}.values())
    rows: Sequence[Tensor]
    if len(inputs) > 1 and hasattr(inputs[0], "concat"):
        joined, sizes = inputs[0].concat(inputs)
        rows = encoder(joined).split(sizes)
    else:
        rows = [encoder(each) for each in inputs]
    embeddings = {id(each): h for each, h in zip(inputs, rows, strict=True)}
    return [replace(examples, embeddings=embeddings[id(examples.inputs)]) for examples in sets]


def in_pieces(encoder: Callable[[Any], Tensor], nodes: int = 2**16) -> Callable[[Any], Tensor]:
    """Return an encoder of large batches, which encodes about so many nodes at once.

    Encoding takes many times the memory of its result.
    """
    return lambda batch: torch.cat([encoder(piece) for piece in batch.pieces(nodes)])


def embed_graphs(encoder: nn.Module, store: GraphStore) -> tuple[Array, Array]:
    """Return the [N, w] embeddings of all nodes and the [G, w] means of each graph."""
    _, nodes, means = zip(*_blocks(encoder, store), strict=True)
    return np.concatenate(nodes), np.concatenate(means)


def write_embeddings(encoder: nn.Module, store: GraphStore, out: Path, kind: str = "npz") -> None:
    """Write the node embeddings of a set to files, holding one block of them in memory at a time.

    `npz` holds `embeddings` [N, w], `graph` [N] (the graph of each node), `node_ptr` [G+1] and `graph_means` [G, w].
    `npy` is a folder with one file for each of them, for `np.load(file, mmap_mode="r")`.
    """
    if kind == "npy":
        with atomic(out, folder=True) as temporary:
            _write_arrays(encoder, store, temporary)
    elif kind == "npz":
        # The members of a zip cannot grow side by side: the arrays grow in files next to it first.
        with atomic(out) as temporary, tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            arrays = _write_arrays(encoder, store, Path(folder))
            with temporary.open("wb") as file:
                np.savez(file, **arrays)
    else:
        raise InputError(f"format: {kind!r} is not one of npz, npy")


def _blocks(encoder: nn.Module, store: GraphStore) -> Iterator[Block]:
    """Yield the ids of consecutive graphs, the embeddings of their nodes, and the means of the graphs."""
    device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    for start in range(0, store.num_graphs, CHUNK):
        ids = np.arange(start, min(start + CHUNK, store.num_graphs))
        with torch.no_grad():
            batch = store.cut(ids).to(device)
            h = encoder(batch)
            yield ids, h.cpu().numpy(), batch.mean(h).cpu().numpy()


def _write_arrays(encoder: nn.Module, store: GraphStore, folder: Path) -> dict[str, Any]:
    """Write the arrays, and return them memory-mapped, by name."""
    arrays: dict[str, Array] = {}

    def put(name: str, start: int, rows: Array, total: int) -> None:
        if name not in arrays:
            path, shape = folder / f"{name}.npy", (total, *rows.shape[1:])
            arrays[name] = np.lib.format.open_memmap(path, mode="w+", dtype=rows.dtype, shape=shape)
        arrays[name][start : start + len(rows)] = rows

    put("node_ptr", 0, np.asarray(store.node_ptr), len(store.node_ptr))
    for ids, h, means in _blocks(encoder, store):
        start = int(store.node_ptr[ids[0]])
        put("embeddings", start, h, store.num_nodes)
        put("graph", start, np.repeat(ids, store.node_ptr[ids + 1] - store.node_ptr[ids]), store.num_nodes)
        put("graph_means", int(ids[0]), means, store.num_graphs)
    return arrays
