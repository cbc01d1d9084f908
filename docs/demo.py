"""Write the table of `make demo` into the README: `python docs/demo.py same-demo/study`."""

import re
import sys
from pathlib import Path

from same.study.report import make_tables
from same.study.results import Study

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(?<=<!-- demo: begin -->\n).*?(?=<!-- demo: end -->)", re.DOTALL)


def table(study: Study) -> str:
    """Return the overview of a study as Markdown, in the columns that `same demo` prints."""
    head = ["model", "measured by", "GC accuracy", "NC accuracy", "LP ROC AUC"]
    rows = [[model, measured, *(cell.text for cell in cells)] for measured, model, cells in make_tables(study)[0].rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    made = table(Study.open(Path(sys.argv[1])))
    README.write_text(BLOCK.sub(made, README.read_text(encoding="utf-8")), encoding="utf-8")
