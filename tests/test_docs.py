"""Every block of code in the README, on the site and in the notebook.

Blocks of Python are run, those of one page in order and in one namespace; `test_examples` runs the files that a page
includes. Lines of shell are run on the pages of `RUN`. Others take hours or need the paper's datasets: there, `same …`
is parsed, `make …` must name a target, `pip install …[extra]` an extra, and `python FILE` a file. TOML must be a
configuration.
"""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import VERBS, parse
from same.cli import app
from same.config import make_config
from same.study.demo import DEMO
from same.study.plan import remember
from same.study.results import Study

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = {"tutorial.md"}
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(r'^--8<--(?: "|\n)([\w/]+\.\w+)', re.MULTILINE)


def blocks(page, language):
    """The blocks of a page in a language, without those that only include a file."""
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    return [code for kind, code in fences if kind == language and not INCLUDE.match(code)]


def with_blocks(language):
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if blocks(page, language)]


def test_all_blocks_are_in_a_language_that_is_checked():
    for page in PAGES:
        kinds = {kind for kind, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
        assert kinds <= {"python", "shell", "toml", "text"}, page
    assert len(with_blocks("python")) >= 6
    assert len(with_blocks("shell")) >= 6


@pytest.mark.parametrize("page", with_blocks("python"))
def test_blocks_of_python_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)


def lines_of_shell(page):
    for code in blocks(page, "shell"):
        for line in code.splitlines():
            if words := shlex.split(line, comments=True):
                yield line, words


@pytest.mark.parametrize("page", with_blocks("shell"))
def test_lines_of_shell_can_be_typed(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for line, (command, *words) in lines_of_shell(page):
        if command == "same":
            options = ("--install-completion", "--show-completion")
            assert words[0] in options or parse(words) is not None, line
        elif command == "make":
            assert words[0] in targets, line
        elif command == "pip":
            assert words[0] == "install", line
            wanted = re.search(r"(?:\.|same-gnn)(?:\[(\w+)\])?$", words[-1])
            assert wanted, line
            assert wanted[1] is None or wanted[1] in extras, line
        else:
            assert command == "python", line
            assert (ROOT / words[0]).is_file(), line


@pytest.mark.parametrize("page", [page for page in with_blocks("shell") if page.values[0].name in RUN])
def test_lines_of_shell_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = 0
    for line, (command, *words) in lines_of_shell(page):
        if command == "same":
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, (line, result.output, result.exception)
            assert result.output, line
            done += 1
    assert done


@pytest.mark.parametrize("page", with_blocks("toml"))
def test_blocks_of_toml_are_configurations(page):
    for code in blocks(page, "toml"):
        make_config(tomllib.loads(code), str(page))


def test_all_examples_have_a_page():
    included = {name for page in PAGES for name in INCLUDE.findall(page.read_text(encoding="utf-8"))}
    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} <= included
    assert all((ROOT / name).is_file() for name in included)


def test_all_verbs_are_in_the_table_of_commands():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for verb in {verb[0] for verb in VERBS}:
        assert f"| `same {verb}" in text


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_table_of_the_demo_has_the_rows_that_it_prints(tmp_path):
    spec = importlib.util.spec_from_file_location("demo", ROOT / "docs/demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    remember(DEMO, tmp_path)
    (block,) = demo.BLOCK.findall(demo.README.read_text(encoding="utf-8"))
    printed, shown = (
        [[cell.strip() for cell in line.split("|")[1:3]] for line in text.splitlines()]
        for text in (demo.table(Study.open(tmp_path)), block)
    )
    assert printed == shown


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) == pages


def test_the_site_builds_and_fetches_nothing(tmp_path):
    pytest.importorskip("material", reason="the site needs the extra `docs`")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        tmp_path / "site",
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    fetched = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(https?:)?//""")
    for page in (tmp_path / "site").rglob("*.html"):
        assert not fetched.search(page.read_text(encoding="utf-8")), page


def test_the_notebook_runs(monkeypatch, tmp_path, capsys):
    import matplotlib

    matplotlib.use("Agg")
    path = ROOT / "examples" / "tour.ipynb"
    text = path.read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert len(text) < 20_000
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    monkeypatch.chdir(tmp_path)
    namespace, start = {}, time.process_time()
    for number, cell in enumerate(cells):
        code = "".join(cell["source"])
        ast.parse(code)  # The cells are plain Python, without magic commands.
        exec(compile(code, f"{path.name}, cell {number}", "exec"), namespace)
    assert time.process_time() - start < 120
    table, model, test = (namespace[name] for name in ("table", "model", "test"))
    for task in ("gc", "nc"):
        assert table["eSAME"][task] > table["untrained encoder"][task]
    assert model.score(test, task="lp") > 0.6
    assert capsys.readouterr().out
    matplotlib.pyplot.close("all")
    assert not list(tmp_path.iterdir())
