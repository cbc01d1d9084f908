"""One graph encoder for many tasks: Single-task Adaptation for Multi-task Embeddings.

>>> import same
>>> same.load("planted")
GraphStore('planted', graphs=300, nodes=7102, edges=14656, attributes=24)
"""

import importlib
from typing import TYPE_CHECKING, Any

from same.errors import InputError

if TYPE_CHECKING:
    from same import graphs
    from same.config import PRESETS
    from same.estimator import SAME
    from same.graphs import GraphStore, from_networkx, from_pyg, load, to_pyg

__version__ = "0.1.0"
__all__ = [
    "PRESETS",
    "SAME",
    "GraphStore",
    "InputError",
    "__version__",
    "from_networkx",
    "from_pyg",
    "graphs",
    "load",
    "to_pyg",
]

# torch takes seconds to import, so nothing is imported before it is used.
_HOMES = {"SAME": "same.estimator", "PRESETS": "same.config"} | dict.fromkeys(
    ("GraphStore", "from_networkx", "from_pyg", "load", "to_pyg"), "same.graphs"
)


def __getattr__(name: str) -> Any:
    if name == "graphs":
        return importlib.import_module("same.graphs")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'same' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
