"""Studies: every question of the paper, as one resumable command and one report."""

from same.study.plan import Plan
from same.study.results import Study

__all__ = ["Plan", "Study"]
