import json
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helpers import write_tu
from same import __version__
from same.cli import app
from same.errors import InputError

COMMAND = Path(sys.executable).with_name("same")


def same(*arguments, **environment):
    """The installed command, as a user runs it."""
    run = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return run.returncode, run.stdout, run.stderr


def test_help_is_light():
    code = "import sys, typer, same.cli; typer.main.get_command(same.cli.app); print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'numpy'", "'scipy'", "'matplotlib'", "'torch_geometric'"):
        assert heavy not in modules
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "data" in result.output


def verbs(group, path=()):
    """Every verb, also those of groups, with the words that call it."""
    for name, command in group.commands.items():
        yield from verbs(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]


VERBS = dict(verbs(typer.main.get_command(app)))
WITHOUT_JSON = {("bench",)}  # It writes a file of JSON, and prints the table while it measures.


def parse(arguments):
    """What the command makes of its arguments, without doing it; raises if it cannot be done."""
    group, words = typer.main.get_command(app), list(arguments)
    while hasattr(group, "commands"):
        context = group.make_context("same", words, resilient_parsing=False)
        words = [*context._protected_args, *context.args]
        _, group, words = group.resolve_command(context, words)
    return group.make_context("same", words).params


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_an_example_that_can_be_typed(verb):
    shown = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    (example,) = re.findall(r"Example: same (.*)", shown.output)
    words = shlex.split(example.partition(">")[0])
    assert tuple(words[: len(verb)]) == verb
    parse(words)
    assert ("--json" in shown.output) is (verb not in WITHOUT_JSON)


def test_help_is_quick():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert same("--help")[0] == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # 0.4 s is what a quiet machine must take, see benchmarks/bench.py; tests run on busy ones.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("same tr", ["train"]),
        ("same data ch", ["check"]),
        ("same train -m es", ["esame"]),
        ("same evaluate --pro", ["--protocol", "--probes"]),
    ],
)
def test_the_shell_completes(typed, found):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    code, out, _ = same(_SAME_COMPLETE="complete_bash", **words)
    assert code == 0
    assert sorted(out.split()) == sorted(found)


def test_completion_can_be_installed():
    """`--show-completion` looks for the shell that it was called from, and a test may have none; this is its script."""
    code, out, _ = same(_SAME_COMPLETE="source_bash")
    assert code == 0
    assert "_SAME_COMPLETE=complete_bash" in out
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--install-completion" in shown
    assert "--show-completion" in shown


def test_a_verb_that_is_misspelt_is_exit_code_2_and_the_nearest_is_told():
    for typed, meant in ((("trian",), "train"), (("data", "chekc"), "check"), (("train", "--spilt", "3"), "--split")):
        code, out, err = same(*typed)
        assert (code, out) == (2, "")
        assert meant in err


def test_a_key_that_is_not_known_is_refused_wherever_it_stands(tmp_path):
    (tmp_path / "c.toml").write_text("widht = 3\n")
    for arguments in (
        ("config", tmp_path / "c.toml"),
        ("train", "--config", tmp_path / "c.toml"),
        ("train", "planted", "--set", "widht=3"),
        ("tune", "planted", "--set", "widht=3", "--out", tmp_path / "t"),
        ("study", "--datasets", "planted", "--set", "widht=3", "--out", tmp_path / "s"),
    ):
        # What `main` prints in one line, with exit code 2.
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(result.exception, InputError)
        assert "did you mean 'width'" in str(result.exception)
        assert not result.output


def test_version():
    assert CliRunner().invoke(app, ["--version"]).output == f"same {__version__}\n"


def test_a_users_mistake_is_one_line_and_exit_code_2(tmp_path):
    folder = write_tu(tmp_path / "TOY", node_attributes="1\nnan\n" + "1\n" * 5)
    code, out, err = same("data", "check", folder)
    assert code == 2
    assert out == ""
    assert err == "same: TOY_node_attributes.txt, line 2: nan is not a finite number\n"


def test_an_unknown_option_is_exit_code_2():
    code, _, err = same("data", "check", "--colour")
    assert code == 2
    assert "--colour" in err
    assert "Traceback" not in err


def test_check_as_table_and_json(tmp_path):
    folder = write_tu(tmp_path / "TOY", edge_labels="1\n" * 10)
    code, out, _ = same("data", "check", folder)
    assert code == 0
    assert "edge labels were not used" in " ".join(out.replace("│", " ").split())
    code, out, err = same("data", "check", folder, "planted", "--json")
    toy, planted = json.loads(out)
    assert (code, err) == (0, "")
    assert toy["graph_classes"] == {"-1": 1, "1": 1}
    assert toy["node_classes"] == {"6": 3, "8": 3, "35": 1}
    assert toy["isolated_nodes"] == 1
    assert toy["tasks"] == ["gc", "nc", "lp"]
    assert planted["graphs"] == 300


def test_check_of_the_four_real_sets(real_sets):
    code, out, _ = same("data", "check", "--json", SAME_DATA=str(real_sets))
    found = {entry["name"]: entry for entry in json.loads(out)}
    assert code == 0
    assert {name: (e["graphs"], e["nodes"], 2 * e["edges"], e["attributes"]) for name, e in found.items()} == {
        "ENZYMES": (600, 19_580, 74_564, 18),
        "PROTEINS_full": (1_113, 43_471, 162_088, 29),
        "DHFR": (756, 32_075, 67_352, 3),
        "COX2": (467, 19_252, 40_578, 3),
    }
    assert found["ENZYMES"]["duplicate_columns"] == [[8, 17]]
    assert found["PROTEINS_full"]["duplicate_columns"] == [[11, 20]]
    assert [found[n]["isolated_nodes"] for n in ("ENZYMES", "PROTEINS_full")] == [106, 5]
    assert all(entry["as_known"] for entry in found.values())


def test_check_without_anything_to_check():
    code, _, err = same("data", "check")
    assert code == 2
    assert "none of the paper's sets is here" in err


def test_list_and_fetch(tmp_path):
    write_tu(tmp_path / "MUTAG", name="MUTAG")
    rows = {row["name"]: row for row in json.loads(same("data", "list", "--data", tmp_path, "--json")[1])}
    assert rows["MUTAG"]["place"] == str(tmp_path / "MUTAG")
    assert rows["PROTEINS_full"]["alias"] == "PROTEINS"
    assert rows["ENZYMES"]["place"] is None
    assert same("data", "fetch", "MUTAG", "--data", tmp_path)[:2] == (0, f"MUTAG: {tmp_path / 'MUTAG'}\n")
    places = json.loads(same("data", "fetch", "MUTAG", "planted", "--data", tmp_path, "--json")[1])
    assert places == [
        {"name": "MUTAG", "place": str(tmp_path / "MUTAG")},
        {"name": "planted", "place": "built in"},
    ]


def test_demo_into_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = same("demo", "--out", tmp_path / "file")
    assert code == 2
    assert "cannot be written" in err
    assert "Traceback" not in err


FAST = ("--set", "width=8", "--set", "max_epochs=2", "--set", "batch_size=100")


def test_train_and_train_again(tmp_path):
    command = (
        "train",
        "planted",
        "-m",
        "isame",
        "-t",
        "gc,lp",
        "--split",
        3,
        "--seed",
        5,
        "--out",
        tmp_path / "run",
        *FAST,
    )
    code, out, err = same(*command)
    assert code == 0, err
    assert "best validation at epoch" in out
    assert "gc: validation loss" in out
    assert "epoch 2 step" in err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["method"], config["tasks"], config["split"], config["seed"]) == ("isame", ["gc", "lp"], 3, 5)
    code, out, _ = same(*command)
    assert code == 0
    assert "it was done already" in out


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path):
    (tmp_path / "c.toml").write_text('dataset = "planted"\nwidth = 8\nmax_epochs = 1\nseed = 3\ntasks = ["nc"]\n')
    code, out, _ = same(
        "--quiet",
        "train",
        "--config",
        tmp_path / "c.toml",
        "--seed",
        4,
        "--set",
        "width=6",
        "--out",
        tmp_path / "r",
        "--json",
    )
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert code == 0
    assert (config["seed"], config["width"], config["tasks"], config["layers"]) == (4, 6, ["nc"], 3)
    assert json.loads(out)["epochs"] == 1


def test_mistakes_in_training_are_one_line(tmp_path):
    for arguments, message in [
        (("planted", "-m", "same"), "method: Input should be"),
        (("planted", "-t", "gc,xx"), "tasks: 'xx' is not one of gc, nc, lp"),
        (("planted", "--set", "widht=3"), "did you mean 'width'"),
        (("planted", "--device", "tpu"), "device: 'tpu' is not one of"),
        (("planted", "--config", tmp_path / "none.toml"), "no such file"),
        (("planted", "--set", "batch_size=3"), "3 tasks need at least 6 graphs"),
        (("planted", "--set", 'weights={"xx": 1}'), "weights: xx: not among the tasks"),
        ((tmp_path / "nothing.zip",), "no such folder or file"),
    ]:
        code, out, err = same("--quiet", "train", *arguments, "--out", tmp_path / "run")
        assert code == 2, arguments
        assert message in err
        assert len(err.splitlines()) == 1, err
        assert out == ""
        assert not (tmp_path / "run").exists()


def test_train_help_lists_the_methods():
    result = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "200"})
    assert "isame adapts encoder and head to each task alone" in " ".join(result.output.split())
