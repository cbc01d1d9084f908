"""For the reference: show the doctests of docstrings as code, wherever they are."""

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Put a fence around every doctest."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object that was loaded."""
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value)
