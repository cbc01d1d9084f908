"""Samplers: which configurations a search tries next. A sampler of your own is one function like `random_search`.

What they propose depends on the space, the seed and the trials they are told of, and on nothing else: a search that was
interrupted proposes what it would have proposed.
"""

import logging
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from same.errors import InputError
from same.seeding import stream
from same.study.space import Parameter, Space, Values

Told = Sequence[tuple[Values, float | None]]
"""Trials that ended, in order: their values, and their score or None if they failed."""

Sampler = Callable[[Space, int, Told, int], list[Values]]
"""Proposes some values, given the space, the seed, what it is told of, and how many."""

AT_RANDOM = 4
"""So many trials come before Ax has a say."""


def random_search(space: Space, seed: int, told: Told, count: int) -> list[Values]:
    """Draws at random, whatever came of it so far.

    >>> space = Space((Parameter("layers", low=2, high=4),))
    >>> both = random_search(space, 0, [], 2)
    >>> random_search(space, 0, [(both[0], 0.5)], 1) == both[1:]
    True
    """
    return [space.draw(stream(seed, "tune", len(told) + i)) for i in range(count)]


def ax_search(space: Space, seed: int, told: Told, count: int) -> list[Values]:
    """Bayesian optimisation with Ax, after some trials at random."""
    if len(told) < AT_RANDOM or len({score for _, score in told if score is not None}) < 2:
        return random_search(space, seed, told, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ax.api.client import Client

        for handler in logging.getLogger("ax").handlers:  # Loggers below it have levels of their own.
            handler.setLevel(logging.ERROR)
        # A new client each time, told of everything: its state is no more than our records.
        client = Client(random_seed=int(stream(seed, "tune", len(told)).integers(2**31)))
        client.configure_experiment(parameters=list(map(_for_ax, space.parameters)))
        client.configure_optimization(objective="score")
        client.configure_generation_strategy(initialization_budget=0, initialize_with_center=False)
        for values, score in told:
            index = client.attach_trial(parameters=values)
            if score is None:
                client.mark_trial_failed(index)
            else:
                client.complete_trial(index, raw_data={"score": score})
        found: list[Values] = [dict(values) for values in client.get_next_trials(max_trials=count).values()]
    rest = random_search(space, seed, [*told, *((values, None) for values in found)], count - len(found))
    return [{p.name: p.tidy(values[p.name]) for p in space.parameters} for values in found] + rest


def _for_ax(parameter: Parameter) -> Any:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    if parameter.choices:
        kinds: dict[type, Any] = {bool: "bool", int: "int", float: "float", str: "str"}
        return ChoiceParameterConfig(
            name=parameter.name,
            values=list(parameter.choices),
            parameter_type=kinds[type(parameter.choices[0])],
            is_ordered=parameter.ordered,
        )
    return RangeParameterConfig(
        name=parameter.name,
        bounds=(parameter.low, parameter.high),
        parameter_type="int" if parameter.whole else "float",
        scaling="log" if parameter.log else "linear",
    )


SAMPLERS: dict[str, Sampler] = {"ax": ax_search, "random": random_search}


def choose_sampler(name: str) -> str:
    """The sampler of this name; `auto` is Ax where it is installed, and says so where it is not."""
    if name not in ("auto", *SAMPLERS):
        raise InputError(f"--sampler: {name!r} is not one of auto, {', '.join(SAMPLERS)}")
    if name == "random" or _has_ax():
        return "ax" if name == "auto" else name
    if name == "ax":
        raise InputError("--sampler ax: Ax is not installed; `pip install same-gnn[tune]`, or --sampler random")
    logging.getLogger("same").info("Ax is not installed (pip install same-gnn[tune]): searching at random")
    return "random"


def _has_ax() -> bool:
    try:  # Not by importing it, which takes many seconds.
        return bool(version("ax-platform"))
    except PackageNotFoundError:
        return False
