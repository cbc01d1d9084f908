"""Shared test helpers: small sets of graphs, as arrays and as TU files."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import torch
from hypothesis import strategies as st

from same.graphs import GraphStore, Labels

# Two graphs: a triangle with a tail, and a pair with an isolated node.
TOY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n3, 4\n4, 3\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "6\n6\n8\n35\n6\n8\n8\n",
    "node_attributes": "".join(f"{i}.5, {i * i}.25\n" for i in range(7)),
}


def write_tu(folder: Path, name: str = "TOY", **changes: str | None) -> Path:
    """Write the toy set in TU format, with some files changed or, if None, left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in {**TOY, **changes}.items():
        if text is not None:
            (folder / f"{name}_{part}.txt").write_text(text, encoding="utf-8")
    return folder


def zip_tu(folder: Path, path: Path, inside: str = "TOY//") -> Path:
    """Zip a folder as the TU collection does."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.glob("*.txt")):
            archive.writestr(inside + file.name, file.read_bytes())
    return path


def random_store(seed: int, sizes: list[int], density: float = 0.3, columns: int = 3, classes: int = 3) -> GraphStore:
    """Random graphs of given sizes, from empty (density 0) to complete (1)."""
    rng = np.random.default_rng(seed)
    edges, start = [np.empty((2, 0), int)], 0
    for size in sizes:
        pairs = np.stack(np.triu_indices(size, 1))
        edges.append(pairs[:, rng.random(pairs.shape[1]) < density] + start)
        start += size
    return GraphStore.build(
        "random",
        x=rng.normal(size=(start, columns)).astype(np.float32),
        sizes=sizes,
        edge_index=np.concatenate(edges, axis=1),
        graph_y=Labels("graph", rng.integers(0, 2, len(sizes)).astype(np.int32), (0, 1)),
        node_y=Labels("node", rng.integers(0, classes, start).astype(np.int32), tuple(range(classes))),
    )


def digest(*arrays: np.ndarray | torch.Tensor) -> str:
    """A checksum of types, shapes and contents."""
    checksum = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        checksum.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return checksum.hexdigest()[:16]


stores = st.builds(
    random_store,
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    density=st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0]),
)
