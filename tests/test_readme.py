import re
from pathlib import Path

import pytest

PAGES = [Path(__file__).parents[1] / "README.md"]
BLOCKS = [
    pytest.param(page, code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize(("page", "code"), BLOCKS)
def test_every_block_of_python_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {})


def test_there_are_blocks():
    assert BLOCKS
