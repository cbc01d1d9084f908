"""The rooms of the package: who may import whom, and the page that shows it."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def rooms():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs/rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_room_imports_one_to_its_right(rooms):
    assert rooms.wrong() == []


def test_an_import_to_the_right_is_noticed(rooms, tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "store.py").write_text("def f():\n    from same import tasks\n")
    (tmp_path / "extra.py").write_text("import same.errors\n")
    monkeypatch.setattr(rooms, "PACKAGE", tmp_path)
    assert rooms.wrong() == ["extra imports leaves: extra.py", "graphs imports tasks: graphs/store.py"]


def test_linear_models_import_leaves_only(rooms):
    assert {other for room, other in rooms.edges() if room == "linear"} == {"leaves"}


def test_no_import_is_hidden_from_the_running_program(rooms):
    """An import under TYPE_CHECKING dodges a cycle; only the package itself, which imports lazily, has one."""
    for path, tree in rooms.modules().items():
        uses = any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(tree))
        assert not uses or path == rooms.PACKAGE / "__init__.py", path


def test_every_file_says_what_it_is(rooms):
    assert all(ast.get_docstring(tree) for tree in rooms.modules().values())


def test_picture_and_tree_are_up_to_date(rooms):
    hint = "run `python docs/rooms.py`"
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.draw(), hint
    text = rooms.PAGE.read_text(encoding="utf-8")
    assert text == rooms.page(text), hint
    assert rooms.tree() in text


def test_files_named_on_the_page_exist(rooms):
    text = rooms.PAGE.read_text(encoding="utf-8").partition("## The files")[0]
    names = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(names) > 30
    assert [name for name in sorted(names) if not (rooms.PACKAGE / name).is_file()] == []
