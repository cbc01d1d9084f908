"""Known mistakes, planted one at a time in a copy of the source: does a test fail for each?"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutation:
    """A mistake: what is replaced, in which file, by what; and the tests that should notice."""

    name: str
    file: str
    there: str
    instead: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """A file's text with the mistake in it."""
        if source.count(self.there) != 1:
            raise ValueError(f"{self.name}: {self.file} has {source.count(self.there)} places like {self.there!r}")
        return source.replace(self.there, self.instead)


MUTATIONS = [
    Mutation(
        "first order instead of second",
        "methods/adapt.py",
        "create_graph=not first_order",
        "create_graph=False",
        ("tests/methods/test_same.py::test_the_outer_gradient_is_exact_and_the_first_order_one_is_not[isame-gat]",),
    ),
    Mutation(
        "first order instead of second, where derivatives are written out",
        "methods/closed.py",
        "if not first_order:",
        "if False:",
        ("tests/methods/test_same.py::test_the_outer_gradient_is_exact_and_the_first_order_one_is_not[isame-gcn]",),
    ),
    Mutation(
        "message passing over held-out edges",
        "graphs/batch.py",
        "edges=edges, edge_ptr=kept_before[self.edge_ptr])",
        "edges=self.edges, edge_ptr=kept_before[self.edge_ptr])",
        ("tests/probes/test_protocols.py::test_held_out_edges_are_in_no_adjacency_used_to_embed",),
    ),
    Mutation(
        "negatives that are edges",
        "tasks/link_prediction.py",
        'number = drawn - first[graph] + np.searchsorted(before, drawn, side="right") - edge_ptr[graph]',
        "number = drawn - first[graph]",
        ("tests/tasks/test_link_prediction.py::test_cut",),
    ),
    Mutation(
        "support in target",
        "tasks/labelled.py",
        "torch.from_numpy(np.flatnonzero(~chosen))",
        "torch.arange(len(chosen))",
        ("tests/tasks/test_classification.py::test_cut_of_nodes",),
    ),
    Mutation(
        "wrong pooling",
        "graphs/batch.py",
        "return total / self.node_ptr.diff()[:, None]",
        "return total",
        ("tests/methods/test_same.py::test_drawn_episodes_mean_the_same_to_the_literal_algorithm[esame]",),
    ),
    Mutation(
        "double sigmoid",
        "tasks/link_prediction.py",
        "F.binary_cross_entropy_with_logits, output, examples.y",
        "F.binary_cross_entropy_with_logits, output.sigmoid(), examples.y",
        ("tests/tasks/test_link_prediction.py::test_the_loss_applies_one_sigmoid_to_logits",),
    ),
    Mutation(
        "split that depends on the method",
        "runs.py",
        "split(store, config.split, config.seed)",
        "split(store, config.split, config.seed + len(config.method))",
        ("tests/test_runs.py::test_all_methods_start_from_the_same_encoder_and_split",),
    ),
    Mutation(
        "scaling fitted on test graphs",
        "runs.py",
        "Inputs.fit(store, parts.train,",
        "Inputs.fit(store, [*parts.train, *parts.test],",
        ("tests/test_runs.py::test_scaling_is_fitted_on_training_graphs_alone",),
    ),
    Mutation(
        "Δm against the wrong baseline",
        "study/report/tables.py",
        'return study.scores(dataset, "classical", (task,), task, probe_of("classical", protocol), protocol=protocol)',
        'return study.scores(dataset, "classical", ("gc", "nc"), task, probe_of("classical"), protocol=protocol)',
        ("tests/study/report/test_tables.py::test_delta_m_is_per_split_against_that_splits_single_task_models",),
    ),
    Mutation(
        "resume that forgets the random state",
        "training.py",
        'torch.manual_seed(int(stream(config.seed, "dropout", config.split, number).integers(2**63)))',
        "pass",
        ("tests/test_training.py::test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_bits[changes2]",),
    ),
]


def run_tests(source: Path, tests: Sequence[str], flags: Sequence[str] = ("-x",)) -> subprocess.CompletedProcess[str]:
    """Runs some tests with another source."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    flags = ["-q", "--no-header", "-p", "no:cacheprovider", *flags]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *flags, *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def plant(mutation: Mutation) -> bool:
    """Whether a test fails when a mistake is planted: fails, not just cannot be run."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "same" / mutation.file
        path.write_text(mutation.planted(path.read_text(encoding="utf-8")), encoding="utf-8")
        return run_tests(source, mutation.tests).returncode == 1


def control() -> bool:
    """Whether the tests pass when nothing is planted; otherwise their failing would mean nothing."""
    return run_tests(ROOT / "src", tuple(test for mutation in MUTATIONS for test in mutation.tests)).returncode == 0
