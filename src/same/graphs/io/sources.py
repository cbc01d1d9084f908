"""Sets of graphs in any form: by name, on this machine or downloaded; by path; or as objects of other libraries."""

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
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any

from same.errors import InputError
from same.files import atomic, clean
from same.graphs.io.folder import HEADER, open_store, save_store
from same.graphs.io.objects import from_networkx, from_pyg
from same.graphs.io.tu import MAX_BYTES, read_tu
from same.graphs.planted import planted
from same.graphs.store import GraphStore

log = logging.getLogger("same")

COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
ALIASES = {"PROTEINS": "PROTEINS_full"}
"""Aliases of sets: the paper's PROTEINS, with 29 attributes, is PROTEINS_full in the collection."""

_NAMES = """
AIDS BZR BZR_MD COIL-DEL COIL-RAG COLLAB COLORS-3 COX2 COX2_MD Cuneiform DBLP_v1 DD deezer_ego_nets DHFR DHFR_MD
ENZYMES ER_MD Fingerprint FIRSTMM_DB FRANKENSTEIN github_stargazers IMDB-BINARY IMDB-MULTI KKI Letter-high
Letter-low Letter-med MCF-7 MOLT-4 MSRC_9 MSRC_21 MSRC_21C MUTAG Mutagenicity NCI1 NCI109 NCI-H23 OHSU OVCAR-8 P388
PC-3 Peking_1 PROTEINS_full PTC_FM PTC_FR PTC_MM PTC_MR QM9 REDDIT-BINARY REDDIT-MULTI-5K REDDIT-MULTI-12K
reddit_threads SF-295 SN12C SW-620 SYNTHETIC SYNTHETICnew Synthie TRIANGLES TWITTER-Real-Graph-Partial twitch_egos
UACC257 Yeast ZINC_full alchemy_full aspirin
"""
NAMES = tuple(_NAMES.split())
"""Some sets of the collection; any other name is looked up there as well."""

KNOWN = {
    "ENZYMES": (600, 19_580, 37_282, 18, (100,) * 6, 3),
    "PROTEINS_full": (1_113, 43_471, 81_044, 29, (663, 450), 3),
    "DHFR": (756, 32_075, 33_676, 3, (295, 461), 9),
    "COX2": (467, 19_252, 20_289, 3, (365, 102), 8),
}
"""The paper's four sets: numbers of graphs, nodes, edges and attributes, graphs of each class, and node classes."""

_TRIES = 3
_READER = 3  # Increase it when the reader's result changes, so that sets in the cache are read again.


def contents(store: GraphStore) -> tuple[Any, ...]:
    """Counts by which a set is recognised, see `KNOWN`."""
    sizes = (store.num_graphs, store.num_nodes, store.num_edges, store.x.shape[1])
    return *sizes, tuple(store.counts("graph").values()), len(store.node_classes or ())


def load(source: str | Path, data: str | Path | None = None) -> GraphStore:
    """Load a set of graphs by name or path.

    Args:
        source: `planted`; a name of the TU collection; a folder or zip in TU format; a folder written by `save_store`.
        data: folder to search for named sets first (`NAME.zip`, `NAME/*.txt`, `NAME/raw/*.txt`); then `SAME_DATA`, the
            cache and the network are tried.
    """
    text = str(source)
    if text == "planted":
        return planted()
    if is_path(text):
        path = Path(text)
        store = open_store(path) if (path / HEADER).is_file() else _read_cached(path)
    else:
        name = ALIASES.get(text, text)
        store = _read_cached(fetch(text, data))
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
    if isinstance(graphs, _loaded("torch_geometric.data", "Dataset")):
        return from_pyg(graphs)
    pyg, networkx = _loaded("torch_geometric.data", "Data"), _loaded("networkx", "Graph")
    items = [graphs] if isinstance(graphs, (pyg, networkx)) else list(graphs) if isinstance(graphs, Iterable) else []
    for kind, convert in ((GraphStore, GraphStore.join), (pyg, from_pyg), (networkx, from_networkx)):
        if items and all(isinstance(item, kind) for item in items):
            return convert(items)
    kinds = ", ".join(sorted({type(item).__name__ for item in items})) or "nothing"
    given = f"{type(graphs).__name__} of {kinds}" if isinstance(graphs, Iterable) else type(graphs).__name__
    raise InputError(f"graphs: {given}: give PyG data, networkx graphs, a GraphStore, or the name or path of a set")


def _loaded(module: str, kind: str) -> Any:
    """A class of a library, or () if the library is not loaded: then no object can be of that class."""
    return getattr(sys.modules.get(module), kind, ())


def _read_cached(path: Path) -> GraphStore:
    """The TU set at a path, from the cache if it has been read before and has not changed since."""
    files = [path] if path.is_file() else sorted([*path.glob("*.txt"), *path.glob("raw/*.txt")])
    stamp = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    folder = cache_folder() / "stores" / hashlib.sha256(repr((_READER, stamp)).encode()).hexdigest()[:16]
    if folder.is_dir():
        try:
            return open_store(folder)
        except InputError as error:
            log.warning("%s; reading the source again", error)
            shutil.rmtree(folder)
    store = read_tu(path)
    clean(folder.parent, seconds=86_400)  # Other processes may be writing to the cache at this moment.
    try:
        save_store(store, folder)
    except InputError as error:
        if not (folder / HEADER).is_file():  # Another process may have written it meanwhile.
            raise InputError(f"the cache {error}, by setting SAME_CACHE") from error
    return open_store(folder)


def is_path(source: str) -> bool:
    """Whether a source is a path rather than the name of a set; a folder named like a listed set does not count."""
    listed = source in NAMES or source in ALIASES
    return not listed and (os.sep in source or "/" in source or source.endswith(".zip") or Path(source).exists())


def fetch(name: str, data: str | Path | None = None) -> Path:
    """Path of a named set, which is downloaded into the cache if it is not on this machine."""
    return find(name, data) or _download(ALIASES.get(name, name))


def find(name: str, data: str | Path | None = None) -> Path | None:
    """Path of a named set on this machine, or None."""
    name = ALIASES.get(name, name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name) or ".." in name:
        raise InputError(f"{name!r}: not the name of a set and not a path that exists; see `same data list`")
    for option, folder in (("--data", data), ("SAME_DATA", os.environ.get("SAME_DATA"))):
        if folder and not Path(folder).is_dir():
            raise InputError(f"{option}: {folder} is not a folder")
        for path in (Path(folder, f"{name}.zip"), Path(folder, name)) if folder else ():
            if path.is_file() or any(path.glob("*_A.txt")) or any(path.glob("raw/*_A.txt")):
                return path
    cached = cache_folder() / f"{name}.zip"
    return cached if cached.is_file() else None


def catalogue(data: str | Path | None = None) -> list[dict[str, Any]]:
    """Listed sets, those of the paper first: name, alias, whether the paper uses it, and its place on this machine."""
    aliases = {full: alias for alias, full in ALIASES.items()}
    rows: list[dict[str, Any]] = [{"name": "planted", "alias": None, "paper": False, "place": "built in"}]
    for name in sorted(NAMES, key=lambda name: (name not in KNOWN, name.lower())):
        place = find(name, data)
        rows.append({"name": name, "alias": aliases.get(name), "paper": name in KNOWN, "place": place and str(place)})
    return rows


def cache_folder() -> Path:
    """Folder of downloads and parsed sets: `SAME_CACHE`, or `same` in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "same")
    return Path(os.environ.get("SAME_CACHE") or default)


def check_contents(name: str, store: GraphStore) -> None:
    """Refuse a set that goes by the name of one of the paper's sets and is another."""
    given = contents(store)
    if given != (expected := KNOWN.get(name, given)):
        counts = "graphs, nodes, edges, attributes, graphs of each class and node classes"
        raise InputError(f"{name}: not the set of that name: {counts} are {given}, expected {expected}; get it again")


def _download(name: str) -> Path:
    target = cache_folder() / f"{name}.zip"
    close = [] if name in NAMES else difflib.get_close_matches(name, NAMES, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    for attempt in range(1, _TRIES + 1):
        try:
            with atomic(target) as temporary:
                _transfer(f"{COLLECTION}/{name}.zip", temporary)
                check_contents(name, read_tu(temporary))
            return target
        except urllib.error.HTTPError as error:
            if error.code == 404:
                message = f"{name}: the TU collection has no set of that name{hint}; see `same data list`"
                raise InputError(message) from None
            reason = f"the server answered {error.code}"
        except (OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", error))
            if isinstance(getattr(error, "reason", error), ssl.SSLError):
                break
        if attempt < _TRIES:
            log.info("%s: %s; trying again", name, reason)
            time.sleep(attempt)
    raise InputError(
        f"{name}: not on this machine, and could not be downloaded ({reason}); "
        f"put {name}.zip into {target.parent}, or name its folder with --data or SAME_DATA{hint}"
    )


def _transfer(url: str, target: Path) -> None:
    """Download a URL to a file, over TLS with the server's certificate checked."""
    from rich.console import Console
    from rich.progress import wrap_file

    log.info("downloading %s", url)
    context = ssl.create_default_context()
    with urllib.request.urlopen(url, timeout=30, context=context) as response, target.open("wb") as file:
        if not response.geturl().startswith("https://"):
            raise OSError("the server redirects to an address without TLS")
        length, done = int(response.headers.get("Content-Length") or 0), 0
        console, hidden = Console(stderr=True), not sys.stderr.isatty()
        with wrap_file(response, length, description=Path(url).name, console=console, disable=hidden) as reader:
            while block := reader.read(1 << 16):
                file.write(block)
                done += len(block)
                if done > MAX_BYTES:
                    raise InputError(f"{url}: is larger than {MAX_BYTES} bytes; refused")
        if length and done != length:
            raise OSError(f"the connection ended after {done} of {length} bytes")
