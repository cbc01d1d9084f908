"""A tiny search on the embedded dataset, for all tests of tuning."""

from same.study.engines import Event, execute
from same.tuning.search import Search, Trial, Tuning, tune
from same.tuning.space import Parameter, Space

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
SEARCH = Search("planted", "classical", ("nc",), SPACE, settings=TINY, sampler="random")


def inline(jobs, workers):
    """An engine that runs in this process."""
    for job in jobs:
        key = job.config.key
        yield Event("start", key)
        try:
            yield Event("done", key, execute(job, lambda *_: None, lambda: False))
        except Exception as error:
            yield Event("failed", key, f"{type(error).__name__}: {error}")


def run_search(folder, trials=8, search=SEARCH, engine=inline, quiet=True):
    return tune(search, trials, folder, engine=engine, quiet=quiet)


def outcomes(tuning):
    """What must not depend on when and where the trials ran."""
    return [(t.number, t.values, t.state, t.score, t.epochs) for t in tuning.trials]


def run_folder(tuning, trial):
    return tuning.folder / "runs" / tuning.search.config(trial.values).key


def make_history(scores, losses=None):
    losses = losses or [-score for score in scores]
    return [
        {"epoch": 5 * i, "objective": loss, "tasks": {"gc": {"score": s, "loss": loss}}}
        for i, (s, loss) in enumerate(zip(scores, losses, strict=True))
    ]


def make_trial(number, values, score, state="done", error=""):
    return Trial(number, values, state, make_history([score]), error=error)


def make_tuning(folder, scores, search=SEARCH):
    """A search with invented scores."""
    values = [{"outer_lr": 1e-3 * 1.05**i, "layers": 1 + i % 3} for i in range(len(scores))]
    trials = [make_trial(i, v, s) for i, (v, s) in enumerate(zip(values, scores, strict=True))]
    return Tuning(folder, search, tuple(trials))
