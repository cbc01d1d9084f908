"""Stores as folders of memory-mapped arrays: `store.json`, and one file per array."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from same.errors import InputError
from same.files import atomic
from same.graphs.flat import Array
from same.graphs.labels import Labels
from same.graphs.store import GraphStore

HEADER = "store.json"

_FORMAT = 2
_CHECKED_NUMBERS = 2**24  # The numbers of larger stores are checked when they are cut.
_POINTER, _INDEX, _FLOATS = ("<i8",), ("<i4",), ("<f4", "<f8")
_DTYPES = {"x": _FLOATS, "edges": _INDEX, "labels": _INDEX + _FLOATS, "known": ("|b1",)}
_DTYPES |= {"node_ptr": _POINTER, "edge_ptr": _POINTER}


def save_store(store: GraphStore, folder: str | Path) -> None:
    """Write a store, without its inputs, to a new or empty folder that `open_store` maps into memory."""
    write_store(folder, [store])


def write_store(folder: str | Path, parts: Iterable[GraphStore]) -> None:
    """Write many stores to a folder as one, one after the other: only one needs to be in memory.

    Args:
        folder: a folder that does not exist yet or is empty.
        parts: stores with the same attributes, label columns and classes.
    """
    folder = Path(folder)
    with atomic(folder, folder=True) as temporary:
        header: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        ends = {"node_ptr": 0, "edge_ptr": 0}
        for part in parts:
            arrays = _arrays(part)
            shapes = {key: {"dtype": array.dtype.str, "shape": array.shape[1:]} for key, array in arrays.items()}
            # JSON keeps whole numbers, floats, booleans and text apart.
            labels = [{"name": name, "level": c.level, "classes": c.classes} for name, c in part.labels.items()]
            if not header:
                header = {"format": _FORMAT, "name": part.name, "arrays": shapes, "labels": labels, "notes": part.notes}
                lengths = dict.fromkeys(arrays, 0)
            if (shapes, labels) != (header["arrays"], header["labels"]):
                raise InputError(f"{folder}: the parts do not have the same arrays, columns and classes")
            for key, array in arrays.items():
                if key in ends:
                    # Each part counts from 0: shift it, without the first pointer, which the previous part wrote.
                    array = array[bool(lengths[key]) :] + ends[key]
                    ends[key] = int(array[-1])
                with (temporary / f"{key}.bin").open("ab") as file:
                    np.ascontiguousarray(array).tofile(file)
                lengths[key] += len(array)
        if not header:
            raise InputError(f"{folder}: there are no graphs to write")
        for key, about in header["arrays"].items():
            about["shape"] = [lengths[key], *about["shape"]]
        (temporary / HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")


def open_store(folder: str | Path) -> GraphStore:
    """Open the store in a folder; its arrays are memory-mapped, so that only what is cut is read."""
    folder = Path(folder)
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        if header["format"] != _FORMAT:
            what = f"written in format {header['format']}, this version reads {_FORMAT}"
            raise InputError(f"{folder}: {what}; write the store again")
        arrays = {key: _map(folder, key, **about) for key, about in header["arrays"].items()}
        labels = {}
        for i, about in enumerate(header["labels"]):
            classes = None if about["classes"] is None else tuple(about["classes"])
            labels[str(about["name"])] = Labels(about["level"], arrays[f"labels{i}"], classes, arrays.get(f"known{i}"))
        name, notes = str(header["name"]), tuple(map(str, header["notes"]))
        x, node_ptr, edges, edge_ptr = (arrays[key] for key in ("x", "node_ptr", "edges", "edge_ptr"))
        store = GraphStore(name, x, node_ptr, edges.T, edge_ptr, labels, notes, checked=False)
        _check_shapes(store, folder)
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: missing; {folder} is not a complete store") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder / HEADER}: not the header of a store ({error})") from error
    if store.x.size + 2 * store.num_edges > _CHECKED_NUMBERS:
        return store
    store.check()
    return replace(store, checked=True)


def _arrays(store: GraphStore) -> dict[str, Array]:
    """The arrays as they lie on disk: every array grows along its first axis."""
    arrays = {"x": store.x, "node_ptr": store.node_ptr, "edges": store.edges.T, "edge_ptr": store.edge_ptr}
    for i, column in enumerate(store.labels.values()):
        arrays[f"labels{i}"] = column.y
        if column.known is not None:
            arrays[f"known{i}"] = column.known
    return arrays


def _map(folder: Path, key: str, *, dtype: str, shape: list[int]) -> Array:
    path, allowed = folder / f"{key}.bin", _DTYPES[key.rstrip("0123456789")]
    if dtype not in allowed:
        raise InputError(f"{path}: holds {dtype}, expected {' or '.join(allowed)}")
    expected, size = math.prod(shape) * np.dtype(dtype).itemsize, path.stat().st_size
    if min(shape) < 0 or size != expected:
        raise InputError(f"{path}: has {size} bytes, its header says {expected}; write the store again")
    if not expected:
        return np.empty(shape, dtype)
    # As a plain array: numpy's class for mapped arrays makes every small cut twice as expensive.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=tuple(shape)))


def _check_shapes(store: GraphStore, folder: Path) -> None:
    for key, count, least in (("node_ptr", len(store.x), 1), ("edge_ptr", store.edges.shape[-1], 0)):
        ptr = getattr(store, key)
        if not (ptr.ndim == 1 and len(ptr) > 1 and ptr[0] == 0 and ptr[-1] == count and np.diff(ptr).min() >= least):
            raise InputError(f"{folder / key}.bin: does not say where graphs begin and end; write the store again")
    rows = {"graph": store.num_graphs, "node": store.num_nodes}
    fits = [
        len(c) == rows[c.level]
        and c.y.ndim <= (2 if c.classes is None else 1)
        and (c.known is None or c.known.shape == c.y.shape)
        for c in store.labels.values()
    ]
    if (store.x.ndim, len(store.edges), len(store.edge_ptr)) != (2, 2, len(store.node_ptr)) or not all(fits):
        raise InputError(f"{folder / HEADER}: the arrays do not belong together; write the store again")
