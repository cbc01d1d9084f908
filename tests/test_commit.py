import subprocess
import sys
import types
from pathlib import Path

import pytest

from same import commit

ROOT = Path(__file__).parents[1]


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_checkout_is_described_by_its_commit_and_by_uncommitted_changes(checkout):
    head = git(checkout, "rev-parse", "HEAD").stdout[:12]
    assert commit.describe(checkout) == head
    (checkout / "file").write_text("two")
    assert commit.describe(checkout) == f"{head}-dirty"


def test_without_git_or_a_checkout_the_commit_is_empty(tmp_path, monkeypatch):
    assert commit.describe(tmp_path / "missing") == ""
    monkeypatch.setenv("PATH", "")
    assert commit.describe(tmp_path) == ""


def test_a_wheel_carries_its_commit(tmp_path, monkeypatch):
    (tmp_path / "_commit.txt").write_text("0123456789ab\n")
    monkeypatch.setattr(commit, "_BUILT", tmp_path / "_commit.txt")
    commit.commit.cache_clear()
    assert commit.commit() == "0123456789ab"
    commit.commit.cache_clear()


@pytest.mark.parametrize(("target", "place"), [("wheel", "same/_commit.txt"), ("sdist", "src/same/_commit.txt")])
def test_the_build_adds_the_commit_of_the_source(checkout, monkeypatch, target, place):
    (checkout / "src" / "same").mkdir(parents=True)
    (checkout / "src" / "same" / "commit.py").write_bytes((ROOT / "src/same/commit.py").read_bytes())
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "second")
    interface = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    code = {}
    exec((ROOT / "hatch_build.py").read_text(), code)
    hook = code["CommitHook"]()
    hook.root, hook.target_name = str(checkout), target
    for version, expected in (("editable", {}), ("standard", {place: git(checkout, "rev-parse", "HEAD").stdout[:12]})):
        data = {"force_include": {}}
        hook.initialize(version, data)
        assert {to: Path(path).read_text().strip() for path, to in data["force_include"].items()} == expected
        hook.finalize(version, data, "")
        assert not any(Path(path).exists() for path in data["force_include"])
