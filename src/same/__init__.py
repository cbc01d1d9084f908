"""One graph encoder for many tasks: Single-task Adaptation for Multi-task Embeddings.

>>> import same
>>> same.load("planted")
GraphStore('planted', graphs=300, nodes=7102, edges=14656, attributes=24)
"""

import importlib
from typing import TYPE_CHECKING, Any

from same.errors import InputError

if TYPE_CHECKING:  # For editors and type checkers; at run time see __getattr__.
    from same import graphs, methods, nn, tasks, training, weighting
    from same.config import PRESETS
    from same.estimator import GraphEncoder
    from same.estimator import GraphEncoder as SAME  # noqa: N814
    from same.graphs import GraphStore, from_networkx, from_pyg, load, to_pyg

__version__ = "0.1.0"

# torch takes seconds to import, so nothing is imported before it is used.
_HOMES = {
    "GraphEncoder": "same.estimator",
    "PRESETS": "same.config",
    **dict.fromkeys(("GraphStore", "from_networkx", "from_pyg", "load", "to_pyg"), "same.graphs"),
}
_ROOMS = ("graphs", "methods", "nn", "tasks", "training", "weighting")

__all__ = ["PRESETS", "SAME", "GraphEncoder", "GraphStore", "InputError", "__version__"]
__all__ += ["from_networkx", "from_pyg", "load", "to_pyg"]
__all__ += ["graphs", "methods", "nn", "tasks", "training", "weighting"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"same.{name}")
    if name == "SAME":  # The name of the estimator in version 0.1.
        name = "GraphEncoder"
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'same' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
