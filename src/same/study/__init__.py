"""Studies: all questions of the paper as one command that can be interrupted and continued, and one report."""

from same.study.plan import Plan, make_plan
from same.study.results import Study

__all__ = ["Plan", "Study", "make_plan"]
