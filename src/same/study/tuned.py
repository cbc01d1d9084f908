"""Tuned configurations as files: what a search leaves for `same train --config` and for `same study --tuned`."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from same.config import Config, make_config, read_config, toml_value
from same.errors import InputError
from same.files import atomic
from same.study.space import NOT_SEARCHED

if TYPE_CHECKING:
    from same.study.search import Tuning

_APART = ("weighting", "adapts")
"""What tables tell runs of one method apart by."""

BEST = "best.toml"
"""The best configuration, in the folder of a search."""


def config_name(dataset: str, method: str, tasks: Collection[str]) -> str:
    """What a tuned configuration is called, and its file, with `.toml`.

    >>> config_name("ENZYMES", "esame", ("gc", "nc"))
    'ENZYMES-esame-gc+nc'
    """
    return f"{Path(dataset).name.removesuffix('.zip')}-{method}-{'+'.join(tasks)}"


def write_best(tuning: "Tuning", path: Path) -> None:
    """Writes the best configuration of a search as TOML: what was searched, what was fixed, and how it was found."""
    question, best, default = tuning.question, tuning.done[0], tuning.default
    config = question.config(best.values)
    keys = ("dataset", "method", "tasks", "split", "seed", *dict(question.settings), *best.values)
    score = f"validation score {best.score:.4f}"
    if default is not None and default.score is not None and default.state == "done":
        score += f", with the default configuration {default.score:.4f}"
    name = config_name(question.dataset, question.method, question.tasks)
    about = [
        f"{name}: trial {best.number} of {len(tuning.trials)}",
        f"same tune, sampler {question.sampler}, seed {question.seed}, splits {', '.join(map(str, question.splits))}",
        score,
    ]
    values = config.model_dump(mode="json")
    lines = [f"# {json.dumps(line, ensure_ascii=False)[1:-1]}" for line in about]
    lines += [f"{key} = {toml_value(values[key])}" for key in keys if values[key] is not None]
    with atomic(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")


def read_tuned(folder: Path) -> dict[str, dict[str, Any]]:
    """The tuned configurations in a folder, by their names.

    Args:
        folder: holds files `NAME.toml`, or folders of searches, or is one. What a file is for is told by the dataset,
            method and tasks in it.

    Returns:
        Only keys that can be searched: what is measured, and for how long, is up to the study.
    """
    found: dict[str, dict[str, Any]] = {}
    origin: dict[str, Path] = {}
    if not folder.is_dir():
        raise InputError(f"--tuned: {folder}: no such folder")
    for path in [*sorted(folder.glob("*.toml")), *sorted(folder.glob(f"*/{BEST}"))]:
        values = read_config(path)
        for key in ("dataset", "method", "tasks"):
            if key not in values:
                raise InputError(f"{path}: does not say which {key} it is for")
        config = make_config(values, str(path))
        for key in _APART:
            if (value := getattr(config, key)) != Config.model_fields[key].default:
                raise InputError(f"{path}: {key} = {value!r}: what a study compares cannot be tuned; take it out")
        name = config_name(config.dataset, config.method, config.tasks)
        if name in found:
            raise InputError(f"--tuned: {origin[name]} and {path} are both for {name}; leave one of them")
        origin[name] = path
        found[name] = {key: getattr(config, key) for key in values if key not in NOT_SEARCHED}
    if not found:
        raise InputError(f"--tuned: {folder}: holds no configurations: no NAME.toml, and no folder with a {BEST}")
    return found
