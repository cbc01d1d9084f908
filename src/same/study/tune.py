"""Tuning: a search for the configuration of a method that validates best; resumable at any point.

A round of trials is written down before it begins, and what came of it is read from the folders of its runs: when a
search is killed, there is nothing to lose.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from same.config import Config
from same.errors import DamagedError, InputError
from same.files import clean, is_free, locked, write_json
from same.study.engine import Engine, Job, local
from same.study.results import RUNS
from same.study.run import Overview, note_failure
from same.study.samplers import SAMPLERS, choose_sampler
from same.study.search import (
    PROPOSED,
    QUESTION,
    Curves,
    Question,
    Trial,
    Tuning,
    judge,
    look,
    make_rules,
    read_proposed,
    read_question,
    run_state,
)
from same.study.space import Values
from same.study.stopping import MedianRule

log = logging.getLogger("same")


def tune(
    question: Question,
    trials: int,
    folder: Path,
    *,
    engine: Engine = local,
    workers: int = 1,
    data: Path | None = None,
    quiet: bool = False,
) -> Tuning:
    """Searches, or goes on with a search, until so many trials have ended.

    Args:
        question: what is tuned.
        trials: how many, in all.
        folder: holds `tune.json` (the question), `trials.json` (what was proposed), and the runs of the trials as a
            study's folder does. The folder of another search is refused.
        engine: does the runs.
        workers: how many at once; more than there are runs in a round are of no use.
        data: where local sets lie.
        quiet: whether to show nothing.

    Returns:
        The search, with what came of its trials.
    """
    with locked(folder):
        question = _remember(question, folder)
        clean(folder)
        return _tune(question, trials, folder, engine, workers, data, quiet)


def _tune(
    question: Question, trials: int, folder: Path, engine: Engine, workers: int, data: Path | None, quiet: bool
) -> Tuning:
    try:
        proposed = read_proposed(folder)
    except DamagedError as error:  # What is proposed depends on the trials before it alone.
        log.warning("%s; the same trials are proposed again", error)
        proposed = []
    known = sum(trial.state != "open" for trial in look(question, proposed[:trials], folder))
    ended: list[Trial] = []
    curves: list[Curves] = []
    with Overview(str(folder), trials * len(question.splits), known * len(question.splits), quiet) as overview:
        for first in range(0, trials, question.round):
            if len(proposed) <= first:
                proposed += _propose(question, ended)
                write_json(folder / PROPOSED, {"trials": proposed})
            numbers, rules = range(first, min(first + question.round, trials)), make_rules(question, curves)
            jobs = _jobs(question, [proposed[n] for n in numbers], folder, rules, data)
            names = {job.config.key: _name(question, job.config, proposed, numbers) for job in jobs}
            for what, key, more in engine(jobs, workers) if jobs else ():
                note_failure(folder, what, key, more)
                overview(what, key, names[key], more)
            found = [judge(question, n, proposed[n], folder, rules, curves) for n in numbers]
            ended += [trial for trial, _ in found]
            curves += [curve for _, curve in found]
            if jobs and not quiet and (best := Tuning(folder, question, tuple(ended)).done[:1]):
                overview.say(
                    f"the best of {len(ended)} trials: {100 * (best[0].score or 0):.1f} % (trial {best[0].number})"
                )
            if all(trial.state == "failed" for trial in ended):
                raise InputError(f"{folder}: all of the first {len(ended)} trials failed; the first: {ended[0].error}")
    return Tuning(folder, question, tuple(ended))


def _propose(question: Question, ended: Sequence[Trial]) -> list[Values]:
    told = [(trial.values, trial.score) for trial in ended]
    first: list[Values] = []
    if not ended:  # The first trial is the default, for comparison.
        if (values := question.space.values_of(question.config({}))) is None:
            log.info("the default configuration lies outside the search space, and is not among the trials")
        else:
            told, first = [(values, None)], [values]
    return first + SAMPLERS[question.sampler](question.space, question.seed, told, question.round - len(first))


def _jobs(
    question: Question, proposed: Sequence[Values], folder: Path, rules: dict[int, MedianRule], data: Path | None
) -> list[Job]:
    """The runs of a round that have not ended; two trials may ask for the same one."""
    jobs = {}
    for values in proposed:
        for split in question.splits:
            config = question.config(values, split)
            if run_state(config, folder, rules[split])[0] == "open":
                place = folder / RUNS / config.key
                jobs[config.key] = Job(config, place, data, evaluate=False, give_up=rules[split])
    return list(jobs.values())


def _name(question: Question, config: Config, proposed: Sequence[Values], numbers: range) -> str:
    number = next(n for n in numbers if question.config(proposed[n], config.split) == config)
    return f"trial {number}" + (f" split {config.split}" if len(question.splits) > 1 else "")


def _remember(question: Question, folder: Path) -> Question:
    """Writes the question into the folder; refuses the folder of another one."""
    there = None
    if (folder / QUESTION).is_file():
        try:
            there = read_question(folder)
        except DamagedError as error:
            log.warning("%s; it is written again", error)
    if there is not None:
        sampler = there.sampler if question.sampler == "auto" else question.sampler
        question = replace(question, sampler=sampler)
        if there != question:
            names = ", ".join(name for name in vars(question) if getattr(there, name) != getattr(question, name))
            raise InputError(f"{folder}: holds a search with another {names}; choose another folder")
        choose_sampler(question.sampler)
        return question
    if not is_free(folder) and not (folder / QUESTION).is_file():
        raise InputError(f"{folder}: holds other files; choose another folder")
    question = replace(question, sampler=choose_sampler(question.sampler))
    write_json(folder / QUESTION, question.to_json())
    return question
