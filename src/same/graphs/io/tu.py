"""Reader of the text format of the TU collection (Morris et al., 2020)."""

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np

from same.errors import InputError
from same.graphs.flat import Array, distinct, not_finite
from same.graphs.labels import Value
from same.graphs.store import GraphStore

MAX_BYTES = 8 * 2**30
"""Largest size of a download or an unpacked archive, far beyond any set of the collection."""
_MAX_RATIO = 200
_DAMAGED = (zipfile.BadZipFile, OSError, ValueError)


def read_tu(path: str | Path) -> GraphStore:
    """Read a set in TU format from a folder (`DS_A.txt` …, in it or in its `raw` folder) or a zip.

    Node attributes become `x`, graph labels the column `y`, and node labels the column `node_y`; several labels of a
    node make one class, such as `0,1`. Graph labels that are not whole numbers, and graph attributes of a set without
    graph labels, become numbers. Edge labels and attributes are not used. Archives are not unpacked to disk.

    Args:
        path: the folder or zip.
    """
    path = Path(path)
    name, texts = _zip_texts(path) if path.is_file() else _folder_texts(path)
    for needed in ("A", "graph_indicator"):
        if needed not in texts:
            raise InputError(f"{path}: {name}_{needed}.txt is missing; a TU set needs it")
    notes = []
    indicator = _Table(name, "graph_indicator", texts).whole(columns=1)[:, 0]
    labels = _Table(name, "graph_labels", texts) if "graph_labels" in texts else None
    targets = _Table(name, "graph_attributes", texts) if labels is None and "graph_attributes" in texts else None
    listed = labels or targets
    sizes = _sizes(name, indicator, None if listed is None else len(listed.values))
    order = None
    if (np.diff(indicator) < 0).any():
        notes.append("graph ids were not sorted; nodes were reordered by graph")
        order = np.argsort(indicator, kind="stable")

    n = len(indicator)
    x: Array = np.empty((n, 0), np.float32)
    node_y, node_classes = None, None
    if "node_attributes" in texts:
        x = _Table(name, "node_attributes", texts, rows=n).finite()
    if "node_labels" in texts:
        node_y, node_classes = _classes(_Table(name, "node_labels", texts, rows=n).whole())
    edges = _Table(name, "A", texts).whole(columns=2) - 1
    _check_edges(name, texts, edges, indicator)
    if order is not None:
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        edges, x, node_y = place[edges], x[order], None if node_y is None else node_y[order]

    graph_y, graph_classes = None, None
    if labels is not None and labels.is_whole:
        graph_y, graph_classes = _classes(labels.whole())
    elif listed is not None:
        graph_y = listed.finite().astype(np.float64)
        graph_y = graph_y[:, 0] if graph_y.shape[1] == 1 else graph_y
    ignored = [part.replace("_", " ") for part in ("edge_labels", "edge_attributes") if part in texts]
    if labels is not None and "graph_attributes" in texts:
        ignored.append("graph attributes")
    if ignored:
        notes.append(f"{' and '.join(ignored)} were not used")
    return GraphStore.build(
        name,
        x=x,
        sizes=sizes,
        edge_index=edges.T,
        graph_y=graph_y,
        node_y=node_y,
        graph_classes=graph_classes,
        node_classes=node_classes,
        notes=notes,
    )


_Texts = dict[str, Callable[[], bytes]]


def _folder_texts(folder: Path) -> tuple[str, _Texts]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder or file")
    for place in (folder, folder / "raw"):
        paths = sorted(place.glob("*.txt"))
        if any(path.name.endswith("_A.txt") for path in paths):
            return _by_part(folder, {path.name: path.read_bytes for path in paths})
    raise InputError(f"{folder}: no TU set (no *_A.txt in it or in raw/)")


def _zip_texts(path: Path) -> tuple[str, _Texts]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except PermissionError:
        raise
    except (*_DAMAGED, NotImplementedError) as error:
        raise InputError(f"{path}: not a complete zip file ({error}); get it again") from error
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        if ".." in inside.parts or member.filename.startswith(("/", "\\")) or ":" in "".join(inside.parts[:1]):
            raise InputError(
                f"{path}: the member {member.filename!r} points outside the archive; do not trust this file"
            )
        if member.file_size > max(_MAX_RATIO * member.compress_size, 2**20):
            raise InputError(f"{path}: the member {member.filename!r} unpacks to {member.file_size} bytes; refused")
    total = sum(member.file_size for member in members)
    if total > MAX_BYTES:
        raise InputError(f"{path}: unpacks to {total} bytes, more than {MAX_BYTES}; refused")

    def reader(member: zipfile.ZipInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            try:
                with zipfile.ZipFile(path) as archive:
                    return archive.read(member)
            except (*_DAMAGED, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
                raise InputError(f"{path}: {member.filename!r} cannot be read ({error}); get the file again") from error

        return read

    texts: _Texts = {}
    for member in members:
        name = PurePosixPath(member.filename).name
        # macOS packs a metadata file, `._NAME`, along with each file.
        if not name.startswith("."):
            if name in texts:
                raise InputError(f"{path}: contains {name!r} twice; pack one set")
            texts[name] = reader(member)
    return _by_part(path, texts)


def _by_part(path: Path, texts: _Texts) -> tuple[str, _Texts]:
    """Name of the one set among some files, and its files by their part of the set."""
    names = [file.removesuffix("_A.txt") for file in texts if file.endswith("_A.txt")]
    if len(names) != 1:
        raise InputError(f"{path}: holds {len(names)} TU sets (files *_A.txt), expected one")
    (name,) = names
    start, end = f"{name}_", ".txt"
    return name, {f[len(start) : -len(end)]: t for f, t in texts.items() if f.startswith(start) and f.endswith(end)}


@dataclass
class _Table:
    """Numbers of one file: [rows, columns] float64 or int64."""

    name: str
    part: str
    texts: _Texts
    rows: int | None = None

    def __post_init__(self) -> None:
        self.text = self.texts[self.part]()
        self.values = self._parse()
        if self.rows is not None and len(self.values) != self.rows:
            raise InputError(f"{self.file}: has {len(self.values)} lines, but there are {self.rows} nodes")

    @property
    def file(self) -> str:
        return f"{self.name}_{self.part}.txt"

    @property
    def is_whole(self) -> bool:
        return self.values.dtype.kind == "i"

    def whole(self, columns: int | None = None) -> Array:
        """The numbers; raises `InputError` unless they are whole."""
        if not self.is_whole:
            bad = ~(np.isfinite(self.values) & (self.values == np.trunc(self.values)))
            row, column = np.argwhere(bad | (np.abs(self.values) >= 2**62))[0]
            self.fail(row, f"{self.values[row, column]} is not a whole number")
        if columns is not None and self.values.shape[1] != columns:
            self.fail(0, f"{self.values.shape[1]} fields, expected {columns}")
        return self.values

    def finite(self) -> Array:
        """The numbers; raises `InputError` unless they are finite in float32."""
        if (bad := not_finite(self.values)).any():
            row, column = np.argwhere(bad)[0]
            self.fail(row, f"{self.values[row, column]} is not a finite number")
        return self.values

    def fail(self, row: int, what: str) -> NoReturn:
        raise InputError(f"{self.file}, line {self._lines()[row][0]}: {what}")

    def _lines(self) -> list[tuple[int, str]]:
        """Lines that are not blank, with their numbers; slow, for error messages only."""
        lines = enumerate(self.text.decode("utf-8", "replace").splitlines(), 1)
        return [(number, line) for number, line in lines if line.strip()]

    def _parse(self) -> Array:
        if not self.text.strip():
            raise InputError(f"{self.file}: is empty")
        try:
            return self._load(np.int64)
        except (ValueError, OverflowError):
            pass
        try:
            values = self._load(np.float64)
        except ValueError:
            self._explain()
        whole = np.isfinite(values) & (values == np.trunc(values)) & (np.abs(values) < 2**62)
        return values.astype(np.int64) if whole.all() else values

    def _load(self, dtype: type) -> Array:
        return np.loadtxt(io.BytesIO(self.text), dtype=dtype, delimiter=",", comments=None, ndmin=2, encoding="utf-8")

    def _explain(self) -> NoReturn:
        """Raise an error that names the first line that is not numbers, or has another number of fields."""
        lines = self._lines()
        width = lines[0][1].count(",") + 1
        for row, (_, line) in enumerate(lines):
            fields = line.split(",")
            for field in fields:
                try:
                    float(field.strip().replace("_", "?"))
                except ValueError:
                    self.fail(row, f"{field.strip()[:40]!r} is not a number")
            if len(fields) != width:
                self.fail(row, f"{len(fields)} fields, the lines before have {width}")
        raise InputError(f"{self.file}: not lines of numbers separated by commas")


def _sizes(name: str, indicator: Array, listed: int | None) -> Array:
    """Number of nodes of each graph; raises `InputError` for a graph without nodes."""
    file = f"{name}_graph_indicator.txt"
    if indicator.min() < 1:
        raise InputError(f"{file}: has the graph id {indicator.min()}; ids count from 1")
    highest = int(indicator.max())
    if listed is not None and highest > listed:
        raise InputError(f"{file}: has the graph id {highest}, but only {listed} graphs have a label")
    count = highest if listed is None else listed
    if count > len(indicator):
        raise InputError(f"{file}: {count} graphs, but only {len(indicator)} nodes; every graph needs one")
    sizes = np.bincount(indicator - 1, minlength=count)
    if not sizes.all():
        raise InputError(f"{file}: graph {int(np.argmin(sizes)) + 1} has no nodes; every graph needs one")
    return sizes


def _check_edges(name: str, texts: _Texts, edges: Array, indicator: Array) -> None:
    """Raise `InputError` unless every edge joins two nodes of one graph."""
    n = len(indicator)
    outside = ((edges < 0) | (edges >= n)).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        u, v = edges[row] + 1
        wrong = u if not 1 <= u <= n else v
        _Table(name, "A", texts).fail(row, f"edge {u}, {v}: there is no node {wrong}; nodes are 1..{n}")
    between = indicator[edges[:, 0]] != indicator[edges[:, 1]]
    if between.any():
        row = int(np.argmax(between))
        u, v = edges[row] + 1
        graphs = f"graphs {indicator[u - 1]} and {indicator[v - 1]}"
        _Table(name, "A", texts).fail(row, f"edge {u}, {v} joins {graphs}; an edge must stay in its graph")


def _classes(labels: Array) -> tuple[Array, tuple[Value, ...]]:
    """Codes 0..k-1 in the order of the labels, and the labels; several columns make one class, written as text."""
    if labels.shape[1] == 1:
        values = distinct(labels[:, 0])
        return np.searchsorted(values, labels[:, 0]), tuple(values.tolist())
    rows, codes = np.unique(labels, axis=0, return_inverse=True)
    return codes.reshape(-1), tuple(",".join(map(str, row)) for row in rows.tolist())
