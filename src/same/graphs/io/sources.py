"""Sets of graphs in any form: by name, from a path, or as objects of other libraries."""

import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from same.errors import InputError
from same.graphs.io.download import ALIASES, NAMES, check_contents, fetch
from same.graphs.io.folder import HEADER, open_store
from same.graphs.io.networkx import from_networkx
from same.graphs.io.pyg import from_pyg
from same.graphs.io.tu import read_tu
from same.graphs.planted import planted
from same.graphs.store import GraphStore

log = logging.getLogger("same")


def load(source: str | Path, data: str | Path | None = None) -> GraphStore:
    """Load a set of graphs by name or path.

    Args:
        source: `planted`; a name of the TU collection; a folder or zip in TU format; a folder written by `save_store`.
        data: folder to search for named sets first (`NAME.zip`, `NAME/*.txt`, `NAME/raw/*.txt`); then `SAME_DATA`, the
            cache and the network are tried.

    >>> load("planted")
    GraphStore('planted', graphs=300, nodes=7102, edges=14656, attributes=24)
    """
    text = str(source)
    if text == "planted":
        return planted()
    if is_path(text):
        path = Path(text)
        store = open_store(path) if (path / HEADER).is_file() else read_tu(path)
    else:
        name = ALIASES.get(text, text)
        store = read_tu(fetch(text, data))
        check_contents(name, store)
        if name != text:
            log.info("%s: using %s, the set that the paper calls %s", text, name, text)
    for note in store.notes:
        log.info("%s: %s", store.name, note)
    return store


def as_store(graphs: Any) -> GraphStore:
    """Graphs in any supported form as a store.

    Args:
        graphs: a `GraphStore` or a list of them, a PyG dataset or list of `Data`, networkx graphs, or the name or path
            of a set.
    """
    if isinstance(graphs, GraphStore):
        return graphs
    if isinstance(graphs, str | Path):
        return load(graphs)
    if _is(graphs, "torch_geometric.data", "Dataset"):
        return from_pyg(graphs)
    single = _is(graphs, "torch_geometric.data", "Data") or _is(graphs, "networkx", "Graph")
    items = [graphs] if single else list(graphs) if isinstance(graphs, Iterable) else []
    if items and all(isinstance(item, GraphStore) for item in items):
        return GraphStore.join(items)
    if items and all(_is(item, "torch_geometric.data", "Data") for item in items):
        return from_pyg(items)
    if items and all(_is(item, "networkx", "Graph") for item in items):
        return from_networkx(items)
    kinds = ", ".join(sorted({type(item).__name__ for item in items})) or "nothing"
    given = f"{type(graphs).__name__} of {kinds}" if isinstance(graphs, Iterable) else type(graphs).__name__
    raise InputError(f"graphs: {given}: give PyG data, networkx graphs, a GraphStore, or the name or path of a set")


def _is(item: Any, module: str, kind: str) -> bool:
    """Whether an object is of a library's class. Whoever has one has imported the library, so we need not."""
    cls = getattr(sys.modules.get(module), kind, None)
    return cls is not None and isinstance(item, cls)


def is_path(source: str) -> bool:
    """Whether a source is a path rather than the name of a set; a folder named like a listed set does not count."""
    listed = source in NAMES or source in ALIASES
    return not listed and (os.sep in source or "/" in source or source.endswith(".zip") or Path(source).exists())
