"""Methods: from a model and what one step draws to the losses to minimise, one per task."""

import importlib
from typing import Any

from same.methods.registry import METHODS, get, load, register

# The methods import torch, which takes seconds; the registry does not.
_HOMES = {"Method": "base", "make_method": "base", "outer_losses": "same", "SAME": "same"}
_CLASSES = {entry.home.partition(":")[2]: name for name, entry in METHODS.items()}

__all__ = ["METHODS", "get", "load", "register", *_HOMES, *_CLASSES]


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return get(_CLASSES[name])
    if name in _HOMES:
        return getattr(importlib.import_module(f"same.methods.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'same.methods' has no attribute {name!r}")
