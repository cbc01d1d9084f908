"""Old name of `same.study.engines`, until tuning has moved."""

from same.study.engines import Engine, Job, local

__all__ = ["Engine", "Job", "local"]
