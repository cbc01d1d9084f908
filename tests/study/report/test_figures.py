from xml.etree import ElementTree

from same.study.plan import Plan
from same.study.report.figures import bars, make_figures
from same.study.report.tables import make_tables
from study_helpers import Q4, SCORES, linear_probes, made_study

EVIL = '<b>&"$x$'
GROUPS = [(EVIL, [(EVIL, 2.5, 1.0), ("b", -1.0, 0.0)])]


def figures_of(study):
    return make_figures(study, make_tables(study))


def test_bars_have_the_values_of_the_table():
    (svg,) = figures_of(made_study(SCORES, Q4)).values()
    assert "GC+NC, eSAME: 2.5 ± 2.5 %" in svg
    assert "iSAME" not in svg  # It was not run.


def test_the_overview_is_grouped_by_task_and_shows_no_trivial_floors():
    plan = Plan(questions=("overview",), datasets=("COX2", "DHFR"), splits=(0,))
    tasks = ("gc", "nc", "lp")
    models = ("esame", "untrained")
    scores = {(model, tasks): linear_probes(model, tasks, [50.0, 60.0, 70.0]) for model in models}
    scores["untrained", tasks][0]["majority", "none", "gc"] = 30.0
    figures = figures_of(made_study(scores, plan))
    assert set(figures) == {"overview-COX2", "overview-DHFR"}
    assert "NC, eSAME, linear probe: 60.0 ± 0.0 %" in figures["overview-DHFR"]
    assert "LP, untrained, linear probe: 70.0 ± 0.0 %" in figures["overview-DHFR"]
    assert "majority" not in figures["overview-DHFR"]


def test_transfer_is_grouped_by_the_measured_task():
    plan = Plan(questions=("fig1",), datasets=("COX2",), splits=(0,))
    scores = {("classical", ("gc",)): {0: {("classical", "network", "nc"): 44.0}}}
    (svg,) = figures_of(made_study(scores, plan)).values()
    assert "→NC, GC→: 44.0 ± 0.0 %" in svg


def test_charts_are_well_formed_deterministic_and_show_texts_as_they_are():
    svg = bars(EVIL, GROUPS)
    assert svg == bars(EVIL, GROUPS)
    assert svg.startswith("<svg")
    root = ElementTree.fromstring(svg)
    assert any(EVIL in text for text in root.itertext())
    assert not root.findall(".//{*}b")


def test_tooltips_have_the_values():
    titles = [title.text for title in ElementTree.fromstring(bars(EVIL, GROUPS)).iterfind(".//{*}title")]
    assert titles == [f"{EVIL}, {EVIL}: 2.5 ± 1.0 %", f"{EVIL}, b: -1.0 ± 0.0 %"]
