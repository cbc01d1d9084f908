"""The local engine; how it behaves when it is killed is tested with whole studies."""

from same.config import Config
from same.saved import read_history
from same.study.engines import Job, Outcome, local
from same.study.plan import Plan, first_of
from study_helpers import count_files, fail, give_up

PLAN = Plan(
    questions=("Q2",),
    datasets=("planted",),
    methods=("finetuned",),
    splits=(0,),
    settings={"batch_size": 100, "max_epochs": 1, "width": 8},
)


def test_a_run_waits_for_the_one_it_starts_from(tmp_path):
    pending = [config for config in PLAN.runs() if config.method != "untrained"]
    jobs = [Job(c, tmp_path / c.key, after=first_of(c)) for c in reversed(pending)]
    order = [(event.what, event.key) for event in local(jobs, 2) if event.what in ("start", "done")]
    classical = next(c for c in pending if c.method == "classical")
    for config in pending:
        if config.method == "finetuned":
            assert order.index(("done", classical.key)) < order.index(("start", config.key))
            assert not (tmp_path / config.key / "first").exists()


def test_outcomes_come_back_from_workers(tmp_path, capfd):
    config = Config(method="classical", tasks=("gc",), width=8, max_epochs=1, batch_size=100)
    jobs = [
        Job(config, tmp_path / "a", then=count_files),
        Job(config.model_copy(update={"split": 1}), tmp_path / "b", give_up=give_up),
        Job(config.model_copy(update={"split": 2}), tmp_path / "c", then=fail),
    ]
    events = {event.key: event for event in local(jobs, 1) if event.what in ("done", "failed")}
    whole, given_up, failed = (events[job.config.key] for job in jobs)
    assert whole.value.training["epochs"] == 1
    assert read_history(tmp_path / "a")[-1]["epoch"] == 1
    assert whole.value.value == count_files(tmp_path / "a", None)
    assert given_up.value == Outcome(None)
    assert len(read_history(tmp_path / "b")) == 1
    assert failed.what == "failed"
    assert failed.value.startswith("ValueError: no way\nTraceback")
    assert capfd.readouterr().err == ""  # Not that node labels are unused, either.
