"""Reader of the text format of the TU collection (Morris et al., 2020)."""

import io
import lzma
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np

from same.errors import InputError
from same.graphs.flat import Array, not_finite
from same.graphs.labels import Labels, Level
from same.graphs.store import GraphStore

MAX_BYTES = 8 * 2**30  # Largest size of a download or an unpacked archive, far beyond any set of the collection.
_MAX_RATIO = 200
_DAMAGED = (zipfile.BadZipFile, OSError, ValueError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_UNUSED = ("_edge_labels.txt", "_edge_attributes.txt")


def read_tu(path: str | Path) -> GraphStore:
    """Read a set in TU format from a folder (`DS_A.txt` …, in it or in its `raw` folder) or a zip.

    Node attributes become `x`, graph labels the column `y`, and node labels the column `node_y`; several labels of a
    node make one class, such as `0,1`. Graph labels that are not whole numbers, and graph attributes of a set without
    graph labels, become numbers. Edge labels and attributes are not used. Archives are not unpacked to disk.
    """
    path = Path(path)
    files = _zip_files(path) if path.is_file() else _folder_files(path)
    names = [file.removesuffix("_A.txt") for file in files if file.endswith("_A.txt")]
    if len(names) != 1:
        raise InputError(f"{path}: holds {len(names)} TU sets (files *_A.txt), expected one")
    (name,) = names

    def has(part: str) -> bool:
        return f"{name}_{part}.txt" in files

    def table(part: str, rows: int | None = None) -> _Table:
        return _Table(f"{name}_{part}.txt", files[f"{name}_{part}.txt"], rows)

    if not has("graph_indicator"):
        raise InputError(f"{path}: {name}_graph_indicator.txt is missing; a TU set needs it")
    indicator, notes = table("graph_indicator").whole(columns=1)[:, 0], []
    n = len(indicator)
    labels = table("graph_labels") if has("graph_labels") else None
    targets = table("graph_attributes") if labels is None and has("graph_attributes") else labels
    sizes = _sizes(f"{name}_graph_indicator.txt", indicator, None if targets is None else len(targets.values))
    x = table("node_attributes", n).finite() if has("node_attributes") else np.empty((n, 0), np.float32)
    node_y = _classes(table("node_labels", n).whole(), "node") if has("node_labels") else None
    edges = _edges(table("A"), indicator)
    if (np.diff(indicator) < 0).any():
        notes.append("graph ids were not sorted; nodes were reordered by graph")
        order = np.argsort(indicator, kind="stable")
        edges, x, node_y = np.argsort(order)[edges], x[order], None if node_y is None else node_y.take(order)
    graph_y: Labels | Array | None = None
    if labels is not None and not labels.fraction.any():
        graph_y = _classes(labels.values, "graph")
    elif targets is not None:
        graph_y = targets.finite().astype(np.float64)
        graph_y = graph_y[:, 0] if graph_y.shape[1] == 1 else graph_y
    unused = ["edge_labels", "edge_attributes"] + ["graph_attributes"] * (labels is not None)
    if unused := [part.replace("_", " ") for part in unused if has(part)]:
        notes.append(f"{' and '.join(unused)} were not used")
    return GraphStore.build(name, x=x, sizes=sizes, edge_index=edges.T, graph_y=graph_y, node_y=node_y, notes=notes)


def _folder_files(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder or file")
    for place in (folder, folder / "raw"):
        paths = sorted(place.glob("*.txt"))
        if any(path.name.endswith("_A.txt") for path in paths):
            return {path.name: b"" if path.name.endswith(_UNUSED) else path.read_bytes() for path in paths}
    raise InputError(f"{folder}: no TU set (no *_A.txt in it or in raw/)")


def _zip_files(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    what = "not a complete zip file"
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _check_members(path, members)
            for member in members:
                file, what = PurePosixPath(member.filename).name, f"{member.filename!r} cannot be read"
                if file in files:
                    raise InputError(f"{path}: contains {file!r} twice; pack one set")
                if not file.startswith("."):  # macOS packs a metadata file, `._NAME`, along with each file.
                    files[file] = b"" if file.endswith(_UNUSED) else archive.read(member)
    except (InputError, PermissionError):
        raise
    except _DAMAGED as error:
        raise InputError(f"{path}: {what} ({error}); get it again") from error
    return files


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Raise `InputError` for paths out of the archive, and before anything large is unpacked."""
    for member in members:
        name, inside = member.filename, PurePosixPath(member.filename.replace("\\", "/"))
        if ".." in inside.parts or inside.is_absolute() or ":" in "".join(inside.parts[:1]):
            raise InputError(f"{path}: the member {name!r} points outside the archive; do not trust this file")
        if member.file_size > max(_MAX_RATIO * member.compress_size, 2**20):
            raise InputError(f"{path}: the member {name!r} unpacks to {member.file_size} bytes; refused")
    total = sum(member.file_size for member in members)
    if total > MAX_BYTES:
        raise InputError(f"{path}: unpacks to {total} bytes, more than {MAX_BYTES}; refused")


class _Table:
    """Numbers of one file: [rows, columns] int64 if all are whole, else float64."""

    def __init__(self, file: str, text: bytes, rows: int | None = None) -> None:
        self.file, self.text = file, text
        if not text.strip():
            raise InputError(f"{file}: is empty")
        try:
            values = np.loadtxt(io.BytesIO(text), delimiter=",", comments=None, ndmin=2, encoding="utf-8")
        except ValueError:
            self._explain()
        if rows is not None and len(values) != rows:
            raise InputError(f"{file}: has {len(values)} lines, but there are {rows} nodes")
        self.fraction = ~(np.abs(values) < 2**53) | (values != np.trunc(values))
        self.values: Array = values if self.fraction.any() else values.astype(np.int64)

    def whole(self, columns: int | None = None) -> Array:
        self._refuse(self.fraction, "is not a whole number")
        if columns is not None and self.values.shape[1] != columns:
            self.fail(0, f"{self.values.shape[1]} fields, expected {columns}")
        return self.values

    def finite(self) -> Array:
        self._refuse(not_finite(self.values), "is not a finite number")
        return self.values

    def _refuse(self, bad: Array, what: str) -> None:
        if bad.any():
            row, column = np.argwhere(bad)[0]
            self.fail(row, f"{self.values[row, column]} {what}")

    def fail(self, row: int, what: str) -> NoReturn:
        raise InputError(f"{self.file}, line {self._lines()[row][0]}: {what}")

    def _lines(self) -> list[tuple[int, str]]:
        """Lines that are not blank, with their numbers; slow, for error messages only."""
        lines = enumerate(self.text.decode("utf-8", "replace").splitlines(), 1)
        return [(number, line) for number, line in lines if line.strip()]

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


def _sizes(file: str, indicator: Array, listed: int | None) -> Array:
    """Number of nodes of each graph; raises `InputError` for a graph without nodes."""
    ids, sizes = np.unique(indicator, return_counts=True)
    count = ids[-1] if listed is None else listed
    if ids[0] < 1:
        raise InputError(f"{file}: has the graph id {ids[0]}; ids count from 1")
    if ids[-1] > count:
        raise InputError(f"{file}: has the graph id {ids[-1]}, but only {count} graphs have a label")
    if len(ids) < count:
        first = np.argmax(np.append(ids, 0) != np.arange(1, len(ids) + 2)) + 1
        raise InputError(f"{file}: there are {count} graphs, but graph {first} has no nodes; every graph needs one")
    return sizes


def _edges(table: _Table, indicator: Array) -> Array:
    """[E, 2] edges, with nodes counted from 0; raises `InputError` unless each joins two nodes of one graph."""
    edges, n = table.whole(columns=2), len(indicator)
    inside = (edges >= 1) & (edges <= n)
    if not inside.all():
        row = int(np.argmin(inside.all(axis=1)))
        u, v = edges[row]
        wrong = v if inside[row, 0] else u
        table.fail(row, f"edge {u}, {v}: there is no node {wrong}; nodes are 1..{n}")
    graphs = indicator[edges - 1]
    if (between := graphs[:, 0] != graphs[:, 1]).any():
        row = int(np.argmax(between))
        (u, v), (a, b) = edges[row], graphs[row]
        table.fail(row, f"edge {u}, {v} joins graphs {a} and {b}; an edge must stay in its graph")
    return edges - 1


def _classes(labels: Array, level: Level) -> Labels | Array:
    """Labels of one column as they are; several columns make one class, written as text."""
    if labels.shape[1] == 1:
        return labels[:, 0]
    rows, codes = np.unique(labels, axis=0, return_inverse=True)
    classes = tuple(",".join(map(str, row)) for row in rows.tolist())
    return Labels(level, codes.reshape(-1).astype(np.int32), classes)
