"""The command as a whole: help, completion, errors and exit codes."""

import re
import resource
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from commands import VERBS, parse, same
from helpers import write_tu
from same import __version__
from same.cli import app
from same.errors import InputError


def test_help_imports_nothing_heavy():
    code = "import sys, typer, same.cli; typer.main.get_command(same.cli.app); print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'numpy'", "'scipy'", "'matplotlib'", "'torch_geometric'", "'pydantic'"):
        assert heavy not in modules
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "data" in result.output


def test_help_takes_well_under_half_a_second():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert same("--help")[0] == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # CPU time. benchmarks/bench.py checks 0.4 s on a quiet machine; tests also run on busy ones.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_of_every_verb_shows_a_valid_example(verb):
    shown = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    (example,) = re.findall(r"Example: same (.*)", shown.output)
    words = shlex.split(example.partition(">")[0])
    assert tuple(words[: len(verb)]) == verb
    parse(words)
    assert "--json" in shown.output


def test_help_lists_verbs_in_the_order_of_use():
    order = ("demo", "train", "evaluate", "embed", "study", "tune", "report", "config", "data")
    assert tuple(dict.fromkeys(verb[0] for verb in VERBS)) == order


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("same tr", ["train"]),
        ("same data ch", ["check"]),
        ("same train -m es", ["esame"]),
        ("same evaluate --pro", ["--protocol", "--probes"]),
    ],
)
def test_shell_completion(typed, expected):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    code, out, _ = same(_SAME_COMPLETE="complete_bash", **words)
    assert code == 0
    assert sorted(out.split()) == sorted(expected)


def test_completion_script():
    """`--show-completion` detects the calling shell, which a test may not have; this is the script that it prints."""
    code, out, _ = same(_SAME_COMPLETE="source_bash")
    assert code == 0
    assert "_SAME_COMPLETE=complete_bash" in out
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--install-completion" in shown
    assert "--show-completion" in shown


def test_version():
    assert CliRunner().invoke(app, ["--version"]).output == f"same {__version__}\n"


def test_misspelt_verbs_and_options_get_a_suggestion_and_exit_code_2():
    for typed, meant in ((("trian",), "train"), (("data", "chekc"), "check"), (("train", "--spilt", "3"), "--split")):
        code, out, err = same(*typed)
        assert (code, out) == (2, "")
        assert meant in err
        assert "Traceback" not in err


def test_unknown_configuration_keys_are_rejected_everywhere(tmp_path):
    (tmp_path / "c.toml").write_text("widht = 3\n")
    for arguments in (
        ("config", tmp_path / "c.toml"),
        ("train", "--config", tmp_path / "c.toml"),
        ("train", "planted", "--set", "widht=3"),
        ("tune", "planted", "--set", "widht=3", "--out", tmp_path / "t"),
        ("study", "--datasets", "planted", "--set", "widht=3", "--out", tmp_path / "s"),
    ):
        # `main` prints the message in one line and exits with code 2.
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(result.exception, InputError)
        assert "did you mean 'width'" in str(result.exception)
        assert not result.output


def test_invalid_input_prints_one_line_and_exits_with_code_2(tmp_path):
    folder = write_tu(tmp_path / "TOY", node_attributes="1\nnan\n" + "1\n" * 5)
    code, out, err = same("data", "check", folder)
    assert code == 2
    assert out == ""
    assert err == "same: TOY_node_attributes.txt, line 2: nan is not a finite number\n"


def test_unwritable_output_folder(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = same("demo", "--out", tmp_path / "file")
    assert code == 2
    assert "cannot be written" in err
    assert "Traceback" not in err
