"""Tests mirror the source: `src/same/a/b.py` has `tests/a/test_b.py`; an `__init__.py` may have a `test_init.py`."""

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "same"
CROSS_CUTTING = ("test_docs.py", "test_examples.py", "test_mirror.py", "test_reproduction.py", "test_rooms.py")
"""Tests of no single module; those in `trust` are others."""


def _mirrors() -> dict[str, str]:
    """The test file of every module."""
    modules = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    return {str(module): str(module.with_name(f"test_{module.stem.strip('_')}.py")) for module in modules}


def test_every_module_has_its_tests():
    mirrors = {module: test for module, test in _mirrors().items() if not module.endswith("__.py")}
    missing = [test for test in mirrors.values() if not (TESTS / test).is_file()]
    assert not missing, f"modules without tests: {sorted(missing)}"


def test_every_test_file_has_its_module():
    files = {str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}
    ours = {name for name in files if not name.startswith("trust/")} - set(CROSS_CUTTING)
    odd = ours - set(_mirrors().values())
    assert not odd, f"tests without a module: {sorted(odd)}"
