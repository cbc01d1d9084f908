"""Reports of studies: tables, checked claims, figures and one page."""

from same.study.report.claims import check_claims
from same.study.report.page import summary, write_report
from same.study.report.tables import make_tables

__all__ = ["check_claims", "make_tables", "summary", "write_report"]
