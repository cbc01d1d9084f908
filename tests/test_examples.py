"""Every example runs, and reaches the scores that its page leads the reader to expect."""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from same.cli import app
from same.methods import METHODS

EXAMPLES = Path(__file__).parents[1] / "examples"

# Scores of each example, and what they must exceed: a number, or another score plus a margin.
FLOORS = {
    "new_task": {
        "pattern, esame": ("pattern, untrained", 0.1),
        "share, esame": ("share, untrained", 0.15),
        "same_role, esame": ("same_role, untrained", 0.02),
    },
    "own_dataset": {
        "predicted, gc": ("LogisticRegression, gc, without edges", 0.2),
        "predicted, nc": 0.7,
        "LogisticRegression, gc": ("LogisticRegression, gc, without edges", 0.2),
        "pipeline, gc": ("LogisticRegression, gc, without edges", 0.2),
    },
    "own_encoder": {
        "own encoder, nc": ("own encoder, untrained, nc", 0.08),
        "own encoder, lp, own head": 0.65,
    },
    "own_method": {"alternating, gc": 0.5, "alternating, nc": 0.45, "alternating, lp": 0.6},
    "own_task": {
        "triangles": ("triangles, most common answer", 0.04),
        "nc": ("nc, most common answer", 0.08),
    },
    "own_weighting": {"relative, gc": 0.4, "relative, nc": 0.42, "relative, lp": 0.6},
    "one_large_graph": {
        "field, predicted": ("field, words alone", 0.2),
        "field, words alone": ("field, most common", 0.1),
        "links, embeddings (ROC AUC)": ("links, words alone (ROC AUC)", 0.1),
    },
    "pooling": {
        "cycles, linear head, mean+std+size": ("cycles, logistic regression of the means", 0.3),
        "cycles, own head, sum": ("cycles, own head, mean", 0.3),
        "marks, linear head, mean+max": ("marks, logistic regression of the means", 0.2),
        "marks, own head, max": ("marks, own head, mean", 0.3),
    },
    "no_graphs": {
        "SAME, digit": ("untrained, digit", 0.1),
        "SAME, even": ("untrained, even", 0.1),
        "SAME, centre": ("digit alone, centre", 0.1),
    },
}


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Methods that an example registers are forgotten after the test."""
    for name, entry in [*METHODS.items(), ("alternating", None)]:
        monkeypatch.setitem(METHODS, name, entry)
    monkeypatch.delitem(METHODS, "alternating")


def test_all_examples_are_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(FLOORS)


@pytest.mark.parametrize("name", FLOORS)
def test_an_example_runs_and_scores_as_expected(name, capsys):
    path = EXAMPLES / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 100
    scores = runpy.run_path(str(path))["main"]()
    assert capsys.readouterr().out
    for score, floor in FLOORS[name].items():
        least = scores[floor[0]] + floor[1] if isinstance(floor, tuple) else floor
        assert scores[score] > least, score


def test_a_method_of_your_own_works_from_the_command_line(tmp_path):
    method = f"{EXAMPLES / 'own_method.py'}:Alternating"
    settings = ["--set", "width=8", "--set", "max_epochs=1", "--set", "batch_size=200"]
    result = CliRunner().invoke(app, ["train", "planted", "-m", method, *settings, "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "alternating" in (tmp_path / "run" / "config.json").read_text(encoding="utf-8")


def test_ego_nets():
    """An ego-net begins with its centre, stays within two steps, and has exactly the links among its nodes."""
    example = runpy.run_path(str(EXAMPLES / "one_large_graph.py"))
    rng = np.random.default_rng(0)
    words, field, links = example["network"](rng, nodes=150)
    words = np.arange(150.0)[:, None]  # The attribute of a node is its number.
    store = example["ego_nets"](words, field, links, rng, size=12)
    dense = links.toarray() > 0
    reach = dense | (dense.astype(int) @ dense > 0) | np.eye(150, dtype=bool)
    assert len(store) == 150
    for centre in range(150):
        batch = store.cut([centre])
        nodes = batch.x[:, 0].long().numpy()
        assert nodes[0] == centre
        assert len(set(nodes)) == len(nodes) == min(12, reach[centre].sum())
        assert reach[centre, nodes].all()
        neighbours = dense[centre].sum()
        assert dense[centre, nodes].sum() == min(neighbours, 11)
        linked = np.zeros((len(nodes), len(nodes)), bool)
        linked[tuple(batch.edge_index.numpy())] = True
        assert (linked == dense[np.ix_(nodes, nodes)]).all()


def test_hidden_links_are_removed_and_other_pairs_are_not_links():
    example = runpy.run_path(str(EXAMPLES / "one_large_graph.py"))
    rng = np.random.default_rng(0)
    links = example["network"](rng, nodes=300)[2]
    rest, (u, v), joined = example["hide"](links, rng)
    assert 0.3 < joined.mean() < 0.7
    assert (np.asarray(links[u, v]).ravel() == joined).all()
    assert (np.asarray(rest[u, v]).ravel() == 0).all()
    assert rest.nnz + 2 * joined.sum() == links.nnz
