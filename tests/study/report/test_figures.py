from dataclasses import replace

from helpers import random_store
from same.study.report.figures import bar_figures, draw_graphs, embedding_figures
from same.study.report.tables import make_tables
from same.study.results import Study
from study_helpers import Q4, SCORES, made_study


def test_embeddings_are_drawn_where_the_model_and_the_dataset_are(finished, tmp_path):
    study = Study.open(finished)
    figures = embedding_figures(study, None)
    assert set(figures) == {"embeddings-nodes-planted", "embeddings-graphs-planted"}
    assert all("eSAME embeddings" in svg for svg in figures.values())
    assert embedding_figures(replace(study, folder=tmp_path), None) == {}


def test_bars_have_the_values_of_the_table():
    study = made_study(SCORES, Q4)
    (svg,) = bar_figures(study, make_tables(study)).values()
    assert "GC+NC, eSAME: 2.5 ± 2.5 %" in svg
    assert "iSAME" not in svg  # It was not run.


def test_graphs_of_any_kind_are_drawn(tmp_path):
    for number, sizes in enumerate(([5, 1, 8], [1])):
        path = tmp_path / f"{number}.png"
        draw_graphs(random_store(0, sizes), path)
        assert path.read_bytes().startswith(b"\x89PNG")
