"""Samplers: functions of the space, the seed and the earlier trials that propose the next, like `random_search`."""

import logging
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from same.errors import InputError
from same.seeding import stream
from same.tuning.space import Parameter, Space, Values

Records = Sequence[tuple[Values, float | None]]
"""Finished trials in order: their values, and their score or None for a failed trial."""
RANDOM_TRIALS = 4  # Number of random trials before Ax takes over.


def random_search(space: Space, seed: int, records: Records, count: int) -> list[Values]:
    """Independent random draws from the space."""
    generators = (stream(seed, "tune", len(records) + i) for i in range(count))
    return [{parameter.name: parameter.sample(rng) for parameter in space.parameters} for rng in generators]


def ax_search(space: Space, seed: int, records: Records, count: int) -> list[Values]:
    """Bayesian optimisation with Ax, after a few random trials."""
    if len(records) < RANDOM_TRIALS or len({score for _, score in records if score is not None}) < 2:
        return random_search(space, seed, records, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ax.api.client import Client

        for handler in logging.getLogger("ax").handlers:  # The loggers below it set levels of their own.
            handler.setLevel(logging.ERROR)
        # A new client every time: all its state comes from our records, so nothing else has to be saved.
        client = Client(random_seed=int(stream(seed, "tune", len(records)).integers(2**31)))
        client.configure_experiment(parameters=list(map(_to_ax, space.parameters)))
        client.configure_optimization(objective="score")
        client.configure_generation_strategy(initialization_budget=0, initialize_with_center=False)
        for values, score in records:
            index = client.attach_trial(parameters=values)
            if score is None:
                client.mark_trial_failed(index)
            else:
                client.complete_trial(index, raw_data={"score": score})
        proposed: list[Values] = [dict(values) for values in client.get_next_trials(max_trials=count).values()]
    rest = random_search(space, seed, [*records, *((values, None) for values in proposed)], count - len(proposed))
    return [{p.name: p.rounded(values[p.name]) for p in space.parameters} for values in proposed] + rest


def _to_ax(p: Parameter) -> Any:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    if p.choices:
        kind: Any = type(p.choices[0]).__name__
        ordered = kind in ("int", "float")
        return ChoiceParameterConfig(name=p.name, values=list(p.choices), parameter_type=kind, is_ordered=ordered)
    kind, scaling = "int" if p.is_integer else "float", "log" if p.log else "linear"
    return RangeParameterConfig(name=p.name, bounds=(p.low, p.high), parameter_type=kind, scaling=scaling)


SAMPLERS: dict[str, Callable[[Space, int, Records, int], list[Values]]] = {"ax": ax_search, "random": random_search}


def choose_sampler(name: str) -> str:
    """Resolve the name of a sampler; `auto` is Ax if it is installed, otherwise random search with a message."""
    if name not in ("auto", *SAMPLERS):
        raise InputError(f"--sampler: {name!r} is not one of auto, {', '.join(SAMPLERS)}")
    if name == "random" or _has_ax():
        return "ax" if name == "auto" else name
    if name == "ax":
        raise InputError("--sampler ax: Ax is not installed; `pip install same-gnn[tune]`, or use --sampler random")
    logging.getLogger("same").info("Ax is not installed (pip install same-gnn[tune]): using random search")
    return "random"


def _has_ax() -> bool:
    return find_spec("ax") is not None  # Importing it would take many seconds.
