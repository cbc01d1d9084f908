import json
from dataclasses import replace

import pytest

from same.errors import DamagedError, InputError
from same.study.plan import (
    ALL,
    PAIRS,
    PLAN,
    QUESTIONS,
    SINGLES,
    TASKS,
    Plan,
    Variant,
    begun_plan,
    default_settings,
    first_of,
    make_plan,
    parse_splits,
    read_plan,
    remember,
)

SMALL = Plan(questions=("Q1",), datasets=("planted",), splits=(0,))


def test_everything_the_paper_asks_for_is_planned_once():
    variants = Plan().variants()
    assert len(set(variants)) == len(variants)
    expected = {Variant(method, tasks) for method in ("isame", "esame", "classical") for tasks in SINGLES + PAIRS + ALL}
    expected |= {Variant("finetuned", tasks) for tasks in PAIRS}
    expected |= {Variant("untrained", TASKS), Variant("traditional", TASKS)}
    expected |= {Variant("traditional", TASKS, adapts="head")}
    expected |= {
        Variant(method, TASKS, weighting)
        for method in ("classical", "isame", "esame")
        for weighting in ("uncertainty", "gradnorm")
    }
    assert set(variants) == expected
    runs = Plan().runs()
    assert len({config.key for config in runs}) == len(runs) == len(variants) * 4 * 10


def test_a_run_is_planned_after_the_one_it_starts_from():
    plan = Plan(questions=("Q2",), methods=("finetuned",), datasets=("planted",), splits=(0,))
    runs = plan.runs()
    keys = [config.key for config in runs]
    for config in runs:
        if config.method == "finetuned":
            assert keys.index(first_of(config)) < keys.index(config.key)
    assert [config.method for config in runs] == ["untrained", "classical", "finetuned", "finetuned", "finetuned"]


def test_the_default_is_the_setting_of_the_paper():
    assert {(config.pair, config.width) for config in Plan(splits=(0,)).runs()} == {("concat", 256)}
    assert {config.width for config in make_plan(budget="small", splits=(0,)).runs()} == {64}


@pytest.mark.parametrize("budget", [None, "paper", "short", "small"])
def test_every_method_has_the_same_cap_and_stopping_rule(budget):
    runs = [config for config in make_plan(budget=budget, splits=(0,)).runs() if config.method != "untrained"]
    assert len({(c.max_epochs, c.patience, c.validate_every, c.stop_on) for c in runs}) == 1
    assert None not in {config.max_epochs for config in runs}


def test_filters():
    plan = Plan(questions=("Q1",), methods=("esame",), tasks=(("gc",),), datasets=("COX2",), splits=(1, 3))
    assert [(c.method, c.tasks, c.split) for c in plan.runs()] == [
        ("untrained", TASKS, 1),
        ("esame", ("gc",), 1),
        ("untrained", TASKS, 3),
        ("esame", ("gc",), 3),
    ]


def test_a_plan_survives_json_with_all_settings_in_full():
    tuned = {"COX2-esame-gc": {"width": 64, "weights": {"gc": 2.0}}}
    plan = Plan(questions=("Q1", "Q4"), tasks=(("gc",), ("gc", "nc")), settings={"seed": 3}, tuned=tuned)
    values = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(values) == plan
    config = plan.runs()[0].model_dump(mode="json")
    assert {*values["settings"], "dataset", "method", "tasks", "split"} == set(config)


def test_a_study_keeps_the_settings_it_began_with_when_defaults_change(tmp_path, monkeypatch):
    remember(replace(SMALL, settings={**SMALL.settings, "walk": 5}), tmp_path)
    asked = {"datasets": ("planted",), "questions": ("Q1",), "settings": {"pair": "concat"}}
    plan = make_plan(tmp_path, **asked, splits=(1,))
    assert {(config.walk, config.split) for config in plan.runs()} == {(5, 1)}
    remember(plan, tmp_path)
    assert {(config.walk, config.split) for config in read_plan(tmp_path).runs()} == {(5, 0), (5, 1)}


def test_a_field_that_a_study_does_not_know_has_its_absent_value(monkeypatch):
    values = json.loads(json.dumps(SMALL.to_json()))
    del values["settings"]["linear_heads"]
    newer = default_settings() | {"linear_heads": True}
    monkeypatch.setattr("same.study.plan.default_settings", lambda: newer)
    assert Plan().settings["linear_heads"]
    assert not Plan.from_json(values).settings["linear_heads"]


def test_nothing_asked_for_means_the_plan_of_the_study(tmp_path):
    remember(SMALL, tmp_path)
    assert make_plan(tmp_path) == SMALL
    assert make_plan(tmp_path / "new") == make_plan() == Plan()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"settings": {"width": 8}}, r"holds a study with other settings \(width 256, not 8\); choose another folder"),
        ({"budget": "short"}, r"other settings \(max_epochs 15000, not 40; patience 50, not 20\)"),
        ({"tuned": {"planted-esame-gc": {"width": 8}}}, "other tuned configurations"),
    ],
)
def test_a_study_does_not_change_its_settings(tmp_path, asked, message):
    remember(SMALL, tmp_path)
    with pytest.raises(InputError, match=message):
        make_plan(tmp_path, **asked)
    with pytest.raises(InputError, match="holds a study with other settings"):
        remember(replace(SMALL, settings={"walk": 3}), tmp_path)
    assert read_plan(tmp_path) == SMALL


def test_a_damaged_plan_is_reported_and_written_again(tmp_path, caplog):
    remember(SMALL, tmp_path)
    text = (tmp_path / PLAN).read_text()
    (tmp_path / PLAN).write_text(text.replace('"planted"', '"planned"'))
    with pytest.raises(DamagedError, match=r"study.json: is damaged .*; the command that began the study writes it"):
        read_plan(tmp_path)
    assert begun_plan(tmp_path) is None
    assert "study.json: is damaged" in caplog.text
    remember(SMALL, tmp_path)
    assert (tmp_path / PLAN).read_text() == text
    (tmp_path / PLAN).write_text('{"question": 3}')
    with pytest.raises(InputError, match="not the plan of a study"):
        read_plan(tmp_path)
    with pytest.raises(InputError, match="holds no study"):
        read_plan(tmp_path / "empty")


def test_settings_override_tuned_configurations_which_override_the_budget():
    tuned = {"planted-esame-gc": {"width": 32, "layers": 2}}
    plan = make_plan(questions=("Q1",), datasets=("planted",), budget="small", settings={"layers": 4}, tuned=tuned)
    configs = {(c.method, c.tasks): c for c in plan.runs()}
    assert (configs["esame", ("gc",)].width, configs["esame", ("gc",)].layers) == (32, 4)
    assert (configs["isame", ("gc",)].width, configs["isame", ("gc",)].layers) == (64, 4)
    assert "planted-esame-gc" not in plan.untuned()
    assert "planted-isame-gc" in plan.untuned()


def test_task_weights_are_used_for_the_tasks_they_were_tuned_for():
    tuned = {f"planted-{method}-gc+nc+lp": {"weights": {"lp": 3.0}, "layers": 2} for method in ("esame", "classical")}
    plan = Plan(questions=("Q2", "weighting"), datasets=("planted",), splits=(0,), tuned=tuned)
    weights = {(c.method, c.tasks, c.weighting): (c.weights, c.layers) for c in plan.runs()}
    assert weights["esame", TASKS, "fixed"] == ({"lp": 3.0}, 2)
    assert weights["esame", ("gc", "nc"), "fixed"] == ({}, 2)
    assert weights["esame", TASKS, "gradnorm"] == ({}, 2)
    assert weights["finetuned", ("gc", "nc"), "fixed"] == ({"lp": 3.0}, 2)  # It starts from classical training.


def test_every_network_that_a_table_shows_is_trained_and_no_other():
    def asked(plan):
        return {(c.method, c.tasks, task) for c in plan.runs() for task in plan.networks(c)}

    shown = {("classical", source, task) for source in SINGLES for task in TASKS}  # Figure 1.
    unseen = {pair: next(task for task in TASKS if task not in pair) for pair in PAIRS}
    shown |= {(method, pair, unseen[pair]) for method in ("classical", "isame", "esame") for pair in PAIRS}  # Table 4.
    assert asked(Plan(splits=(0,))) == shown | {("untrained", TASKS, task) for task in TASKS}
    assert not asked(Plan(questions=("floors", "overview", "Q1", "Q2", "Q4", "appendix"), splits=(0,)))


def test_a_study_that_grew_is_in_the_papers_order():
    first = Plan(questions=("Q4",), datasets=("mine", "COX2"), splits=(3,), keep_models=True)
    grown = Plan(questions=("fig1",), datasets=("ENZYMES",), splits=(0,)).grown(first)
    assert (grown.questions, grown.datasets, grown.splits) == (("fig1", "Q4"), ("ENZYMES", "COX2", "mine"), (0, 3))
    assert grown.keep_models


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": ("Q5",)}, "--questions: 'Q5' is not one of"),
        ({"methods": ("magic",)}, "--methods: 'magic' is not one of"),
        ({"budget": "huge"}, "--budget: 'huge' is not one of paper, short, small"),
        ({"choose": "luck"}, "--choose: 'luck' is not one of loss"),
        ({"tasks": (("lp", "gc"),)}, "--tasks: 'lp\\+gc' is not one of gc, gc"),
        (
            {"settings": {"method": "esame"}},
            "--set: runs of a study differ in method; use the option of that name, or --questions",
        ),
        ({"settings": {"weighting": "uncertainty"}}, "--set: runs of a study differ in weighting; use"),
        ({"settings": {"node_labels": "input"}}, "--set: studies of the paper never show node labels; leave out"),
        (
            {"tuned": {"a-esame-gc": {"node_labels": "input"}}},
            "a-esame-gc: studies of the paper never show",
        ),
    ],
)
def test_refusals(change, message):
    with pytest.raises(InputError, match=message):
        make_plan(**change)


def test_parsing():
    assert parse_splits("3,0-1,1") == (3, 0, 1)
    assert parse_splits("0-3,7") == (0, 1, 2, 3, 7)
    for text in ("x", "0-12", "", "3-1"):
        with pytest.raises(InputError, match="--splits"):
            parse_splits(text)
    assert set(QUESTIONS) >= {"fig1", "Q1", "Q2", "Q3", "Q4", "appendix", "weighting", "floors"}
