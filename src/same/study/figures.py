"""Old name of `same.study.report.svg`, until tuning has moved."""

from same.study.report.svg import Dot, dots, ranking

__all__ = ["Dot", "dots", "ranking"]
