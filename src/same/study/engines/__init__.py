"""Engines: where and how the runs of a study or a search are executed."""

from same.study.engines.base import Engine, Event, Job, Outcome, execute
from same.study.engines.local import local

__all__ = ["Engine", "Event", "Job", "Outcome", "execute", "local"]
