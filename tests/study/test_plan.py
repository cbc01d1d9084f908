from dataclasses import replace

import pytest

from same.errors import InputError
from same.study.plan import (
    ALL,
    PAIRS,
    QUESTIONS,
    SINGLES,
    TASKS,
    Kind,
    Plan,
    first_of,
    parse_splits,
    parse_task_sets,
)
from same.study.results import read_plan
from same.study.run import remember


def test_everything_the_paper_asks_for_is_planned_once():
    kinds = Plan().kinds()
    assert len(set(kinds)) == len(kinds)
    expected = {Kind(method, tasks) for method in ("isame", "esame", "classical") for tasks in SINGLES + PAIRS + ALL}
    expected |= {Kind("finetuned", tasks) for tasks in PAIRS} | {Kind("untrained", TASKS), Kind("traditional", TASKS)}
    expected |= {Kind("traditional", TASKS, (("adapts", "heads"),))}
    expected |= {
        Kind(method, TASKS, (("weighting", weighting),))
        for method in ("classical", "isame", "esame")
        for weighting in ("uncertainty", "gradnorm")
    }
    assert set(kinds) == expected
    assert len(Plan().runs()) == len(kinds) * 4 * 10
    assert len({config.key for config in Plan().runs()}) == len(Plan().runs())


def test_what_others_start_from_comes_first_and_is_there():
    plan = Plan(questions=("Q2",), methods=("finetuned",), datasets=("planted",), splits=(0,))
    runs = plan.runs()
    keys = [config.key for config in runs]
    for config in runs:
        if config.method == "finetuned":
            assert keys.index(first_of(config)) < keys.index(config.key)
    assert [config.method for config in runs] == ["untrained", "classical", "finetuned", "finetuned", "finetuned"]


def test_the_paper_setting_is_the_default():
    assert {config.pair for config in Plan().runs()} == {"concat"}
    assert {config.width for config in Plan().runs()} == {256}
    assert {config.width for config in Plan(budget="small").runs()} == {64}


def test_baselines_have_more_time_in_a_short_study():
    epochs = {(c.method, c.tasks): c.max_epochs for c in Plan(budget="short", splits=(0,)).runs()}
    baselines = {("classical", tasks) for tasks in SINGLES}
    assert {epochs[kind] for kind in baselines} == {200}
    assert {epochs[kind] for kind in epochs if kind not in baselines} == {40}


def test_filters():
    plan = Plan(questions=("Q1",), methods=("esame",), tasks=(("gc",),), datasets=("COX2",), splits=(1, 3))
    assert [(c.method, c.tasks, c.split) for c in plan.runs()] == [
        ("untrained", TASKS, 1),
        ("esame", ("gc",), 1),
        ("untrained", TASKS, 3),
        ("esame", ("gc",), 3),
    ]


def test_json_round_trip():
    plan = Plan(questions=("Q1", "Q4"), tasks=(("gc",), ("gc", "nc")), settings=(("pair", "concat"), ("seed", 3)))
    import json

    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_study_keeps_to_the_defaults_it_began_with(tmp_path):
    plan = Plan(questions=("Q1",), datasets=("planted",), splits=(0,))
    older = replace(plan, defaults=tuple((name, 5 if name == "walk" else value) for name, value in plan.defaults))
    assert {config.walk for config in older.runs()} == {5}
    remember(older, tmp_path)
    again = remember(replace(plan, splits=(1,)), tmp_path)
    assert {(config.walk, config.split) for config in again.runs()} == {(5, 0), (5, 1)}
    assert read_plan(tmp_path).runs() == again.runs()


def test_every_network_that_a_table_shows_is_trained_and_no_other():
    def asked(plan):
        return {(c.method, c.tasks, task) for c in plan.runs() for task in plan.networks(c)}

    shown = {("classical", source, task) for source in SINGLES for task in TASKS}  # Figure 1.
    unseen = {pair: next(task for task in TASKS if task not in pair) for pair in PAIRS}
    shown |= {(method, pair, unseen[pair]) for method in ("classical", "isame", "esame") for pair in PAIRS}  # Table 4.
    assert asked(Plan(splits=(0,))) == shown | {("untrained", TASKS, task) for task in TASKS}
    assert not asked(Plan(questions=("floors", "overview", "Q1", "Q2", "Q4", "appendix"), splits=(0,)))


def test_a_study_that_grew_is_in_the_papers_order():
    first = Plan(questions=("Q4",), datasets=("mine", "COX2"), splits=(3,))
    grown = Plan(questions=("fig1",), datasets=("ENZYMES",), splits=(0,)).grown(first)
    assert (grown.questions, grown.datasets, grown.splits) == (("fig1", "Q4"), ("ENZYMES", "COX2", "mine"), (0, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": ("Q5",)}, "--questions: 'Q5' is not one of"),
        ({"methods": ("magic",)}, "--methods: 'magic' is not one of"),
        ({"budget": "huge"}, "--budget: 'huge' is not one of paper, short, small"),
        ({"tasks": (("lp", "gc"),)}, "--tasks: lp\\+gc is not a set"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(InputError, match=message):
        Plan(**change)


def test_parsing():
    assert parse_task_sets("gc+nc+lp,lp") == (("gc", "nc", "lp"), ("lp",))
    assert parse_splits("3,0-1,1") == (3, 0, 1)
    for text in ("x", "0-12", "", "3-1"):
        with pytest.raises(InputError, match="--splits"):
            parse_splits(text)
    assert set(QUESTIONS) >= {"fig1", "Q1", "Q2", "Q3", "Q4", "appendix", "weighting", "floors"}
