"""Searches on the embedded set: interrupted, resumed, failing, given up, and blind to test graphs."""

import json
import logging
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import same.runs
from safetensors.torch import load_file
from typer.testing import CliRunner

from same.cli import app
from same.config import METHODS, Config
from same.errors import InputError
from same.graphs import load, planted, split
from same.study import samplers, tune
from same.study.engine import execute
from same.study.plan import Plan, first_of
from same.study.run import check_kinds, remember
from same.study.samplers import SAMPLERS, ax_search, choose_sampler, random_search
from same.study.search import Question, Trial, Tuning, read_question
from same.study.space import DEFAULT, NOT_SEARCHED, Parameter, Space, make_space, read_space
from same.study.stopping import MedianRule, scores_so_far
from same.study.tuned import config_name, read_tuned, write_best
from same.study.tuning_report import importances, savings, write_tuning_report
from test_cli import COMMAND

TINY = {
    "degree": 0,
    "width": 8,
    "max_epochs": 4,
    "validate_every": 1,
    "batch_size": 100,
    "validation_episodes": 1,
    "patience": 9,
}
SPACE = Space((Parameter("outer_lr", low=1e-3, high=0.1, log=True), Parameter("layers", low=1, high=3)))
QUESTION = Question("planted", "classical", ("nc",), SPACE, settings=tuple(sorted(TINY.items())), sampler="random")

needs_ax = pytest.mark.skipif(not samplers._has_ax(), reason="Ax is not installed: pip install same-gnn[tune]")


def inline(jobs, workers):
    """An engine in this process."""
    for job in jobs:
        key = job.config.key
        yield "start", key, None
        try:
            execute(job, lambda *news: None, lambda: False)
        except Exception as error:
            yield "failed", key, f"{type(error).__name__}: {error}"
        else:
            yield "done", key, None


def search(folder, trials=8, question=QUESTION, engine=inline):
    return tune.tune(question, trials, folder, engine=engine, quiet=True)


def outcomes(tuning):
    """What must not depend on when and where the trials were run."""
    return [(t.number, t.values, t.state, t.score, t.epochs) for t in tuning.trials]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return search(tmp_path_factory.mktemp("tune") / "whole")


def test_the_shipped_space_holds_the_default_of_every_method_and_is_printed():
    space = read_space()
    assert not set(space.names) & set(NOT_SEARCHED)
    for method in METHODS:
        part = space.matter(method, ["gc", "nc", "lp"])
        values = part.values_of(Config(method=method, tasks=("gc",)))
        assert values is not None
        assert ("inner_lr" in values) == (method in ("isame", "esame", "traditional"))
        assert all(p.contains(p.draw(np.random.default_rng(i))) for p in part.parameters for i in range(20))
    assert "pair" not in space.matter("esame", ["gc"]).names
    assert "width" not in space.matter("esame", ["gc"], fixed=["width"]).names
    assert make_space(json.loads(json.dumps(space.to_json())), "again") == space
    assert CliRunner().invoke(app, ["tune", "--space"]).output == DEFAULT.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[widht]\nchoices = [1]", "there is no 'widht'; did you mean 'width'?"),
        ("[seed]\nchoices = [1, 2]", "seed says what is measured"),
        ("[width]\nchoises = [1]", "width: there is no 'choises'; did you mean 'choices'?"),
        ("[width]\nchoices = [8, 'x']", "width: choices: expected all numbers"),
        ("[width]\nchoices = [8, 8]", "holds a value twice"),
        ("[width]\nchoices = [0]", "width: Input should be greater than or equal to 1"),
        ("[width]\nlow = 8", "expected choices, or numbers low and high"),
        ("[width]\nlow = 8\nhigh = 8", "low must be less than high"),
        ("[width]\nlow = 8.0\nhigh = 11.0", "valid integer"),
        ("[dropout]\nlow = 0.0\nhigh = 0.5\nlog = true", "log = true needs a low above 0"),
        ("[inner_lr]\nlow = 0.1\nhigh = 1.0\nmethods = ['same']", "methods: 'same' is not one of"),
        ("width = 3", "width: expected a table"),
        ("", "is empty"),
        ("[", "cannot be read as TOML"),
    ],
)
def test_a_bad_space_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_space(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert CliRunner().invoke(app, ["tune", "--space-file", str(path)]).exit_code != 0


def test_mistakes_are_said_before_anything_is_written(tmp_path, found):
    for arguments, message in [
        (["tune"], "tune needs a DATASET and --out"),
        (["tune", "planted", "--out", tmp_path / "t", "-m", "untrained"], "untrained has no validation score"),
        (["tune", "planted", "--out", tmp_path / "t", "--set", "seed=1"], "--set: seed is no setting of a search"),
        (["tune", "planted", "--out", tmp_path / "t", "--set", "widht=1"], "did you mean 'width'"),
        (["tune", "planted", "--out", tmp_path / "t", "-t", "xx"], "xx"),
        (["tune", "planted", "--out", tmp_path / "t", "--sampler", "magic"], "--sampler: 'magic' is not one of"),
        (["tune", "planted", "--out", tmp_path / "t", "--engine", "magic"], "--engine: 'magic' is not one of"),
        (["tune", "planted", "--out", found.folder, "--sampler", "random"], "holds a search with another method"),
        (["study", "--out", tmp_path / "t", "--tuned", tmp_path], "holds no configurations"),
    ]:
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(result.exception, InputError), arguments
        assert message in str(result.exception)
        assert not (tmp_path / "t").exists()


def test_a_search_at_random_finds_something_and_says_what(found):
    assert [trial.state for trial in found.trials[:4]] == ["done"] * 4  # There is nothing to compare them with.
    assert found.default.number == 0
    assert found.done[0].score > found.default.score
    lines = (_run_of(found, found.done[0]) / "history.jsonl").read_text().splitlines()
    history = list(map(json.loads, lines))
    assert found.done[0].score == scores_so_far(history)[-1]
    assert outcomes(Tuning.open(found.folder)) == outcomes(found)
    # More trials go on from there; what was drawn does not change.
    more = search(found.folder, 9)
    assert outcomes(more)[:8] == outcomes(found)


def _run_of(tuning, trial):
    return tuning.folder / "runs" / tuning.question.config(trial.values).key


def test_the_best_configuration_is_one_that_train_takes(found, tmp_path):
    write_best(found, tmp_path / "best.toml")
    arguments = ["-q", "train", "--config", str(tmp_path / "best.toml"), "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    ours, theirs = (load_file(p / "model.safetensors") for p in (tmp_path / "run", _run_of(found, found.done[0])))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_interrupted_anywhere_it_ends_the_same(found, tmp_path):
    class KilledError(Exception):
        pass

    def deadly(events):
        def engine(jobs, workers):
            for number, event in enumerate(inline(jobs, workers)):
                if number == events:
                    raise KilledError
                yield event

        return engine

    for events in (0, 1, 3, 6, 2, 4):
        with suppress(KilledError):
            search(tmp_path, engine=deadly(events))
    assert outcomes(search(tmp_path)) == outcomes(found)


def test_killed_and_resumed_it_ends_the_same(found, tmp_path):
    """With kill -9, in other processes, and two workers."""
    (tmp_path / "space.json").write_text(json.dumps(SPACE.to_json()))
    settings = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    command = [COMMAND, "-q", "tune", "planted", "-m", "classical", "-t", "nc", "--trials", "8", "--workers", "2"]
    command += ["--sampler", "random", "--space-file", tmp_path / "space.json", "--out", tmp_path / "t", *settings]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list((tmp_path / "t").glob("runs/*/result.json"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1.5)  # The workers notice, and end.
    result = subprocess.run([*command, "--json", "--save-config", tmp_path / "c"], capture_output=True, check=True)
    assert outcomes(Tuning.open(tmp_path / "t")) == outcomes(found)
    page = (tmp_path / "t" / "report.html").read_text()
    assert CliRunner().invoke(app, ["report", str(tmp_path / "t")]).exit_code == 0
    assert (tmp_path / "t" / "report.html").read_text() == page
    assert json.loads(result.stdout)["best"]["score"] == found.done[0].score
    assert (tmp_path / "c" / "planted-classical-nc.toml").is_file()
    assert "<svg" in page


@pytest.mark.parametrize("damage", [b"", b"{", "flipped", "gone"])
def test_damaged_files_are_said_and_done_again(found, tmp_path, caplog, damage):
    shutil.copytree(found.folder, tmp_path / "t")
    run = next(iter(sorted((tmp_path / "t" / "runs").iterdir())))
    places = [tmp_path / "t" / name for name in ("tune.json", "trials.json")]
    for path in [*places, run / "result.json", run / "history.jsonl", run / "checkpoint.safetensors"]:
        if damage == "gone":
            path.unlink() if path.name != "tune.json" else None
        elif damage == "flipped":
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 2
            path.write_bytes(content)
        else:
            path.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "same"):
        assert outcomes(search(tmp_path / "t")) == outcomes(found)
    if damage != "gone":
        for name in ("tune.json", "trials.json", "result.json", "checkpoint.safetensors"):
            assert f"{name}: is damaged" in caplog.text
    assert (run / "history.jsonl").read_bytes() == (found.folder / "runs" / run.name / "history.jsonl").read_bytes()


def test_the_order_in_which_trials_end_does_not_matter(found, tmp_path):
    def shuffled(jobs, workers):
        yield from inline(random.Random(1).sample(jobs, len(jobs)), workers)

    assert outcomes(search(tmp_path, engine=shuffled)) == outcomes(found)


def test_test_graphs_are_not_read(tmp_path, monkeypatch):
    """Spoil all that test graphs hold but their classes, by which they are dealt to the splits: nothing changes."""
    space = Space((*SPACE.parameters, Parameter("degree", choices=(0, 4)), Parameter("pair", choices=("symmetric",))))
    question = replace(QUESTION, method="esame", tasks=("gc", "nc", "lp"), space=space)
    search(tmp_path / "plain", 5, question)

    def spoil(part):
        def spoiled(source, data=None):
            store = load(source, data)
            return _spoil(store, getattr(split(store, 0), part))

        monkeypatch.setattr(same.runs, "load", spoiled)

    spoil("test")
    blind = search(tmp_path / "spoiled", 5, question)
    assert outcomes(blind) == outcomes(Tuning.open(tmp_path / "plain"))
    for run in (tmp_path / "plain" / "runs").iterdir():
        other = tmp_path / "spoiled" / "runs" / run.name
        assert (run / "history.jsonl").read_text() == (other / "history.jsonl").read_text()
        a, b = (load_file(folder / "checkpoint.safetensors") for folder in (run, other))
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not list(tmp_path.rglob("evaluation.json"))
    spoil("validation")  # A search that does look at what is spoiled notices.
    with pytest.raises(InputError, match="all of the first 1 trials failed; the first: "):
        search(tmp_path / "noticed", 1, question)


def _spoil(store, graphs):
    """Attributes that are no numbers, node classes turned round, edges from anywhere to anywhere."""
    x, node_y, edges = np.array(store.x), np.array(store.node_y), np.array(store.edges)
    rng = np.random.default_rng(0)
    for g in graphs:
        nodes, links = (slice(p[g], p[g + 1]) for p in (store.node_ptr, store.edge_ptr))
        x[nodes] = np.nan
        node_y[nodes] = node_y[nodes].max() - node_y[nodes]
        edges[:, links] = rng.permutation(edges[:, links].reshape(-1)).reshape(2, -1)
    assert np.isnan(x).any()
    labels = {**store.labels, "node_y": replace(store.labels["node_y"], y=node_y)}
    return replace(store, x=x, labels=labels, edges=edges)


def test_failed_trials_are_told_as_failures_and_the_search_goes_on(tmp_path, monkeypatch):
    heard = []

    def listening(space, seed, told, count):
        heard.append(told)
        return random_search(space, seed, told, count)

    monkeypatch.setitem(SAMPLERS, "random", listening)
    question = replace(QUESTION, method="esame", space=Space((Parameter("inner_lr", choices=(0.1, 1e38)),)))
    found = search(tmp_path, 6, question)
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert 0 < len(failed) < 6
    assert all("is not finite" in trial.error and trial.values["inner_lr"] == 1e38 for trial in failed)
    assert len(found.trials) == 6
    assert [(trial.values, trial.score) for trial in found.trials[:4]] == heard[1]
    assert {score is None for values, score in heard[1] if values["inner_lr"] == 1e38} == {True}
    stamp = (tmp_path / "errors").stat().st_mtime_ns
    assert outcomes(search(tmp_path, 6, question)) == outcomes(found)  # They are not tried again.
    assert (tmp_path / "errors").stat().st_mtime_ns == stamp
    page = write_tuning_report(found).read_text()
    assert f"{len(failed)} failed" in page


def _history(scores, losses=None):
    losses = losses or [-score for score in scores]
    return [
        {"epoch": 5 * i, "objective": loss, "tasks": {"gc": {"score": s, "loss": loss}}}
        for i, (s, loss) in enumerate(zip(scores, losses, strict=True))
    ]


def test_scores_are_those_around_the_least_loss():
    jumpy = _history([0.1, 0.2, 0.6, 0.4, 0.5, 0.6, 0.9], losses=[9, 5, 4, 3, 4, 5, 6])
    assert scores_so_far(jumpy)[-1] == pytest.approx(np.mean([0.2, 0.6, 0.4, 0.5, 0.6]))
    assert scores_so_far(_history([0.5])) == [0.5]
    assert scores_so_far(_history([0.5, 0.1], losses=[1, 2]))[-1] == pytest.approx(0.3)


def test_the_median_rule():
    done = [_history([0, s, s, s, s]) for s in (0.2, 0.4, 0.6, 0.8)]
    assert MedianRule.from_trials(done[:3]) == MedianRule()
    assert MedianRule().cut(_history([0, 0, 0])) is None
    rule = MedianRule.from_trials(done)
    assert [epoch for epoch, _ in rule.bars] == [10, 15, 20]
    assert {bar for _, bar in rule.bars} == {0.5}
    assert rule.cut(_history([0, 0.5, 0.5])) is None
    assert len(rule.cut(_history([0, 0.6, 0.1, 0.1, 0.1], losses=[9, 8, 7, 6, 5]))) == 3
    assert rule(_history([0, 0.4, 0.4]))
    assert not rule(_history([0, 0.4]))
    # One that ended early keeps what it had; and there is a time of grace.
    late = MedianRule.from_trials([*done[1:], _history([0, 0.9])])
    assert late.bars[-1] == (20, pytest.approx(0.7))
    assert MedianRule.from_trials(done, [_history([0, 0.1, 0.1])]).bars[-1] == (20, pytest.approx(0.4))
    slow = MedianRule.from_trials([_history([0] * 4 + [s] * 15) for s in (0.2, 0.4, 0.6, 0.8)])
    assert slow.bars[0][0] == 30


def test_unpromising_trials_are_given_up_unless_told_otherwise(found, tmp_path):
    stopped = [trial for trial in found.trials if trial.state == "stopped"]
    assert stopped
    for trial in stopped:
        assert not (_run_of(found, trial) / "result.json").exists()
        assert trial.saved == 4 - trial.epochs
        assert trial not in found.done
    assert f"{len(stopped)} given up, which saved about {sum(t.saved for t in stopped):.0f} epochs" in savings(found)
    patient = search(tmp_path, question=replace(QUESTION, stop_early=False))
    assert {trial.state for trial in patient.trials} == {"done"}
    assert [t.values for t in patient.trials] == [t.values for t in found.trials]


def test_a_longer_round_is_another_search(found, tmp_path):
    """All trials of a round are handed out at once; what they are depends on the rounds before them alone."""
    handed = []

    def counting(jobs, workers):
        handed.append(len(jobs))
        return inline(jobs, workers)

    wide = replace(QUESTION, round=8)
    tuning = search(tmp_path / "wide", question=wide, engine=counting)
    assert handed == [8]
    assert len(tuning.trials) == 8
    assert read_question(tmp_path / "wide") == wide
    with pytest.raises(InputError, match="holds a search with another round"):
        search(tmp_path / "wide")


def test_several_splits_make_one_trial(tmp_path):
    found = search(tmp_path, 2, replace(QUESTION, splits=(0, 1)))
    assert len(list((tmp_path / "runs").iterdir())) == 4
    alone = [search(tmp_path / f"{k}", 1, replace(QUESTION, splits=(k,))).trials[0].score for k in (0, 1)]
    assert found.trials[0].score == pytest.approx(sum(alone) / 2)


def test_where_ax_is_missing_it_says_so(monkeypatch, caplog):
    monkeypatch.setattr(samplers, "_has_ax", lambda: False)
    with caplog.at_level("INFO", "same"):
        assert choose_sampler("auto") == "random"
    assert caplog.messages == ["Ax is not installed (pip install same-gnn[tune]): searching at random"]
    with pytest.raises(InputError, match="--sampler ax: Ax is not installed"):
        choose_sampler("ax")


@needs_ax
def test_ax_proposes_the_same_again_learns_and_stays_in_the_space():
    space = read_space().matter("esame", ["gc", "lp"])
    drawn = random_search(space, 0, [], 12)
    told = [(values, None if i == 3 else values["dropout"]) for i, values in enumerate(drawn)]
    few = samplers.AT_RANDOM - 1
    assert ax_search(space, 0, told[:few], 4) == drawn[few : few + 4]
    proposed = ax_search(space, 0, told, 4)
    assert ax_search(space, 0, told, 4) == proposed
    assert all(p.contains(values[p.name]) for values in proposed for p in space.parameters)
    assert len({json.dumps(values) for values in proposed}) == 4
    assert np.mean([v["dropout"] for v in proposed]) > np.mean([v["dropout"] for v in drawn]) + 0.1


@needs_ax
def test_ax_searches_and_resumes(tmp_path):
    question = replace(QUESTION, sampler="auto")
    first = search(tmp_path / "a", 12, question)
    assert first.question.sampler == "ax"
    assert [t.values for t in first.trials[8:]] != random_search(SPACE, 0, [({}, None)] * 8, 4)
    search(tmp_path / "b", 9, question)
    assert outcomes(search(tmp_path / "b", 12, question)) == outcomes(first)


def made(scores, names=("outer_lr", "layers")):
    values = [{"outer_lr": 1e-3 * 1.05**i, "layers": 1 + i % 3} for i in range(len(scores))]
    trials = [Trial(i, v, "done", s, 4) for i, (v, s) in enumerate(zip(values, scores, strict=True))]
    return Tuning(Path("nowhere"), QUESTION, tuple(trials))


def test_importances_tell_what_matters_and_how_far_to_believe_it():
    matters, trust = importances(made([0.1 * (1 + i % 3) for i in range(60)]))
    assert list(matters) == ["layers", "outer_lr"]
    assert matters["layers"] > 10 * max(matters["outer_lr"], 0.01)
    assert trust > 0.9
    assert importances(made(np.random.default_rng(0).random(60).tolist()))[1] < 0.3
    assert importances(made([0.1] * 9)) == ({}, None)


def test_the_page_escapes_what_comes_from_outside(found, tmp_path):
    evil = replace(found, folder=tmp_path, question=replace(QUESTION, dataset="<img src=x>"))
    page = write_tuning_report(evil).read_text()
    assert "<img" not in page
    assert "&lt;img" in page
    assert page.count("<svg") == 3  # The trace and two slices; there are too few trials to say what mattered.
    assert (tmp_path / "trials.csv").read_text().count("\n") == 9


def test_weights_stay_with_the_tasks_they_were_found_for():
    values = (("layers", 5), ("weights", {"gc": 0.1}))
    plan = Plan(questions=("Q4",), datasets=("planted",), splits=(0,), tuned=(("planted-classical-gc+nc+lp", values),))
    configs = {c.tasks: c for c in plan.runs() if c.method == "classical"}
    assert configs["gc", "nc", "lp"].weights == {"gc": 0.1}
    assert {c.layers for c in configs.values()} == {5}
    assert all(c.weights == {} for tasks, c in configs.items() if len(tasks) < 3)
    # Fine-tuning starts from the run that has them; a weighting that finds its own has none.
    keys = {config.key for config in plan.runs()}
    finetuned = [c for c in plan.runs() if c.method == "finetuned"]
    assert len(finetuned) == 3
    assert all(first_of(c) in keys for c in finetuned)
    check_kinds(plan, "planted", planted(30))
    found = {c.weighting: c.weights for c in replace(plan, questions=("weighting",)).runs() if c.method == "classical"}
    assert found == {"fixed": {"gc": 0.1}, "uncertainty": {}, "gradnorm": {}}


def test_a_study_takes_tuned_configurations(found, tmp_path):
    write_best(found, tmp_path / "configs" / f"{config_name('planted', 'classical', ('nc',))}.toml")
    tuned = read_tuned(tmp_path / "configs")
    assert set(tuned) == {"planted-classical-nc"}
    assert not set(tuned["planted-classical-nc"]) & set(NOT_SEARCHED)
    arguments = ["study", "--out", tmp_path / "s", "--datasets", "planted", "--questions", "Q1", "--splits", "0"]
    arguments += ["--tuned", tmp_path / "configs", "--dry-run"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert "no tuned configuration of planted-classical-gc: the default is used" in result.output
    assert "configuration of planted-classical-nc" not in result.output
    best = found.done[0].values
    plan = Plan(
        questions=("Q1", "Q2"),
        datasets=("planted",),
        splits=(0,),
        tuned=tuple((name, tuple(values.items())) for name, values in tuned.items()),
    )
    configs = {(c.method, c.tasks): c for c in plan.runs()}
    assert configs["classical", ("nc",)].outer_lr == best["outer_lr"]
    assert configs["classical", ("nc",)].max_epochs is None
    assert configs["classical", ("gc",)].outer_lr == Config().outer_lr
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan.overruled() == []
    assert replace(plan, settings=(("layers", 5),)).overruled() == [
        f"planted-classical-nc was tuned with layers={best['layers']}, the study has 5"
    ]
    # What the user sets wins, and a study keeps to the configurations it began with.
    assert {c.layers for c in replace(plan, settings=(("layers", 5),)).runs()} == {5}
    remember(plan, tmp_path / "study")
    remember(replace(plan, splits=(1,)), tmp_path / "study")
    with pytest.raises(InputError, match="other tuned configurations"):
        remember(replace(plan, tuned=()), tmp_path / "study")


def test_what_a_study_compares_cannot_be_tuned(tmp_path):
    text = 'dataset = "planted"\nmethod = "classical"\ntasks = ["gc", "nc"]\nweighting = "{}"\n'
    (tmp_path / "a.toml").write_text(text.format("fixed"))
    assert set(read_tuned(tmp_path)) == {"planted-classical-gc+nc"}
    (tmp_path / "a.toml").write_text(text.format("uncertainty"))
    with pytest.raises(InputError, match=r"a\.toml: weighting = 'uncertainty': what a study compares cannot be tuned"):
        read_tuned(tmp_path)


def test_fine_tuning_takes_the_configuration_of_what_it_starts_from():
    plan = Plan(
        questions=("Q2",), datasets=("planted",), splits=(0,), tuned=(("planted-classical-gc+nc+lp", (("width", 8),)),)
    )
    assert {c.width for c in plan.runs() if c.method == "finetuned"} == {8}
    assert not [name for name in plan.untuned() if "finetuned" in name or "untrained" in name]


def test_what_has_no_configuration_of_its_own_takes_that_of_its_method_on_three_tasks():
    tuned = (("planted-esame-gc+nc+lp", (("width", 8),)), ("planted-esame-gc", (("width", 16),)))
    plan = Plan(questions=("Q1", "Q2"), datasets=("planted",), splits=(0,), tuned=tuned)
    widths = {(c.method, c.tasks): c.width for c in plan.runs()}
    assert (widths["esame", ("gc",)], widths["esame", ("nc",)], widths["esame", ("gc", "lp")]) == (16, 8, 8)
    assert widths["isame", ("gc",)] == Config().width


def test_tuned_configurations_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_tuned(tmp_path / "none")
    (tmp_path / "a.toml").write_text('dataset = "planted"\nmethod = "esame"\nwidth = 8\n')
    with pytest.raises(InputError, match=r"a.toml: does not say which tasks"):
        read_tuned(tmp_path)
    whole = 'dataset = "planted"\nmethod = "esame"\ntasks = ["gc"]\n'
    (tmp_path / "a.toml").write_text(whole)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "best.toml").write_text(whole)
    with pytest.raises(InputError, match="are both for planted-esame-gc"):
        read_tuned(tmp_path)
