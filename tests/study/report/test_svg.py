from xml.etree import ElementTree

import numpy as np
import pytest

from same.study.report.svg import Dot, bars, dots, ranking, scatter, standalone

EVIL = "<b>&"
FIGURES = {
    "bars": bars(EVIL, [(EVIL, [(EVIL, 2.5, 1.0), ("b", -1.0, 0.0)])]),
    "dots": dots(EVIL, [Dot(0, 1, 0, EVIL), Dot(2, 3, 1, "b")], [EVIL, "b"], "trial", line=[(0, 1), (2, 3)]),
    "one dot": dots("one", [Dot(1, 1, 0, EVIL)], [EVIL], "x", ticks=[(1, EVIL)]),
    "scatter": scatter(EVIL, np.array([[0.0, 1.0], [1.0, 0.0]]), [EVIL, "b"]),
    "ranking": ranking(EVIL, {EVIL: 0.5, "b": -0.1}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_well_formed_and_show_texts_as_they_are(name):
    root = ElementTree.fromstring(FIGURES[name])
    texts = {text.strip() for text in root.itertext()}
    assert any(EVIL in text for text in texts)
    assert not root.findall(".//{*}b")
    assert ElementTree.fromstring(standalone(FIGURES[name])).get("color") == "#222"


def test_tooltips_have_the_values():
    assert "&lt;b&gt;&amp;, b: -1.0 ± 0.0 %" in FIGURES["bars"]
