"""The methods by name. Importing this module does not import torch, so that help is instant."""

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

from same.errors import InputError


class Entry(NamedTuple):
    """A registered method: where its class is, a one-line summary, and a reference."""

    home: str
    summary: str
    reference: str = ""


METHODS: dict[str, Entry] = {
    "isame": Entry("same.methods.same:ISAME", "adapts encoder and head to each task alone (iSAME)", "Algorithm 1"),
    "esame": Entry("same.methods.same:ESAME", "adapts only the head to each task alone (eSAME)", "Algorithm 1"),
    "classical": Entry(
        "same.methods.classical:Classical", "learns all tasks at once on every batch (Cl)", "Algorithm 2"
    ),
    "finetuned": Entry("same.methods.finetuned:Finetuned", "classical on three tasks, then on those named (FT)", "Q2"),
    "traditional": Entry("same.methods.traditional:Traditional", "adapts to all tasks at once", "Algorithm 3"),
    "infomax": Entry(
        "same.methods.infomax:Infomax", "self-supervised reference without labels", "Veličković et al. 2019"
    ),
    "untrained": Entry("same.methods.untrained:Untrained", "the encoder at its initialisation, a floor"),
}
"""The registered methods. A new method is one new file and one line here, or a call of `register`."""

_REGISTERED: dict[str, Any] = {}


def get(name: str) -> Any:
    """Return the class of a method by its name.

    >>> get("esame").adapts
    'head'
    >>> get("esmae")
    Traceback (most recent call last):
    same.errors.InputError: method: there is no 'esmae'; did you mean 'esame'?
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the methods are {', '.join(METHODS)}"
        raise InputError(f"method: there is no {name!r}; {hint}")
    module, _, attribute = METHODS[name].home.partition(":")
    return getattr(importlib.import_module(module), attribute)


def register(method: Any) -> Any:
    """Register a method class under its `name`; usable as a decorator."""
    name = getattr(method, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"method: {getattr(method, '__name__', method)} needs a name, such as name = 'reptile'")
    home = f"{method.__module__}:{method.__qualname__}"
    if name in METHODS and METHODS[name].home != home:
        raise InputError(f"method: the name {name!r} is taken; choose another one")
    METHODS[name] = Entry(home, str(method.summary), str(method.reference))
    _REGISTERED[name] = method
    return method


def load(source: str) -> str:
    """Import a method from `FILE.py:CLASS` or `package.module:CLASS`, register it, and return its name."""
    module, _, attribute = source.rpartition(":")
    try:
        method = getattr(_import(module), attribute)
    except (ImportError, AttributeError, OSError, SyntaxError) as error:
        raise InputError(f"method: {source!r} cannot be imported ({error})") from None
    return str(register(method).name)


def _import(module: str) -> Any:
    if not module.endswith(".py"):
        return importlib.import_module(module)
    path = Path(module)
    if not path.is_file():
        raise ImportError(f"there is no file {module}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, loaded)
    spec.loader.exec_module(loaded)
    return loaded
