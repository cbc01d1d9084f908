"""Labels: a named column of classes or numbers, one entry per graph or per node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from torch import Tensor

from same.errors import InputError
from same.graphs.flat import Array, as_numbers, not_finite

Level = Literal["graph", "node"]
Value = bool | int | float | str

# Numbers mistaken for classes must not cost one output of a model each.
_MOST_CLASSES = 2**16
_DEFAULTS: dict[Level, tuple[str, ...]] = {"graph": ("y",), "node": ("node_y", "y")}


@dataclass(frozen=True, eq=False)
class Labels:
    """One column of labels: classes or numbers, one entry per graph or per node.

    Attributes:
        level: `graph` or `node`.
        y: [n] int32 codes, the indices of the classes, -1 where unknown; or [n] or [n, t] numbers, float32 or float64.
        classes: the distinct values, as they were given; None for numbers.
        known: mask of the entries that are known, of the shape of `y`; None if all are.

    >>> column = Labels.of(["red", "blue", "red"], "graph")
    >>> column.classes, column.y.tolist(), column.values.tolist()
    (('blue', 'red'), [1, 0, 1], ['red', 'blue', 'red'])
    """

    level: Level
    y: Array
    classes: tuple[Value, ...] | None = None
    known: Array | None = None

    @classmethod
    def of(cls, values: Any, level: Level, classes: Sequence[Value] | None = None, *, name: str = "labels") -> "Labels":
        """Build a column from values: whole numbers, booleans and text are classes, floats are numbers.

        Args:
            values: [n] classes, or [n] or [n, t] numbers.
            level: `graph` or `node`.
            classes: values in the order of their codes; the sorted distinct values by default. With classes, floats
                are classes too.
            name: name of the column in error messages.
        """
        array = _array(values, name)
        if array.dtype.kind == "f" and classes is None:
            numbers = as_numbers(array)
            if (bad := not_finite(numbers)).any():
                raise InputError(f"{name}: the target of {level} {np.argwhere(bad)[0][0]} is not finite")
            return cls(level, numbers)
        if array.ndim > 1:
            raise InputError(f"{name}: has the shape {array.shape}, expected one class for each {level}")
        distinct, codes = np.unique(array, return_inverse=True)
        column = cls(level, codes.astype(np.int32), _checked(distinct.tolist(), name))
        if classes is None:
            return column
        column = column.matched(_checked(classes, name))
        if unseen := (column.classes or ())[len(classes) :]:
            raise InputError(f"{name}: has the value {unseen[0]!r}, which is not one of the classes")
        return column

    @classmethod
    def coded(cls, codes: Any, level: Level, classes: Sequence[Value], *, name: str = "labels") -> "Labels":
        """Build a column from codes 0..k-1 and the classes that they stand for.

        >>> Labels.coded([1, 0], "graph", ("blue", "red")).values.tolist()
        ['red', 'blue']
        """
        array, classes = np.asarray(codes), _checked(classes, name)
        if array.dtype.kind not in "iub" or array.ndim != 1 or (len(array) and array.min() < 0):
            given = array.min() if array.dtype.kind == "i" and array.ndim == 1 else f"{array.dtype} {array.shape}"
            raise InputError(f"{name}: where classes are named, labels are codes 0..k-1, not {given}")
        if len(array) and array.max() >= len(classes):
            raise InputError(f"{name}: has the class {array.max()}, but only {len(classes)} class names")
        return cls(level, array.astype(np.int32), classes)

    @staticmethod
    def join(columns: "Sequence[Labels]") -> "Labels":
        """Concatenate columns of one kind; classes are matched by value."""
        classes = columns[0].classes
        joined = []
        for column in columns:
            joined.append(column if classes is None else column.matched(classes))
            classes = joined[-1].classes
        known = None
        if any(column.known is not None for column in columns):
            known = np.concatenate([np.ones(c.y.shape, bool) if c.known is None else c.known for c in columns])
        return Labels(columns[0].level, np.concatenate([column.y for column in joined]), classes, known)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def values(self) -> Array:
        """[n] or [n, t] labels as they were given; arbitrary where unknown."""
        if self.classes is None:
            return self.y
        mixed = len({type(value) for value in self.classes}) > 1
        return np.array(self.classes, object if mixed else None)[self.y]

    @property
    def width(self) -> int:
        """Number of classes, or of numbers per entry: the outputs that a model needs."""
        return self.y.reshape(len(self.y), -1).shape[1] if self.classes is None else len(self.classes)

    @property
    def valid(self) -> bool:
        """Whether codes are codes of classes and numbers are finite; in a file they may not be."""
        if self.classes is None:
            return self.y.dtype.kind == "f" and not not_finite(self.y).any()
        least = 0 if self.known is None else np.where(self.known, 0, -1)
        return self.y.dtype.kind == "i" and bool(((self.y >= least) & (self.y < len(self.classes))).all())

    def take(self, rows: Array) -> "Labels":
        """Entries at some rows."""
        return Labels(self.level, self.y[rows], self.classes, None if self.known is None else self.known[rows])

    def matched(self, classes: Sequence[Value]) -> "Labels":
        """The same classes coded by another sequence of classes, matched by value.

        Values that `classes` lacks follow after it: no model of these classes predicts their codes.

        >>> column = Labels.of([3, 1, 7], "graph").matched((1, 2, 3))
        >>> column.y.tolist(), column.classes
        ([2, 0, 3], (1, 2, 3, 7))
        """
        if self.classes is None:
            raise InputError("numbers cannot be matched to classes; give classes as whole numbers, booleans or text")
        code = {value: i for i, value in enumerate(classes)}
        for value in self.classes:
            code.setdefault(value, len(code))
        table = np.array([*(code[value] for value in self.classes), -1], np.int32)  # The last one is for unknown: -1.
        return replace(self, y=table[self.y], classes=tuple(code))


def find_column(levels: Mapping[str, Level], level: Level, name: str | None = None) -> str | None:
    """Name of the column of a level, or None: `y` for graphs, `node_y` or else `y` for nodes, or the one named."""
    candidates = _DEFAULTS[level] if name is None else (name,)
    return next((column for column in candidates if levels.get(column) == level), None)


def typed_classes(texts: Sequence[str]) -> tuple[Value, ...]:
    """Classes that version 0.1 wrote as text: whole numbers if all of them look like it.

    >>> typed_classes(["-1", "7"]), typed_classes(["01", "7"])
    ((-1, 7), ('01', '7'))
    """
    whole = all(text.removeprefix("-").isdecimal() and str(int(text)) == text for text in texts)
    return tuple(int(text) for text in texts) if whole else tuple(texts)


def _array(values: Any, name: str) -> Array:
    """Values as an array of booleans, integers, floats or text."""
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths") from None
    if array.dtype.kind == "O" or (array.dtype.kind == "U" and not isinstance(values, np.ndarray)):
        objects = np.asarray(values, object)
        if len({isinstance(value, str) for value in objects.reshape(-1)}) > 1:
            raise InputError(f"{name}: labels of different types; give all as text or all as numbers")
        array = np.array(objects.tolist())
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufU":
        given = f"{array.dtype} of the shape {array.shape}"
        raise InputError(f"{name}: labels are whole numbers, booleans or text (classes), or floats; not {given}")
    return array


def _checked(classes: Sequence[Value], name: str) -> tuple[Value, ...]:
    classes = tuple(value.item() if isinstance(value, np.generic) else value for value in classes)
    if len(classes) > _MOST_CLASSES:
        raise InputError(f"{name}: has {len(classes)} classes, at most {_MOST_CLASSES}; give numbers as floats")
    if other := [value for value in classes if not isinstance(value, Value)]:
        raise InputError(f"{name}: the class {other[0]!r} is neither a number, a boolean nor text")
    if len(set(classes)) < len(classes):
        raise InputError(f"{name}: the classes {', '.join(map(str, classes[:9]))} are not distinct")
    return classes
