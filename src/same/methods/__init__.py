"""Methods: from a model and what one step draws to the losses to minimise, one per task."""

import importlib
from typing import Any

from same.methods.registry import METHODS, get, load, register

# The methods import torch, which takes seconds; the registry does not.
_HOMES = {
    "Method": "base",
    "make_method": "base",
    "outer_losses": "same",
    "SAME": "same",
    "ISAME": "same",
    "ESAME": "same",
    "Classical": "classical",
    "Finetuned": "finetuned",
    "Traditional": "traditional",
    "Infomax": "infomax",
    "Untrained": "untrained",
}

__all__ = ["METHODS", "get", "load", "register", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"same.methods.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'same.methods' has no attribute {name!r}")
