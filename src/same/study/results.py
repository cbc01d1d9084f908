"""The results of a study: what its runs left in their folders, ready to be put into tables."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from same.config import Config, make_config, read_config
from same.errors import DamagedError, InputError
from same.files import read_json, write_json
from same.study.plan import Plan

log = logging.getLogger("same")

PLAN, RUNS, ERRORS, EVALUATION = "study.json", "runs", "errors", "evaluation.json"


def evaluate_once(
    folder: Path, data: Path | None, *, choose_c: str | None = None, networks: Sequence[str] = ()
) -> None:
    """Evaluates a finished run, under both protocols, unless it has been done.

    Args:
        folder: of the run.
        data: where local sets lie.
        choose_c: see `evaluate_run`.
        networks: the tasks for which a network is trained on the embeddings, too.
    """
    from same.probes.evaluate import evaluate_run

    try:
        if has_networks(read_json(folder / EVALUATION), networks):
            return
    except FileNotFoundError:
        pass
    except DamagedError as error:
        log.warning("%s; the run is evaluated again", error)
    wall, cpu = time.perf_counter(), time.process_time()
    config = make_config(read_config(folder / "config.json"), str(folder / "config.json"))
    found: dict[str, Any] = {"paper": [], "released": []}
    floors = config.method == "untrained"
    choose: Any = choose_c
    rows = evaluate_run(
        folder, protocols=("paper", "released"), networks=networks, floors=floors, data=data, choose=choose
    )
    grouped: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        grouped.setdefault((row.protocol, row.model, row.probe, row.task), {})[row.metric] = row.score
    for (protocol, model, probe, task), scores in grouped.items():
        found[protocol].append({"model": model, "probe": probe, "task": task, "scores": scores})
    found["seconds"] = round(time.perf_counter() - wall, 3)
    found["cpu_seconds"] = round(time.process_time() - cpu, 3)
    write_json(folder / EVALUATION, found)


def has_networks(evaluation: dict[str, Any], tasks: Sequence[str]) -> bool:
    """Whether an evaluation has networks for these tasks; one of a study that asked for less has not."""
    return set(tasks) <= {row["task"] for row in evaluation.get("paper", []) if row["probe"] == "network"}


@dataclass(frozen=True)
class RunResult:
    """A finished run of a study."""

    config: Config
    training: dict[str, Any]
    rows: dict[str, Any]

    def score(self, model: str, probe: str, task: str, protocol: str = "paper") -> float | None:
        """The main score, in percent."""
        for row in self.rows.get(protocol, []):
            if (row["model"], row["probe"], row["task"]) == (model, probe, task):
                return 100 * next(iter(row["scores"].values()))
        return None


@dataclass(frozen=True)
class Study:
    """A study's folder: its plan, and what is done of it."""

    folder: Path
    plan: Plan
    runs: dict[str, RunResult]
    failed: dict[str, str]

    @classmethod
    def open(cls, folder: Path) -> "Study":
        """The study in a folder, finished or not. A run with a damaged result does not count, and it is said."""
        plan = read_plan(folder)
        runs, failed = {}, {}
        for config in plan.runs():
            place = folder / RUNS / config.key
            try:
                training, rows = (read_json(place / name) for name in ("result.json", EVALUATION))
                runs[config.key] = RunResult(config, training, rows)
            except FileNotFoundError:
                pass
            except DamagedError as error:
                log.warning("%s; the run does not count until `same study` has done it again", error)
            if (error_text := read_error(folder, config.key)) is not None:
                failed[config.key] = error_text
        return cls(folder, plan, runs, failed)

    def missing(self, plan: Plan) -> list[Config]:
        """The runs of a plan that are not done, or were evaluated for less than it asks for, in order."""
        told = {key for key, run in self.runs.items() if has_networks(run.rows, plan.networks(run.config))}
        return [config for config in plan.runs() if config.key not in told]

    def scores(
        self,
        dataset: str,
        method: str,
        tasks: Sequence[str],
        task: str,
        probe: str,
        *,
        protocol: str = "paper",
        model: str | None = None,
        **settings: Any,
    ) -> dict[int, float]:
        """The scores of a sort of run by split.

        Args:
            dataset: the set.
            method: how it was trained.
            tasks: what it was trained on.
            task: what is measured.
            probe: how.
            protocol: how link prediction is evaluated.
            model: the row of the evaluation, where it is not the method: a floor.
            settings: `weighting` or `adapts`, where they are not the defaults.
        """
        wanted = {"weighting": "fixed", "adapts": "all", **settings}
        found = {}
        for run in self.runs.values():
            c = run.config
            here = (c.dataset, c.method, c.tasks) == (dataset, method, tuple(tasks))
            if here and all(getattr(c, name) == value for name, value in wanted.items()):
                score = run.score(model or method, probe, task, protocol)
                if score is not None:
                    found[c.split] = score
        return found


def read_plan(folder: Path) -> Plan:
    """The plan of the study in a folder."""
    try:
        return Plan.from_json(read_json(folder / PLAN))
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no study (no {PLAN})") from None
    except DamagedError as error:
        raise DamagedError(f"{error}; the command that began the study writes it again") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / PLAN}: not the plan of a study ({error})") from None


def read_error(folder: Path, key: str) -> str | None:
    """Why a run of a study or search failed, if it did."""
    try:
        return str(read_json(folder / ERRORS / f"{key}.json").get("error", "unknown"))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        log.warning("%s", error)
        return "unknown"
