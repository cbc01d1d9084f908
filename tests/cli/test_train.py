import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import same
from same.cli import app, main
from same.errors import InputError

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_method.py"
FAST = ("--set", "width=8", "--set", "max_epochs=2", "--set", "batch_size=100")


def test_train_twice(tmp_path):
    folder = tmp_path / "run"
    command = ("train", "planted", "-m", "isame", "-t", "gc,lp", "--split", 3, "--seed", 5, "--out", folder, *FAST)
    code, out, err = same(*command)
    assert code == 0, err
    assert "best validation at epoch" in out
    assert "ended at the cap of 2 epochs" in out
    assert "gc: validation loss" in out
    assert "epoch 2 step" in err
    config = json.loads((folder / "config.json").read_text())["config"]
    assert (config["method"], config["tasks"], config["split"], config["seed"]) == ("isame", ["gc", "lp"], 3, 5)
    code, out, _ = same(*command)
    assert code == 0
    assert "already finished" in out


def test_options_override_the_file_and_the_file_overrides_defaults(tmp_path):
    (tmp_path / "c.toml").write_text('dataset = "planted"\nwidth = 8\nmax_epochs = 1\nseed = 3\ntasks = ["nc"]\n')
    options = ("--seed", "4", "--set", "width=6", "--out", str(tmp_path / "r"), "--json")
    result = CliRunner().invoke(app, ["--quiet", "train", "--config", str(tmp_path / "c.toml"), *options])
    config = json.loads((tmp_path / "r" / "config.json").read_text())["config"]
    assert result.exit_code == 0
    assert (config["seed"], config["width"], config["tasks"], config["layers"]) == (4, 6, ["nc"], 3)
    assert json.loads(result.stdout)["epochs"] == 1


def test_invalid_settings_print_one_line_and_write_nothing(tmp_path, monkeypatch, capsys):
    for arguments, message in [
        (("planted", "-m", "same"), "method"),
        (("planted", "-t", "gc,xx"), "tasks: 'xx' is not one of gc, nc, lp"),
        (("planted", "--set", "widht=3"), "did you mean 'width'"),
        (("planted", "--device", "tpu"), "device: 'tpu' is not one of"),
        (("planted", "--config", tmp_path / "none.toml"), "no such file"),
        (("planted", "--set", "batch_size=3"), "3 tasks need at least 6 graphs"),
        (("planted", "--set", 'weights={"xx": 1}'), "weights: xx: not among the tasks"),
        ((tmp_path / "nothing.zip",), "no such folder or file"),
    ]:
        words = ("same", "--quiet", "train", *arguments, "--out", tmp_path / "run")
        monkeypatch.setattr(sys, "argv", list(map(str, words)))
        with pytest.raises(SystemExit) as error:
            main()
        out, err = capsys.readouterr()
        assert error.value.code == 2, arguments
        assert message in err
        assert len(err.splitlines()) == 1, err
        assert out == ""
        assert not (tmp_path / "run").exists()


def test_method_of_a_user_is_trained_evaluated_and_embeds(tmp_path):
    method, out = f"{EXAMPLE}:Alternating", tmp_path / "run"
    code, _, err = same("train", "planted", "-m", method, "--out", out, *FAST)
    assert code == 0, err
    assert json.loads((out / "config.json").read_text())["config"]["method"] == "alternating"
    probes = ("--probes", "linear,own", "--no-floors", "--json")
    code, printed, err = same("evaluate", out, "-m", method, *probes)
    assert code == 0, err
    rows = json.loads(printed)["rows"]
    assert {row["model"] for row in rows} == {"alternating"}
    assert {(row["task"], row["probe"]) for row in rows} == set(product(("gc", "nc", "lp"), ("linear", "own")))
    code, _, err = same("embed", out, "planted", "-m", method, "--out", tmp_path / "e.npz")
    assert code == 0, err
    with np.load(tmp_path / "e.npz") as arrays:
        assert arrays["embeddings"].shape == (7102, 8)
    code, _, err = same("evaluate", out, *probes)
    assert code == 2
    assert "there is no 'alternating'" in err


def test_methods_that_cannot_be_imported_print_one_line(tmp_path):
    (tmp_path / "broken.py").write_text("class A: pass")
    for source in (f"{tmp_path / 'broken.py'}:Missing", f"{tmp_path / 'none.py'}:A", f"{tmp_path / 'broken.py'}:A"):
        for arguments in (("train", "planted", "--out", tmp_path / "run"), ("evaluate", tmp_path)):
            result = CliRunner().invoke(app, [*map(str, arguments), "-m", source])
            assert isinstance(result.exception, InputError), result.output
            assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_train_help_describes_the_methods():
    result = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "200"})
    assert "isame: adapts encoder and head to each task alone" in " ".join(result.output.split())


def test_config_reports_the_changes_from_the_defaults(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("width = 8\n")
    assert CliRunner().invoke(app, ["config", str(path)]).output == (
        f'{path}: valid; changes from the defaults: {{"width": 8}}\n'
    )
    path.write_text("")
    assert CliRunner().invoke(app, ["config", str(path)]).output == f"{path}: valid; no changes from the defaults\n"
    shown = CliRunner().invoke(app, ["config", "--show"]).output
    path.write_text(shown)
    assert "no changes" in CliRunner().invoke(app, ["config", str(path)]).output
