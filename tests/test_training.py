import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from same.config import Config
from same.episodes import EpisodeSampler, fixed, whole_episode
from same.errors import InputError
from same.methods import SAME
from same.runs import make_method, prepare, run
from same.training import CHECKPOINT, DivergedError, GivenUpTraining, InterruptedTraining, train
from same.weighting import Weighting

SMALL = Config(width=16, max_epochs=6, validate_every=2, batch_size=60, degree=3)


class Parabola(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([3.0]))


class Descent:
    """A method of its own: minimises w² by task `a`, and shows validation a script."""

    def __init__(self, script=None, bad_step=None):
        self.script, self.bad_step, self.calls = list(script or []), bad_step, 0

    def losses(self, model, episode):
        factor = math.nan if episode == self.bad_step else 1.0
        return {"a": (model.w * factor).square().sum(), "b": 0.0 * model.w.sum()}

    def evaluate(self, model, episode):
        self.calls += 1
        value = self.script.pop(0) if self.script else model.w.square().sum().item()
        return {"a": (value, -value), "b": (0.0, 0.0)}


class Steps:
    steps = 2

    def draw(self, epoch, step):
        return epoch * self.steps + step


def test_it_stops_after_patience_and_keeps_the_best():
    method = Descent(script=[5, 4, 3, 2, 9, 9, 9, 9, 9, 1])
    seen = []
    model = Parabola()
    config = Config(validate_every=1, patience=4, outer_lr=0.1, average=0)
    state = train(model, method, Steps(), ["v"], config, report=lambda *news: seen.append((news, model.w.item())))
    assert state.best_record["epoch"] == 3
    assert state.history[-1]["epoch"] == 7
    assert state.step == 14
    at_best = next(w for (_, _, news), w in seen if news.get("epoch") == 3)
    assert model.w.item() == at_best


def test_it_stops_on_scores_where_asked():
    # Losses get worse while scores, their negatives here, do too: the first validation is the best either way, and
    # with the sign wrong the last one would be.
    method = Descent(script=[1, 2, 3, 4, 5])
    state = train(Parabola(), method, Steps(), ["v"], Config(validate_every=1, patience=3, stop_on="score"))
    assert state.best_record["epoch"] == 0


@pytest.mark.parametrize("stop_on", ["loss", "score"])
def test_what_it_stops_on_has_the_weights_of_the_losses(stop_on):
    class Torn(Descent):
        def evaluate(self, model, episode):
            self.calls += 1
            return {"a": (self.calls, -self.calls), "b": (-2 * self.calls, 2 * self.calls)}

    for weights, best in (({}, 4), ({"b": 0.1}, 0)):
        config = Config(validate_every=1, max_epochs=4, stop_on=stop_on)
        weighted = config.model_copy(update={"weights": weights})
        assert train(Parabola(), Torn(), Steps(), ["v"], weighted).best_record["epoch"] == best
        model = Parabola()
        model.weighting = Weighting(weights)  # One of one's own.
        assert train(model, Torn(), Steps(), ["v"], config).best_record["epoch"] == best


def test_it_is_given_up_after_a_validation_and_can_go_on(tmp_path):
    config = Config(validate_every=1, max_epochs=5, outer_lr=0.1)
    seen = []

    def give_up(history):
        seen.append(len(history))
        return len(history) == 3

    for _ in range(2):  # It is asked again when the run is taken up.
        with pytest.raises(GivenUpTraining):
            train(Parabola(), Descent(), Steps(), ["v"], config, folder=tmp_path, give_up=give_up)
    assert seen == [1, 2, 3, 3]
    resumed, alone = Parabola(), Parabola()
    # The last validation is too late to give up.
    train(resumed, Descent(), Steps(), ["v"], config, folder=tmp_path, give_up=lambda history: len(history) == 6)
    train(alone, Descent(), Steps(), ["v"], config)
    assert torch.equal(resumed.w, alone.w)


def test_the_cap_is_kept():
    state = train(Parabola(), Descent(), Steps(), ["v"], Config(max_epochs=3, validate_every=2, outer_lr=0.1))
    assert state.step == 6
    assert [record["epoch"] for record in state.history] == [0, 2, 3]
    assert Config(tasks="gc").epochs == 5_000
    assert Config().epochs == 15_000


def test_weights_scale_the_losses():
    heavy, light = Parabola(), Parabola()
    for model, weight in ((heavy, 1.0), (light, 0.0)):
        train(model, Descent(), Steps(), ["v"], Config(max_epochs=2, weights={"a": weight}, outer_lr=0.1))
    assert heavy.w.item() < 3.0
    assert light.w.item() == 3.0


def test_a_loss_that_is_not_finite_stops_with_step_and_task(tmp_path):
    model = Parabola()
    config = Config(max_epochs=9, validate_every=1, outer_lr=0.1)
    with pytest.raises(DivergedError, match=r"step 5: the loss of a is not finite.*Lower outer_lr"):
        train(model, Descent(bad_step=5), Steps(), ["v"], config, folder=tmp_path)
    kept = load_file(tmp_path / CHECKPOINT)["model.w"]
    assert torch.isfinite(kept).all()
    assert 2.5 < kept.item() < 3.0


def test_a_gradient_that_is_not_finite_stops():
    class Root(Descent):
        def losses(self, model, episode):
            return {"a": torch.sqrt(model.w - model.w.detach()).sum()}

    with pytest.raises(DivergedError, match="step 0: the gradient is not finite"):
        train(Parabola(), Root(), Steps(), ["v"], Config())


def test_the_gradient_is_clipped():
    class Steep(Descent):
        def losses(self, model, episode):
            seen.append(model.w.grad)
            return {"a": 1e6 * model.w.sum()}

    seen: list = []
    train(Parabola(), Steep(), Steps(), ["v"], Config(max_epochs=1, clip=0.5))
    # What the second step finds is what the first left behind.
    assert seen[1].abs().item() == pytest.approx(0.5)


def final_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def assert_same_bits(a: Path, b: Path) -> None:
    one, other = final_weights(a), final_weights(b)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (a / "history.jsonl").read_text() == (b / "history.jsonl").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "esame"},
        {"method": "isame"},
        {"dropout": 0.3, "learn_inner_lr": True},
        {"method": "classical", "weighting": "pcgrad"},
        {"weighting": "gradnorm"},
    ],
)
def test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_bits(tmp_path, changes):
    config = SMALL.model_copy(update=changes)
    run(config, tmp_path / "whole")
    for stop_at in (1, 3):
        folder = tmp_path / f"stopped-{stop_at}"
        while True:
            taken = 0

            def stop(stop_at=stop_at):
                nonlocal taken
                taken += 1
                return taken == stop_at

            try:
                run(config, folder, stop=stop)
                break
            except InterruptedTraining:
                pass
        assert_same_bits(tmp_path / "whole", folder)


def test_repeated_runs_are_equal_and_seeds_and_splits_are_not(tmp_path):
    for name, changes in {"a": {}, "b": {}, "seed": {"seed": 1}, "split": {"split": 1}}.items():
        run(SMALL.model_copy(update={"max_epochs": 2, **changes}), tmp_path / name)
    assert_same_bits(tmp_path / "a", tmp_path / "b")
    first = final_weights(tmp_path / "a")["encoder.layers.1.weight"]
    for other in ("seed", "split"):
        assert not torch.equal(first, final_weights(tmp_path / other)["encoder.layers.1.weight"])


def test_kill_9_and_resume_ends_with_the_same_bits(tmp_path):
    """The command itself, killed three times while it trains."""
    settings = ["width=32", "max_epochs=24", "validate_every=2", "batch_size=60", "validation_episodes=1"]
    command = [Path(sys.executable).with_name("same"), "train", "planted", *(f"--set={s}" for s in settings)]
    subprocess.run([*command, "--out", tmp_path / "whole"], check=True, capture_output=True)
    killed = 0
    for wanted in (3, 6, 9):
        process = subprocess.Popen([*command, "--out", tmp_path / "killed"], stderr=subprocess.DEVNULL)
        history = tmp_path / "killed" / "history.jsonl"
        while process.poll() is None:
            if history.is_file() and history.read_text().count("\n") >= wanted:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            time.sleep(0.005)
    assert killed == 3
    assert not (tmp_path / "killed" / "result.json").exists()
    subprocess.run([*command, "--out", tmp_path / "killed"], check=True, capture_output=True)
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")


def test_sigterm_saves_and_says_how_to_go_on(tmp_path):
    command = [Path(sys.executable).with_name("same"), "train", "planted", "--set=width=32", "--out", tmp_path / "run"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "history.jsonl").is_file():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command to continue" in err
    assert "Traceback" not in err


def test_rates_that_blow_up_are_said(tmp_path):
    with pytest.raises(DivergedError, match=r"step 0: the validation loss of \w+ is not finite"):
        run(SMALL.model_copy(update={"inner_lr": 1e30}), tmp_path / "run")


def test_what_a_run_writes_is_readable_as_other_files_are(tmp_path):
    run(SMALL.model_copy(update={"max_epochs": 1}), tmp_path / "run")
    assert len({path.stat().st_mode for path in (tmp_path / "run").iterdir()}) == 1


def test_checkpoints_come_between_validations_too(tmp_path):
    config = Config(max_epochs=50, validate_every=50, outer_lr=0.1)
    written = []

    def report(step, steps, news):
        if (tmp_path / CHECKPOINT).is_file():
            written.append((tmp_path / CHECKPOINT).stat().st_mtime_ns)
        time.sleep(0.002)

    train(Parabola(), Descent(), Steps(), ["v"], config, folder=tmp_path, report=report, checkpoint_seconds=0.01)
    assert len(set(written)) > 5


def test_a_finished_run_is_not_done_again_and_another_is_not_overwritten(tmp_path):
    first = run(SMALL, tmp_path / "run")
    stamp = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert run(SMALL, tmp_path / "run") == first
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == stamp
    with pytest.raises(InputError, match=r"holds another run \(width: 16, not 8\)"):
        run(SMALL.model_copy(update={"width": 8}), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        run(SMALL, tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("method", ["isame", "esame"])
def test_training_on_planted_beats_the_untrained_encoder_on_unseen_graphs(tmp_path, method):
    """Target losses on the test graphs, after adapting to their support sets, by at least a tenth for every task."""
    config = Config(method=method, width=64, max_epochs=60, patience=60)
    setting = prepare(config)
    episodes = fixed(whole_episode, setting.store, setting.tasks, setting.split.test, count=3)
    run(config, tmp_path / "run")
    evaluate = SAME(method == "isame", config.inner_lr).evaluate

    def losses():
        rows = [evaluate(setting.model, episode) for episode in episodes]
        return np.array([[row[task][0] for task in config.tasks] for row in rows]).mean(axis=0)

    untrained = losses()
    found = final_weights(tmp_path / "run")
    setting.model.load_state_dict({name: found[name] for name in setting.model.state_dict()})
    assert (losses() < 0.9 * untrained).all(), (untrained, losses())


def test_what_a_run_leaves(tmp_path):
    result = run(SMALL, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "history.jsonl",
        "model.safetensors",
        "result.json",
    ]
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == SMALL.model_dump(mode="json")
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in history] == [0, 2, 4, 6]
    assert min(history, key=lambda record: record["objective"]) == result["best"]
    assert set(result["best"]["tasks"]) == {"gc", "nc", "lp"}


def test_the_running_mean_of_the_weights_is_validated_and_kept(tmp_path):
    """θ̄ ← d θ̄ + (1 − d) θ, written out over the parameters that a run without it goes through."""
    config = SMALL.model_copy(update={"average": 0.9, "max_epochs": 3, "validate_every": 1})
    seen = []
    setting = prepare(config)
    method, build, build_fixed = make_method(config)
    sampler = EpisodeSampler(setting.store, setting.split.train, setting.tasks, config.batch_size, build)
    validation = fixed(build_fixed, setting.store, setting.tasks, setting.split.validation)
    mean = {name: p.detach().clone() for name, p in setting.model.named_parameters()}

    def report(step, steps, news):
        if "losses" in news:
            decay = min(0.9, step / (step + 9))
            for name, p in setting.model.named_parameters():
                mean[name] = decay * mean[name] + (1 - decay) * p.detach()
        else:
            seen.append((news["objective"], {name: value.clone() for name, value in mean.items()}))

    train(setting.model, method, sampler, validation, config, report=report)
    best = min(seen, key=lambda pair: pair[0])[1]
    for name, p in setting.model.named_parameters():
        torch.testing.assert_close(p.detach(), best[name], rtol=1e-4, atol=1e-6)
