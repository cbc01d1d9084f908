"""Labels: named columns of classes or numbers, one entry per graph or per node."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from torch import Tensor

from same.errors import InputError
from same.graphs.flat import Array, as_numbers, not_finite

Level = Literal["graph", "node"]
Value = bool | int | float | str

_MOST_CLASSES = 2**16  # Numbers mistaken for classes must not cost one output of a model each.


@dataclass(frozen=True, eq=False)
class Labels:
    """One column of labels: classes or numbers, one entry per graph or per node.

    Attributes:
        level: `graph` or `node`.
        y: [n] int32 codes, the indices of the classes, -1 where unknown; or [n] or [n, t] numbers, float32 or float64.
            In a batch they are tensors, int64 or float32.
        classes: the distinct values, as they were given; None for numbers.
        known: mask of the entries that are known, of the shape of `y`; None if all are.

    >>> column = Labels.of(["red", "blue", "red"], "graph")
    >>> column.classes, column.y.tolist(), column.values.tolist()
    (('blue', 'red'), [1, 0, 1], ['red', 'blue', 'red'])
    """

    level: Level
    y: Any
    classes: tuple[Value, ...] | None = None
    known: Any = None

    @classmethod
    def of(cls, values: Any, level: Level, *, name: str = "labels") -> "Labels":
        """Build a column from values: whole numbers, booleans and text are classes, floats are numbers.

        Args:
            values: [n] classes, or [n] or [n, t] numbers.
            level: `graph` or `node`.
            name: name of the column in error messages.
        """
        array = _array(values, name)
        if array.dtype.kind == "f":
            column = cls(level, as_numbers(array))
        elif array.ndim > 1:
            raise InputError(f"{name}: has the shape {array.shape}, expected one class for each {level}")
        else:
            classes, codes = np.unique(array, return_inverse=True)
            column = cls(level, codes.astype(np.int32), tuple(classes.tolist()))
        column.check(name)
        return column

    def check(self, name: str) -> None:
        """Raise `InputError` for the column `name` unless numbers are finite and codes have distinct classes."""
        y, classes = self.y, self.classes
        if y.dtype.kind != ("f" if classes is None else "i"):
            raise InputError(f"{name}: {y.dtype} are not {'numbers' if classes is None else 'codes of classes'}")
        if classes is None:
            if (bad := not_finite(y)).any():
                raise InputError(f"{name}: the target of {self.level} {np.argwhere(bad)[0][0]} is not finite")
            return
        if len(classes) > _MOST_CLASSES:
            raise InputError(f"{name}: has {len(classes)} classes, at most {_MOST_CLASSES}; give numbers as floats")
        if other := [value for value in classes if not isinstance(value, Value)]:
            raise InputError(f"{name}: the class {other[0]!r} is neither a number, a boolean nor text")
        if len(set(classes)) < len(classes):
            raise InputError(f"{name}: the classes {', '.join(map(str, classes[:9]))} are not distinct")
        bad = (y < (0 if self.known is None else np.where(self.known, 0, -1))) | (y >= len(classes))
        if bad.any():
            raise InputError(f"{name}: has the code {y[bad][0]}, but the classes have the codes 0..{len(classes) - 1}")

    @staticmethod
    def join(columns: "Sequence[Labels]") -> "Labels":
        """Concatenate columns of one kind; classes are matched by value."""
        joined = [columns[0]]
        for column in columns[1:]:
            joined.append(column if column.classes is None else column.matched(joined[-1].classes or ()))
        known = [np.ones(c.y.shape, bool) if c.known is None else c.known for c in joined]
        mask = None if all(each.all() for each in known) else np.concatenate(known)
        return replace(joined[-1], y=np.concatenate([column.y for column in joined]), known=mask)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def values(self) -> Array:
        """[n] or [n, t] labels as they were given, text as objects; arbitrary where unknown."""
        if self.classes is None:
            return self.y
        kinds = {type(value) for value in self.classes}
        return np.array(self.classes, object if len(kinds) > 1 or str in kinds else None)[np.asarray(self.y)]

    def map(self, change: Callable[[Any], Any]) -> "Labels":
        """The column with a function applied to its arrays."""
        return Labels(self.level, change(self.y), self.classes, None if self.known is None else change(self.known))

    def take(self, rows: Any) -> "Labels":
        """Entries at some rows."""
        return self.map(lambda values: values[rows])

    def matched(self, classes: Sequence[Value]) -> "Labels":
        """The same classes coded by other `classes`, matched by value; values that it lacks get later codes."""
        if self.classes is None:
            raise InputError("numbers cannot be matched to classes; give classes as whole numbers, booleans or text")
        code = {value: i for i, value in enumerate(classes)}
        for value in self.classes:
            code.setdefault(value, len(code))
        table = np.array([*(code[value] for value in self.classes), -1], np.int32)  # The last one is for unknown: -1.
        return replace(self, y=table[self.y], classes=tuple(code))


class Graphs:
    """What a `GraphStore` and a `GraphBatch` have in common: sizes, and label columns by name and level."""

    x: Any
    node_ptr: Any
    labels: Mapping[str, Labels]

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes in all graphs."""
        return len(self.x)

    def column_name(self, level: Level, name: str | None = None) -> str | None:
        """Name of a column of this level, by default `y` for graphs and `node_y` or else `y` for nodes; or None."""
        names = (name,) if name is not None else ("y",) if level == "graph" else ("node_y", "y")
        return next((n for n in names if n in self.labels and self.labels[n].level == level), None)

    def column(self, level: Level, name: str | None = None) -> Labels | None:
        """The column that `column_name` names; None if there is none."""
        column = self.column_name(level, name)
        return None if column is None else self.labels[column]

    def counts(self, level: Level) -> dict[Value, int]:
        """Number of graphs or nodes of each class; empty without classes."""
        column = self.column(level)
        if column is None or column.classes is None:
            return {}
        counts = np.bincount(column.y[column.y >= 0], minlength=len(column.classes))
        return dict(zip(column.classes, counts.tolist(), strict=True))

    @property
    def graph_y(self) -> Any:
        """[g] codes, or [g] or [g, t] numbers, of the graphs; None if there are none."""
        return None if (column := self.column("graph")) is None else column.y

    @property
    def node_y(self) -> Any:
        """[n] codes, or [n] or [n, t] numbers, of the nodes; None if there are none."""
        return None if (column := self.column("node")) is None else column.y

    @property
    def graph_classes(self) -> tuple[Value, ...] | None:
        """Classes of the graphs, as the source has them."""
        return None if (column := self.column("graph")) is None else column.classes

    @property
    def node_classes(self) -> tuple[Value, ...] | None:
        """Classes of the nodes, as the source has them."""
        return None if (column := self.column("node")) is None else column.classes


def _array(values: Any, name: str) -> Array:
    """Values as an array of booleans, integers or floats, or as objects if they are text."""
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths") from None
    text = False
    if array.dtype.kind in "OU":
        array = np.asarray(values, object)  # Arrays of text would lose NULs at the end.
        kinds = {isinstance(value, str) for value in array.reshape(-1)}
        if len(kinds) > 1:
            raise InputError(f"{name}: labels of different types; give all as text or all as numbers")
        text = kinds == {True}
        if not text:
            array = np.array(array.tolist())
    if array.ndim not in (1, 2) or not (text or array.dtype.kind in "biuf"):
        given = f"{array.dtype} of the shape {array.shape}"
        raise InputError(f"{name}: labels are whole numbers, booleans or text (classes), or floats; not {given}")
    return array
