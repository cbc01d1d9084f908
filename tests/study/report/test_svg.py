from xml.etree import ElementTree

from same.study.report.svg import bars

EVIL = '<b>&"$x$'
GROUPS = [(EVIL, [(EVIL, 2.5, 1.0), ("b", -1.0, 0.0)])]


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
