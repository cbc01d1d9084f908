"""Tuned configurations as files: the result of a search, for `same train --config` and `same study --tuned`."""

import json
from pathlib import Path
from typing import Any

from same.config import Config, make_config, read_config, toml_value
from same.errors import InputError
from same.files import atomic
from same.study.plan import COMPARED, config_name
from same.tuning.search import Tuning
from same.tuning.space import NOT_SEARCHED, SCOPE

BEST = "best.toml"  # The best configuration, in the folder of a search.


def write_best(tuning: Tuning, path: Path) -> None:
    """Write the best configuration of a search as TOML: searched and fixed keys, with a comment on its origin."""
    search, best, default = tuning.search, tuning.done[0], tuning.default
    name, score = config_name(search.dataset, search.method, search.tasks), f"validation score {best.score:.4f}"
    if default is not None and default.state == "done":
        score += f", default configuration {default.score:.4f}"
    origin = f"same tune, sampler {search.sampler}, seed {search.seed}, split {search.split}"
    comments = (f"{name}: trial {best.number} of {len(tuning.trials)}", origin, score)
    keys = (*SCOPE, *search.settings, *best.values)
    values = search.config(best.values).model_dump(mode="json")
    lines = [f"# {json.dumps(comment, ensure_ascii=False)[1:-1]}" for comment in comments]
    lines += [f"{key} = {toml_value(values[key])}" for key in keys if values[key] is not None]
    with atomic(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")


def read_tuned(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the tuned configurations in a folder; the searched keys only, by `config_name`."""
    tuned: dict[str, dict[str, Any]] = {}
    origin: dict[str, Path] = {}
    if not folder.is_dir():
        raise InputError(f"--tuned: {folder}: no such folder")
    for path in [*sorted(folder.glob("*.toml")), *sorted(folder.glob(f"*/{BEST}"))]:
        values = read_config(path)
        if missing := [key for key in ("dataset", "method", "tasks") if key not in values]:
            raise InputError(f"{path}: does not say which {', '.join(missing)} it is for")
        config = make_config(values, str(path))
        for key in COMPARED:
            if (value := getattr(config, key)) != Config.model_fields[key].default:
                raise InputError(
                    f"{path}: {key} = {value!r}: studies compare this key, so it cannot be tuned; remove it"
                )
        name = config_name(config.dataset, config.method, config.tasks)
        if name in tuned:
            raise InputError(f"--tuned: {origin[name]} and {path} are both for {name}; remove one of them")
        origin[name] = path
        tuned[name] = {key: getattr(config, key) for key in values if key not in NOT_SEARCHED}
    if not tuned:
        raise InputError(f"--tuned: {folder}: contains no configurations (no NAME.toml, and no folder with {BEST})")
    return tuned
