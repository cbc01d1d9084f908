"""For the reference: sessions of Python in docstrings are shown as such, wherever they stand."""

import re
from typing import Any

import griffe

_SESSION = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around every doctest."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every object that was loaded."""
        if obj.docstring:
            obj.docstring.value = _SESSION.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
