"""Reads sets of graphs in the text format of the TU collection (Morris et al., 2020)."""

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
from same.graphs.store import GraphStore, distinct

Array = np.ndarray

# Far beyond any set of the collection, and what an archive that lies about itself can cost at most.
MAX_BYTES = 8 * 2**30
"""The most that an archive may unpack to, or a download be."""
_MAX_RATIO = 200
_MAX_TEXT = 2**28  # What is read in one go takes seven times its size.
_TENS = np.array([float(f"1e{places}") for places in range(23)])
_DAMAGED = (zipfile.BadZipFile, OSError, ValueError)


def read_tu(path: str | Path) -> GraphStore:
    """The set in a folder (`DS_A.txt` …, there or in its `raw` folder) or zip in TU format.

    Node attributes become `x`, node labels `node_y`, and graph labels `graph_y`, remapped to 0..k-1; graph labels that
    are not whole numbers, or graph attributes where there are no graph labels, become float targets. Edge labels and
    attributes are not used. An archive is read where it lies: nothing is unpacked.

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
    sizes = _sizes(name, texts, indicator, None if listed is None else len(listed.values))
    order = None
    if (np.diff(indicator) < 0).any():
        notes.append("graph ids were not sorted; nodes were reordered by graph")
        order = np.argsort(indicator, kind="stable")

    n = len(indicator)
    x, node_y, node_classes = np.empty((n, 0), np.float32), None, None
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
        graph_y = listed.finite()
        graph_y = graph_y[:, 0] if graph_y.shape[1] == 1 else graph_y
    ignored = [part.replace("_", " ") for part in ("edge_labels", "edge_attributes") if part in texts]
    if labels is not None and "graph_attributes" in texts:
        ignored.append("graph attributes")
    if ignored:
        notes.append(f"{' and '.join(ignored)} are there and were not used")
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
    raise InputError(f"{folder}: holds no TU set (no *_A.txt, neither there nor in raw/)")


def _zip_texts(path: Path) -> tuple[str, _Texts]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except PermissionError:
        raise
    except (*_DAMAGED, NotImplementedError) as error:
        raise InputError(f"{path}: not a whole zip file ({error}); get it again") from error
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        if ".." in inside.parts or member.filename.startswith(("/", "\\")) or ":" in "".join(inside.parts[:1]):
            raise InputError(
                f"{path}: the member {member.filename!r} leads outside the archive; do not trust this file"
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
            except (
                zipfile.BadZipFile,
                zlib.error,
                lzma.LZMAError,
                EOFError,
                RuntimeError,
                OSError,
                ValueError,
            ) as error:
                raise InputError(f"{path}: {member.filename!r} cannot be read ({error}); get the file again") from error

        return read

    texts: _Texts = {}
    for member in members:
        name = PurePosixPath(member.filename).name
        # Some systems pack shadows of files, `._NAME`, along with them.
        if not name.startswith("."):
            if name in texts:
                raise InputError(f"{path}: holds {name!r} twice; pack one set")
            texts[name] = reader(member)
    return _by_part(path, texts)


def _by_part(path: Path, texts: _Texts) -> tuple[str, _Texts]:
    """The name of the one set among some files, and its files by what they hold."""
    names = [file.removesuffix("_A.txt") for file in texts if file.endswith("_A.txt")]
    if len(names) != 1:
        raise InputError(f"{path}: holds {len(names)} TU sets (files *_A.txt), expected one")
    (name,) = names
    start, end = f"{name}_", ".txt"
    return name, {f[len(start) : -len(end)]: t for f, t in texts.items() if f.startswith(start) and f.endswith(end)}


@dataclass
class _Table:
    """The numbers of one file: [rows, columns] float64 or int64."""

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
        """The numbers, which must be whole."""
        if not self.is_whole:
            bad = ~(np.isfinite(self.values) & (self.values == np.trunc(self.values)))
            row, column = np.argwhere(bad | (np.abs(self.values) >= 2**62))[0]
            self.fail(row, f"{self.values[row, column]} is not a whole number")
        if columns is not None and self.values.shape[1] != columns:
            self.fail(0, f"{self.values.shape[1]} fields, expected {columns}")
        return self.values

    def finite(self) -> Array:
        """The numbers as float32, which must be finite."""
        with np.errstate(over="ignore"):
            values = self.values.astype(np.float32)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            self.fail(row, f"{self.values[row, column]} is not a finite number")
        return values

    def fail(self, row: int, what: str) -> NoReturn:
        raise InputError(f"{self.file}, line {self._lines()[row][0]}: {what}")

    def _lines(self) -> list[tuple[int, str]]:
        """The lines that hold something, with their numbers; for messages only, it is slow."""
        lines = enumerate(self.text.decode("utf-8", "replace").splitlines(), 1)
        return [(number, line) for number, line in lines if line.strip()]

    def _parse(self) -> Array:
        if not self.text.strip():
            raise InputError(f"{self.file}: is empty")
        values = _decimals(self.text)
        if values is None:
            try:
                values = self._load(np.int64)
            except (ValueError, OverflowError):
                try:
                    values = self._load(np.float64)
                except ValueError:
                    self._explain()
        if values.dtype.kind == "i":
            return values
        whole = np.isfinite(values) & (values == np.trunc(values)) & (np.abs(values) < 2**62)
        return values.astype(np.int64) if whole.all() else values

    def _load(self, dtype: type) -> Array:
        return np.loadtxt(io.BytesIO(self.text), dtype=dtype, delimiter=",", comments=None, ndmin=2, encoding="utf-8")

    def _explain(self) -> NoReturn:
        """Says which line is not numbers, or has another number of them than the first."""
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
        raise InputError(f"{self.file}: cannot be read as lines of numbers with commas between them")


def _decimals(text: bytes) -> Array | None:
    """The numbers that `np.loadtxt` reads, in a third of its time; None where a field is not plain digits and a point.

    A number is read as if it had no point and divided by a power of ten. Both are exact below 2⁵³ and 10²², so that the
    quotient is the float nearest to what is written.
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    text = text.strip(b"\n") + b"\n"
    if len(text) > _MAX_TEXT or b"- " in text or text.translate(None, b"0123456789-., \n"):
        return None
    chars = np.frombuffer(text, np.uint8)
    digit = chars >= ord("0")
    ends = np.flatnonzero((chars == ord(",")) | (chars == ord("\n")))
    points = np.flatnonzero(chars == ord("."))
    last = chars[ends] == ord("\n")
    columns = int(last.argmax()) + 1
    if len(last) % columns or (last.reshape(-1, columns) != (np.arange(columns) == columns - 1)).any():
        return None
    if len(points) not in (0, len(ends)) or not digit[ends - 1].all() or not digit[points + 1].all():
        return None
    try:
        values = np.fromstring(text.translate(None, b".").replace(b"\n", b",")[:-1], np.int64, sep=",")
    except ValueError:
        return None
    if len(values) != len(ends) or values.min() <= -(2**53) or values.max() >= 2**53:
        return None
    if len(points):
        places = ends - points - 1
        if places.min() < 0 or places.max() > 22 or (points[1:] < ends[:-1]).any():
            return None
        values = values / _TENS[places]
        signed = np.searchsorted(ends, np.flatnonzero(chars == ord("-")))
        values[signed] = np.copysign(values[signed], -1.0)  # Of -0.0 only the sign was lost.
    return values.reshape(-1, columns)


def _sizes(name: str, texts: _Texts, indicator: Array, listed: int | None) -> Array:
    """How many nodes each graph has; every graph must have one."""
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
    """Every edge must join two nodes of one graph."""
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


def _classes(labels: Array) -> tuple[Array, tuple[str, ...]]:
    """Classes 0..k-1 in the order of the labels, and what the labels were; several columns make one label."""
    if labels.shape[1] == 1:
        kinds = distinct(labels[:, 0])[:, None]
        classes = np.searchsorted(kinds[:, 0], labels[:, 0])
    else:
        kinds, classes = np.unique(labels, axis=0, return_inverse=True)
    return classes.reshape(-1), tuple(",".join(map(str, kind)) for kind in kinds.tolist())
