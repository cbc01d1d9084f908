"""Tuned configurations as files, and studies that use them."""

import json

import numpy as np
import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from same.cli import app
from same.config import Config
from same.errors import InputError
from same.study.plan import Plan, config_name, make_plan
from same.tuning.space import NOT_SEARCHED
from same.tuning.tuned import read_tuned, write_best
from tuning.searches import run_folder


def test_train_reproduces_the_best_trial(tuning, tmp_path):
    write_best(tuning, tmp_path / "best.toml")
    arguments = ["-q", "train", "--config", str(tmp_path / "best.toml"), "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    ours, theirs = (load_file(p / "model.safetensors") for p in (tmp_path / "run", run_folder(tuning, tuning.done[0])))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_study_uses_tuned_configurations(tuning, tmp_path):
    write_best(tuning, tmp_path / "configs" / f"{config_name('planted', 'classical', ('nc',))}.toml")
    tuned = read_tuned(tmp_path / "configs")
    assert set(tuned) == {"planted-classical-nc"}
    assert not set(tuned["planted-classical-nc"]) & set(NOT_SEARCHED)
    arguments = ["study", "--out", tmp_path / "s", "--datasets", "planted", "--questions", "Q1", "--splits", "0"]
    arguments += ["--tuned", tmp_path / "configs", "--dry-run"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert "no tuned configuration of planted-classical-gc: using the default" in result.output
    assert "configuration of planted-classical-nc" not in result.output
    best = tuning.done[0].values
    plan = make_plan(questions=("Q1", "Q2"), datasets=("planted",), splits=(0,), tuned=tuned)
    configs = {(c.method, c.tasks): c for c in plan.runs()}
    assert configs["classical", ("nc",)].outer_lr == best["outer_lr"]
    assert configs["classical", ("nc",)].max_epochs == configs["classical", ("gc",)].max_epochs
    assert configs["classical", ("gc",)].outer_lr == Config().outer_lr
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_keys_that_a_study_compares_cannot_be_tuned(tmp_path):
    text = 'dataset = "planted"\nmethod = "classical"\ntasks = ["gc", "nc"]\nweighting = "{}"\n'
    (tmp_path / "a.toml").write_text(text.format("fixed"))
    assert set(read_tuned(tmp_path)) == {"planted-classical-gc+nc"}
    (tmp_path / "a.toml").write_text(text.format("uncertainty"))
    with pytest.raises(InputError, match=r"a\.toml: weighting = 'uncertainty': studies compare this key"):
        read_tuned(tmp_path)


def test_unusable_folders_are_rejected(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_tuned(tmp_path / "none")
    with pytest.raises(InputError, match="contains no configurations"):
        read_tuned(tmp_path)
    (tmp_path / "a.toml").write_text('dataset = "planted"\nmethod = "esame"\nwidth = 8\n')
    with pytest.raises(InputError, match=r"a.toml: does not say which tasks"):
        read_tuned(tmp_path)
    whole = 'dataset = "planted"\nmethod = "esame"\ntasks = ["gc"]\n'
    (tmp_path / "a.toml").write_text(whole)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "best.toml").write_text(whole)
    with pytest.raises(InputError, match="are both for planted-esame-gc"):
        read_tuned(tmp_path)


def test_finetuning_uses_the_configuration_of_its_first_phase():
    tuned = {"planted-classical-gc+nc+lp": {"width": 8}}
    plan = Plan(questions=("Q2",), datasets=("planted",), splits=(0,), tuned=tuned)
    assert {c.width for c in plan.runs() if c.method == "finetuned"} == {8}
    assert not [name for name in plan.untuned() if "finetuned" in name or "untrained" in name]


def test_runs_without_a_configuration_use_that_of_their_method_on_three_tasks():
    tuned = {"planted-esame-gc+nc+lp": {"width": 8}, "planted-esame-gc": {"width": 16}}
    plan = Plan(questions=("Q1", "Q2"), datasets=("planted",), splits=(0,), tuned=tuned)
    widths = {(c.method, c.tasks): c.width for c in plan.runs()}
    assert (widths["esame", ("gc",)], widths["esame", ("nc",)], widths["esame", ("gc", "lp")]) == (16, 8, 8)
    assert widths["isame", ("gc",)] == Config().width
