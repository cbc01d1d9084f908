"""The tables of a study: written and read, damaged, and as pivots."""

import gzip
from contextlib import suppress
from dataclasses import replace

import pytest

from same import __version__
from same.commit import commit
from same.config import Config
from same.errors import DamagedError
from same.study.plan import Plan, remember
from same.study.results import RUNS_TABLE, SCORES_TABLE, Results, Score, Source, Study, make_run
from study_helpers import made_run

CONFIGS = [Config(dataset='a "set", quoted', method=m, split=k, width=8) for m in ("isame", "esame") for k in (1, 0)]
SCORES = [
    Score("esame", "test", "lp", "linear", "paper", "symmetric", "roc_auc", 1 / 3),
    Score("esame", "test", "lp", "linear", "paper", "symmetric", "average_precision", 0.1),
    Score("esame", "test", "gc", "own", "paper", "symmetric", "accuracy", 0.25),
]


@pytest.fixture
def results():
    results = Results()
    for number, config in enumerate(CONFIGS):
        run = made_run(config, examples={"gc": 12}, cpu_seconds=0.1 + number)
        results.add(run, [score._replace(model=config.method) for score in SCORES])
    return results


def test_results_survive_writing_and_reading(results, tmp_path):
    results.write(tmp_path)
    assert Results.read(tmp_path) == results
    assert Results.read(tmp_path / "missing") == Results()


def test_the_columns_are_those_of_the_format(results, tmp_path):
    results.write(tmp_path)
    assert (tmp_path / RUNS_TABLE).read_text().splitlines()[0] == (
        "run,dataset,method,tasks,split,settings,epochs,best_epoch,cap,updates,examples,cpu_seconds,version,commit"
    )
    lines = gzip.decompress((tmp_path / SCORES_TABLE).read_bytes()).decode().splitlines()
    assert lines[0] == "run,model,part,task,probe,protocol,pair,metric,score"
    assert lines[1] == f"{CONFIGS[3].key},esame,test,lp,linear,paper,symmetric,roc_auc,0.3333333333333333"


def test_equal_contents_are_equal_bytes_in_whatever_order_runs_ended(results, tmp_path):
    results.write(tmp_path / "one")
    turned = Results()
    for key in reversed(results.runs):
        turned.add(results.runs[key], results.scores[key])
    turned.write(tmp_path / "two")
    for name in (RUNS_TABLE, SCORES_TABLE):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_row_has_the_whole_configuration_and_where_it_comes_from():
    config = CONFIGS[0]
    training = {"epochs": 7, "cap": 200, "best": {"epoch": 5}, "steps": 14, "examples": {"gc": 99}, "cpu_seconds": 1.5}
    run = make_run(config, training)
    assert Config(dataset=run.dataset, method=run.method, tasks=run.tasks, split=run.split, **run.settings) == config
    assert (run.epochs, run.best_epoch, run.cap, run.updates, run.examples) == (7, 5, 200, 14, {"gc": 99})
    assert (run.version, run.commit) == (__version__, commit())


def test_rows_of_a_run_are_replaced_as_a_whole(results):
    key = CONFIGS[0].key
    results.add(results.runs[key]._replace(epochs=9), SCORES[:1])
    assert results.runs[key].epochs == 9
    assert results.scores[key] == SCORES[:1]


def test_scores_of_a_run_that_was_not_finished_do_not_count(results, tmp_path):
    """A driver that is killed between its two writes has written the scores."""
    last = CONFIGS[-1].key
    before = Results({k: v for k, v in results.runs.items() if k != last}, dict(results.scores))
    results.write(tmp_path / "all")
    before.write(tmp_path / "some")
    (tmp_path / "some" / SCORES_TABLE).write_bytes((tmp_path / "all" / SCORES_TABLE).read_bytes())
    read = Results.read(tmp_path / "some")
    assert last not in read.runs
    assert last not in read.scores


@pytest.mark.parametrize("name", [RUNS_TABLE, SCORES_TABLE])
@pytest.mark.parametrize("harm", ["truncated", "emptied", "text"])
def test_damaged_tables_are_reported_and_left_alone(results, tmp_path, name, harm):
    results.write(tmp_path)
    content = (tmp_path / name).read_bytes()
    damaged = {"truncated": content[: len(content) // 2], "emptied": b"", "text": b"years of work\xff"}[harm]
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(DamagedError, match=name) as error:
        Results.read(tmp_path)
    assert "restore" in str(error.value)
    assert "\n" not in str(error.value)
    assert (tmp_path / name).read_bytes() == damaged


def test_no_flipped_bit_changes_a_score(results, tmp_path):
    results.write(tmp_path)
    content, harmless = (tmp_path / SCORES_TABLE).read_bytes(), 0
    for place in range(len(content)):
        (tmp_path / SCORES_TABLE).write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with suppress(DamagedError):
            assert Results.read(tmp_path) == results  # A few bits of the format mean nothing.
            harmless += 1
    assert harmless < 0.1 * len(content)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [(",2,1,", ",two,1,", 2), ('{""adapts', '""adapts', 2), ("3.1,", "", 2), ("run,", "ran,", 1)],
)
def test_a_row_that_cannot_be_parsed_is_named_by_its_line(results, tmp_path, old, new, line):
    results.write(tmp_path)
    text = (tmp_path / RUNS_TABLE).read_text()
    assert old in text
    (tmp_path / RUNS_TABLE).write_text(text.replace(old, new, 1))
    with pytest.raises(DamagedError, match=f"{RUNS_TABLE}, line {line}: .*; restore the file from a copy"):
        Results.read(tmp_path)


def test_a_table_of_scores_that_is_gone_is_reported(results, tmp_path):
    results.write(tmp_path)
    (tmp_path / SCORES_TABLE).unlink()
    with pytest.raises(DamagedError, match=r"scores.csv.gz: has no scores of 4 runs of runs.csv, such as"):
        Results.read(tmp_path)


PLAN = Plan(questions=("Q3",), datasets=("planted",), methods=("esame",), splits=(0, 1), settings={"width": 8})


def study_of(plan, scores, settings=None):
    results = Results()
    for config in plan.runs():
        results.add(made_run(config), scores)
    return Study(None, plan, results, {})


def test_scores_are_the_main_metric_in_percent_by_split():
    ours = Score("esame", "test", "lp", "linear", "paper", "concat", "roc_auc", 0.75)
    noise = [
        ours._replace(metric="average_precision", score=0.1),
        ours._replace(pair="symmetric", score=0.2),
        ours._replace(part="validation", score=0.3),
        ours._replace(protocol="released", score=0.4),
        ours._replace(model="raw", score=0.5),
    ]
    study = study_of(PLAN, [*noise[1:3], ours, *noise])
    source = Source("esame", ("gc", "nc"))
    assert study.scores("planted", source, "lp") == {0: 75.0, 1: 75.0}
    assert study.scores("planted", source._replace(protocol="released"), "lp") == {0: 40.0, 1: 40.0}
    assert study.scores("planted", source._replace(model="raw"), "lp") == {0: 50.0, 1: 50.0}
    assert study.scores("COX2", source, "lp") == {}
    for change in ({"probe": "own"}, {"weighting": "gradnorm"}, {"tasks": ("gc",)}):
        assert study.scores("planted", source._replace(**change), "lp") == {}


def test_runs_without_the_probes_that_a_plan_asks_for_are_missing():
    score = Score("esame", "test", "nc", "network", "paper", "concat", "accuracy", 0.5)
    study = study_of(PLAN, [score])
    assert {(c.method, c.tasks) for c in study.missing()} == {
        ("untrained", ("gc", "nc", "lp")),
        ("esame", ("gc", "nc")),
        ("esame", ("nc", "lp")),
    }
    assert study.missing(replace(PLAN, questions=("Q2",), tasks=(("gc", "nc"),))) == []


def test_a_study_is_opened_with_the_runs_of_its_plan(tmp_path):
    study = study_of(PLAN, SCORES)
    remember(replace(PLAN, splits=(0,)), tmp_path)
    study.results.write(tmp_path)
    opened = Study.open(tmp_path)
    assert {run.split for run in opened.runs.values()} == {0}
    assert len(opened.results.runs) == 2 * len(opened.runs)
    remember(PLAN, tmp_path)
    assert len(Study.open(tmp_path).runs) == len(opened.results.runs)
