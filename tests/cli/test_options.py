import json

import pytest
from rich.table import Table

from same.cli.options import echo, is_quiet, parse_names, parse_settings, resolve_method
from same.errors import InputError
from same.methods import registry
from trust.bad_data import run_command


def test_lists_and_settings_are_parsed():
    assert parse_names("gc, nc") == ("gc", "nc")
    assert parse_names(None) == parse_names("") == ()
    assert parse_settings(["width=8", "encoder=gin"]) == {"width": 8, "encoder": "gin"}
    assert parse_settings(None) == {}
    with pytest.raises(InputError, match="expected key=value"):
        parse_settings(["width"])


def test_a_method_is_a_name_or_loaded_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    monkeypatch.setattr(registry, "_REGISTERED", {})
    code = "from same.methods import Classical\n\n\nclass Mine(Classical):\n    name = 'mine'\n    summary = 'a test'\n"
    (tmp_path / "mine.py").write_text(code)
    assert resolve_method("esame") == "esame"
    assert resolve_method(f"{tmp_path / 'mine.py'}:Mine") == "mine"


def test_results_are_printed_as_text_table_or_json(capsys):
    table = Table("name")
    table.add_row("[no markup]")
    echo("text", {"a": 1}, False)
    echo(table, {"a": 1}, False)
    echo(table, {"a": [1, "é"]}, True)
    out = capsys.readouterr().out
    assert out.startswith("text\n")
    assert "no markup" in out
    assert json.loads(out[out.index("{") :]) == {"a": [1, "é"]}


def test_quiet_is_the_level_of_the_logger():
    assert not is_quiet()
    run_command(["--quiet", "config"])
    assert is_quiet()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "cloud"], "--engine: 'cloud' is not one of local, ray"),
        (["--address", "a:1"], "--address: needs --engine ray"),
        (["--checkpoints", "a"], "--checkpoints: needs --engine ray"),
    ],
)
def test_options_of_another_engine_are_refused(tmp_path, options, message):
    code, err = run_command(["study", "--datasets", "planted", "--out", str(tmp_path / "study"), *options])
    assert code == 2
    assert message in err
    assert not (tmp_path / "study").exists()
