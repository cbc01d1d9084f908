"""Reports: written forms of tables, the page, and the page in a real browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from same.study.plan import Plan
from same.study.report.page import summary, to_csv, to_latex, to_markdown, write_report
from same.study.report.tables import make_tables
from same.study.results import Study
from study_helpers import Q4, SCORES, made_study

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def reported(finished, tmp_path_factory):
    """Folder of a study with its report."""
    folder = tmp_path_factory.mktemp("report") / "study"
    shutil.copytree(finished, folder)
    assert write_report(Study.open(folder)) == folder / "report.html"
    return folder


def test_the_written_forms_are_exactly_these():
    table = make_tables(made_study(SCORES, Q4))[0]
    assert to_markdown(table).splitlines()[4:9] == [
        "| tasks | model | ENZYMES |",
        "| --- | --- | --- |",
        "| GC+NC | Cl | 0.0 ± 0.0 (-0.1 ± 0.5 ≈) |",
        "| GC+NC | FT | not run (-4.5 ± 1.2) |",
        "| GC+NC | iSAME | not run (-2.3 ± 0.9) |",
    ]
    assert to_csv(table).splitlines()[:5] == [
        "tasks,model,column,mean,std,splits,published,published_std,mark,p,wilcoxon",
        "GC+NC,Cl,ENZYMES,0.0000,0.0000,2,-0.1,0.5,≈,,",
        "GC+NC,FT,ENZYMES,not run,,0,-4.5,1.2,,,",
        "GC+NC,iSAME,ENZYMES,not run,,0,-2.3,0.9,,,",
        "GC+NC,eSAME,ENZYMES,2.5000,2.5000,2,-0.8,0.8,▲,,",
    ]
    assert r"GC+NC & eSAME & 2.5 $\pm$ 2.5 (-0.8 $\pm$ 0.8 $\uparrow$) \\" in to_latex(table)
    assert r"a\textbackslash{}b\_c\textasciitilde{}" in to_latex(replace(table, columns=[r"a\b_c~"]))
    assert to_markdown(replace(table, columns=["a|b"])).splitlines()[4] == "| tasks | model | a&#124;b |"


def test_a_report_has_tables_in_every_form_and_figures(reported):
    names = {path.name for path in (reported / "tables").iterdir()}
    assert {"overview.csv", "overview.tex", "table1.csv", "floors.csv", "released.csv"} <= names
    assert "not run" not in (reported / "tables" / "overview.csv").read_text()
    text = (reported / "report.md").read_text()
    assert "## Table 1 (Q1)" in text
    assert "## Claims" in text
    assert "≈ within the published standard deviation" in text
    figures = {path.stem for path in (reported / "figures").iterdir()}
    assert figures == {"overview-planted"}
    assert all(path.read_text().startswith("<svg") for path in (reported / "figures").iterdir())


def test_a_report_needs_neither_models_nor_datasets(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "s", ignore=shutil.ignore_patterns("runs"))
    write_report(Study.open(tmp_path / "s"))
    plan = Plan(questions=("floors",), datasets=("planted",), splits=(0,))
    write_report(made_study({}, plan, tmp_path / "empty"))
    assert "Claims" not in (tmp_path / "empty" / "report.md").read_text()  # There are none without a question.


def test_the_summary_is_plain_values(finished):
    study = Study.open(finished)
    values = json.loads(json.dumps(summary(study)))
    assert (values["planned"], values["done"], values["failed"]) == (14, 14, {})
    assert Plan.from_json(values["plan"]) == study.plan
    row = next(row for row in values["tables"][0]["rows"] if row["model"] == "eSAME")
    assert row["splits"].keys() == {"0", "1"}


def test_the_page_lists_every_run_with_its_cost(reported):
    page = (reported / "report.html").read_text()
    for run in Study.open(reported).runs.values():
        assert f"<td>{run.run}</td>" in page
    assert "14 of 14 runs are done" in page


def test_the_page_needs_no_network_and_escapes_what_comes_from_data(reported, tmp_path):
    page = (reported / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    evil = tmp_path / "<img src=x onerror=alert(1)>"
    plan = Plan(questions=("overview",), datasets=(str(evil),), splits=(0,))
    page = write_report(made_study({}, plan, tmp_path / "study")).read_text()
    assert "<img" not in page
    assert "&lt;img" in page


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to look at the page with")
def test_the_page_works_in_a_browser(reported, tmp_path):
    """It renders, its tables sort, and the console stays empty."""
    page = (reported / "report.html").read_text()
    watch = "<script>window.errors = []; addEventListener('error', e => errors.push(e.message));</script>"
    act = """<script>
      const table = document.querySelector('#overview + p + div table');
      const column = () => [...table.tBodies[0].rows].map(r => parseFloat(r.cells[2].dataset.value));
      const before = column();
      table.tHead.rows[0].cells[2].querySelector('button').click();
      const up = column();
      table.tHead.rows[0].cells[2].querySelector('button').click();
      const state = {before, up, down: column(), errors, figures: document.querySelectorAll('figure svg').length,
                     wide: document.documentElement.scrollWidth - innerWidth};
      document.body.innerHTML = '<pre id="state">' + JSON.stringify(state) + '</pre>';
    </script>"""
    (tmp_path / "page.html").write_text(page.replace("<head>", "<head>" + watch).replace("</body>", act + "</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    run = subprocess.run(
        [BROWSER, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--window-size=400,800",
         "--dump-dom", f"file://{tmp_path / 'page.html'}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    state = json.loads(re.search(r'<pre id="state">(.*?)</pre>', run.stdout)[1])
    assert state["errors"] == []
    assert "CONSOLE" not in run.stderr
    assert state["up"] == sorted(state["before"])
    assert state["down"] == sorted(state["before"], reverse=True)
    assert state["figures"] == 1
    assert state["wide"] <= 0
