"""Where sets of graphs come from: the generator, local files, the cache, the TU collection."""

import difflib
import hashlib
import logging
import os
import re
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from same.errors import InputError
from same.files import atomic, clean
from same.graphs.nx import from_networkx
from same.graphs.planted import planted
from same.graphs.pyg import from_pyg
from same.graphs.store import GraphStore
from same.graphs.tu import MAX_BYTES, read_tu

log = logging.getLogger("same")

COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
ALIASES = {"PROTEINS": "PROTEINS_full"}
"""Names that stand for another set: the paper's PROTEINS, with 29 attributes, is the collection's PROTEINS_full."""

_NAMES = """
AIDS BZR BZR_MD COIL-DEL COIL-RAG COLLAB COLORS-3 COX2 COX2_MD Cuneiform DBLP_v1 DD deezer_ego_nets DHFR DHFR_MD
ENZYMES ER_MD Fingerprint FIRSTMM_DB FRANKENSTEIN github_stargazers IMDB-BINARY IMDB-MULTI KKI Letter-high
Letter-low Letter-med MCF-7 MOLT-4 MSRC_9 MSRC_21 MSRC_21C MUTAG Mutagenicity NCI1 NCI109 NCI-H23 OHSU OVCAR-8 P388
PC-3 Peking_1 PROTEINS_full PTC_FM PTC_FR PTC_MM PTC_MR QM9 REDDIT-BINARY REDDIT-MULTI-5K REDDIT-MULTI-12K
reddit_threads SF-295 SN12C SW-620 SYNTHETIC SYNTHETICnew Synthie TRIANGLES TWITTER-Real-Graph-Partial twitch_egos
UACC257 Yeast ZINC_full alchemy_full aspirin
"""
NAMES = tuple(_NAMES.split())
"""Some of the collection's sets; any other name is looked up there as well."""

_TRIES = 3
_READER = 2  # Counts up when the reader's result changes, so that what an older one cached is read anew.


@dataclass(frozen=True)
class Contents:
    """What a set is known to hold."""

    graphs: int
    nodes: int
    edges: int
    graph_classes: tuple[int, ...]
    node_classes: int
    attributes: int

    @classmethod
    def of(cls, store: GraphStore) -> "Contents":
        """What a store does hold."""
        counts = () if store.graph_classes is None else tuple(np.bincount(np.asarray(store.graph_y)).tolist())
        return cls(
            store.num_graphs, store.num_nodes, store.num_edges, counts, len(store.node_classes or ()), store.x.shape[1]
        )


KNOWN = {
    "ENZYMES": Contents(600, 19_580, 37_282, (100,) * 6, 3, 18),
    "PROTEINS_full": Contents(1_113, 43_471, 81_044, (663, 450), 3, 29),
    "DHFR": Contents(756, 32_075, 33_676, (295, 461), 9, 3),
    "COX2": Contents(467, 19_252, 20_289, (365, 102), 8, 3),
}
"""The paper's four sets."""


def load(source: str | Path, data: str | Path | None = None) -> GraphStore:
    """A set of graphs by name or path.

    Args:
        source: `planted`; a name of the TU collection; a folder or zip in TU format; a folder that `GraphStore.save`
            wrote.
        data: where to look for named sets first (`NAME.zip`, `NAME/*.txt`, `NAME/raw/*.txt`); `SAME_DATA` is next,
            then the cache, then the network.

    >>> load("planted")
    GraphStore('planted', graphs=300, nodes=7102, edges=14656, attributes=24)
    """
    text = str(source)
    if text == "planted":
        return planted()
    if is_path(text):
        path = Path(text)
        store = GraphStore.open(path) if (path / "store.json").is_file() else _read_cached(path)
    else:
        name = ALIASES.get(text, text)
        store = _read_cached(fetch(text, data))
        _check_known(name, store)
        if name != text:
            log.info("%s: taken as %s, the paper's set of that name", text, name)
    for note in store.notes:
        log.info("%s: %s", store.name, note)
    return store


def as_store(graphs: Any) -> GraphStore:
    """Graphs in any form that is known, as a store.

    Args:
        graphs: a `GraphStore` or a list of them, a PyG dataset or list of `Data`, networkx graphs, or the name or path
            of a set.

    >>> as_store("planted")
    GraphStore('planted', graphs=300, nodes=7102, edges=14656, attributes=24)
    """
    if isinstance(graphs, GraphStore):
        return graphs
    if isinstance(graphs, str | Path):
        return load(graphs)
    if _is(graphs, "torch_geometric.data", "Dataset"):
        return from_pyg(graphs)
    alone = _is(graphs, "torch_geometric.data", "Data") or _is(graphs, "networkx", "Graph")
    items = [graphs] if alone else list(graphs) if isinstance(graphs, Iterable) else []
    if items and all(isinstance(item, GraphStore) for item in items):
        return GraphStore.join(items)
    if items and all(_is(item, "torch_geometric.data", "Data") for item in items):
        return from_pyg(items)
    if items and all(_is(item, "networkx", "Graph") for item in items):
        return from_networkx(items)
    kinds = ", ".join(sorted({type(item).__name__ for item in items})) or "nothing"
    found = f"{type(graphs).__name__} of {kinds}" if isinstance(graphs, Iterable) else type(graphs).__name__
    raise InputError(f"graphs: {found}: give PyG data, networkx graphs, a GraphStore, or the name or path of a set")


def _is(thing: Any, module: str, kind: str) -> bool:
    """Whether a thing is of a library's class. Whoever has one has imported the library, so we need not."""
    known = getattr(sys.modules.get(module), kind, None)
    return known is not None and isinstance(thing, known)


def is_path(source: str) -> bool:
    """Whether a source names a place rather than a set; a folder that is called like a known set does not count."""
    known = source in NAMES or source in ALIASES
    return not known and (os.sep in source or "/" in source or source.endswith(".zip") or Path(source).exists())


def fetch(name: str, data: str | Path | None = None) -> Path:
    """The place of a named set, downloaded into the cache if it is nowhere else."""
    place = find(name, data)
    return _download(ALIASES.get(name, name)) if place is None else place


def find(name: str, data: str | Path | None = None) -> Path | None:
    """The place of a named set on this machine, or None."""
    name = ALIASES.get(name, name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name) or ".." in name:
        raise InputError(f"{name!r}: not the name of a set and not a path that exists; see `same data list`")
    for folder in local_folders(data):
        for place in (folder / f"{name}.zip", folder / name):
            if place.is_file() or any(place.glob("*_A.txt")) or any(place.glob("raw/*_A.txt")):
                return place
    cached = cache_folder() / f"{name}.zip"
    return cached if cached.is_file() else None


def local_folders(data: str | Path | None = None) -> Sequence[Path]:
    """The folders in which named sets are looked for, in order."""
    folders = []
    for option, value in (("--data", data), ("SAME_DATA", os.environ.get("SAME_DATA"))):
        if value:
            if not Path(value).is_dir():
                raise InputError(f"{option}: {value} is not a folder")
            folders.append(Path(value))
    return folders


def cache_folder() -> Path:
    """Where downloads and parsed sets are kept: `SAME_CACHE`, or `same` in the user's cache folder."""
    chosen = os.environ.get("SAME_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "same"


def _read_cached(path: Path) -> GraphStore:
    """The set at a path, from the cache if it has been read before and has not changed since."""
    if not path.exists():
        raise InputError(f"{path}: no such folder or file")
    files = [path] if path.is_file() else sorted([*path.glob("*.txt"), *path.glob("raw/*.txt")])
    stamp = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = hashlib.sha256(repr((_READER, stamp)).encode()).hexdigest()[:16]
    folder = cache_folder() / "stores" / key
    if folder.is_dir():
        try:
            return GraphStore.open(folder)
        except InputError as error:
            log.warning("%s; reading the source again", error)
            shutil.rmtree(folder)
    store = read_tu(path)
    clean(folder.parent, seconds=86_400)  # Others may be writing to the cache at this moment.
    try:
        store.save(folder)
    except InputError as error:
        # Another process may have written it meanwhile.
        if not (folder / "store.json").is_file():
            raise InputError(f"the cache {error}, by setting SAME_CACHE") from error
    return GraphStore.open(folder)


def _check_known(name: str, store: GraphStore) -> None:
    known, found = KNOWN.get(name), Contents.of(store)
    if known is not None and found != known:
        raise InputError(f"{name}: is not the set of that name: it holds {found}, expected {known}; get it again")


def _download(name: str) -> Path:
    """The zip of a set of the collection, in the cache."""
    target = cache_folder() / f"{name}.zip"
    close = difflib.get_close_matches(name, NAMES, n=3)
    hint = "" if name in NAMES or not close else f"; did you mean {' or '.join(close)}?"
    help_ = f"put {name}.zip into {target.parent}, or name the folder that holds it with --data or SAME_DATA{hint}"
    url = f"{COLLECTION}/{name}.zip"
    for attempt in range(1, _TRIES + 1):
        try:
            with atomic(target) as temporary:
                _transfer(url, temporary)
                _check_known(name, read_tu(temporary))
            return target
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise InputError(
                    f"{name}: the TU collection has no set of that name{hint}; see `same data list`"
                ) from None
            reason = f"the server answered {error.code}"
        except (OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", error))
            if isinstance(getattr(error, "reason", error), ssl.SSLError):
                break
        if attempt < _TRIES:
            log.info("%s: %s; trying again", name, reason)
            time.sleep(attempt)
    raise InputError(f"{name}: is not here and could not be downloaded ({reason}); {help_}") from None


def _transfer(url: str, target: Path) -> None:
    """Copies what an address holds into a file, over TLS with the server's certificate checked."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    context = ssl.create_default_context()
    log.info("downloading %s", url)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with urllib.request.urlopen(url, timeout=30, context=context) as response, target.open("wb") as file:
        if not response.geturl().startswith("https://"):
            raise OSError("the server redirects to an address without TLS")
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            bar, done = progress.add_task(Path(url).name, total=total), 0
            while block := response.read(1 << 16):
                file.write(block)
                done += len(block)
                if done > MAX_BYTES:
                    raise InputError(f"{url}: is larger than {MAX_BYTES} bytes; refused")
                progress.update(bar, completed=done)
        if total is not None and done != total:
            raise OSError(f"the connection ended after {done} of {total} bytes")
