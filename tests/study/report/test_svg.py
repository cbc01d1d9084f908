from xml.etree import ElementTree

import pytest

from same.study.report.svg import Dot, bars, dots, ranking

EVIL = '<b>&"$x$'
MAKE = {
    "bars": lambda: bars(EVIL, [(EVIL, [(EVIL, 2.5, 1.0), ("b", -1.0, 0.0)])]),
    "dots": lambda: dots(EVIL, [Dot(0, 1, 0, EVIL), Dot(2, 3, 1, "b")], [EVIL, "b"], "trial", line=[(0, 1), (2, 3)]),
    "one dot": lambda: dots("one", [Dot(1, 1, 0, EVIL)], [EVIL], "x", ticks=[(1, EVIL)]),
    "ranking": lambda: ranking(EVIL, {EVIL: 0.5, "b": -0.1}),
}


@pytest.mark.parametrize("name", MAKE)
def test_charts_are_well_formed_deterministic_and_show_texts_as_they_are(name):
    svg = MAKE[name]()
    assert svg == MAKE[name]()
    assert svg.startswith("<svg")
    root = ElementTree.fromstring(svg)
    assert any(EVIL in text for text in root.itertext())
    assert not root.findall(".//{*}b")


def test_tooltips_have_the_values():
    titles = [title.text for title in ElementTree.fromstring(MAKE["bars"]()).iterfind(".//{*}title")]
    assert titles == [f"{EVIL}, {EVIL}: 2.5 ± 1.0 %", f"{EVIL}, b: -1.0 ± 0.0 %"]
    titles = [title.text for title in ElementTree.fromstring(MAKE["dots"]()).iterfind(".//{*}title")]
    assert titles == [EVIL, "b"]
