import json

import numpy as np
import pytest
from typer.testing import CliRunner

from same.cli import app
from same.config import Config
from same.errors import InputError
from same.methods.registry import METHODS
from same.tuning.space import DEFAULT, NOT_SEARCHED, make_space, read_space


def test_default_space_contains_the_default_of_every_method():
    space = read_space()
    assert not set(space.names) & set(NOT_SEARCHED)
    for method in METHODS:
        part = space.restrict(method, ["gc", "nc", "lp"])
        values = part.values_of(Config(method=method, tasks=("gc",)))
        assert values is not None
        assert ("inner_lr" in values) == (method in ("isame", "esame", "traditional"))
        assert all(p.contains(p.sample(np.random.default_rng(i))) for p in part.parameters for i in range(20))
    assert "pair" not in space.restrict("esame", ["gc"]).names
    assert "width" not in space.restrict("esame", ["gc"], fixed=["width"]).names
    assert make_space(json.loads(json.dumps(space.to_json())), "again") == space


def test_space_is_printed():
    assert CliRunner().invoke(app, ["tune", "--space"]).output == DEFAULT.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[widht]\nchoices = [1]", "did you mean 'width'?"),
        ("[seed]\nchoices = [1, 2]", "seed defines what is measured"),
        ("[width]\nchoises = [1]", "width: unknown field 'choises'; expected one of choices, low,"),
        ("[width]\nchoices = [8, 'x']", "width: choices: expected only numbers"),
        ("[width]\nchoices = [8, 8]", "duplicate value"),
        ("[width]\nchoices = [0]", "width: Input should be greater than or equal to 1"),
        ("[width]\nlow = 8", "expected choices, or numbers low and high"),
        ("[width]\nlow = 8\nhigh = true", "expected choices, or numbers low and high"),
        ("[width]\nlow = 8\nhigh = 8", "low must be less than high"),
        ("[width]\nlow = 8.0\nhigh = 11.0", "valid integer"),
        ("[dropout]\nlow = 0.0\nhigh = 0.5\nlog = true", "log = true needs a low above 0"),
        ("[inner_lr]\nlow = 0.1\nhigh = 1.0\nmethods = ['same']", "methods: 'same' is not one of"),
        ("[inner_lr]\nlow = 0.1\nhigh = 1.0\nmethods = 'esame'", "methods: expected a list of names"),
        ("width = 3", "width: expected a table"),
        ("", "is empty"),
        ("[", "cannot be read as TOML"),
    ],
)
def test_invalid_spaces_are_rejected_in_one_line(tmp_path, text, message):
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_space(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert CliRunner().invoke(app, ["tune", "--space-file", str(path)]).exit_code != 0
