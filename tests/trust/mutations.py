"""Mutations: known mistakes, planted one at a time in a copy of the source. A test must fail for each."""

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
    """A mistake.

    Args:
        name: description of the mistake.
        file: file below `src/same`.
        old: text that is replaced; it occurs once in the file.
        new: text that replaces it.
        tests: ids of the tests that must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """Return the text of a file with the mistake in it."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} contains {self.old!r} {source.count(self.old)} times")
        return source.replace(self.old, self.new)


MUTATIONS = [
    Mutation(
        "first order instead of second",
        "methods/adapt.py",
        "create_graph=not first_order",
        "create_graph=False",
        ("tests/methods/test_same.py::test_the_outer_gradient_is_exact_and_the_first_order_one_is_not[isame-gat]",),
    ),
    Mutation(
        "λ scales the inner step",
        "methods/same.py",
        "return cls(config.inner_lr,",
        "return cls(config.inner_lr * max([1.0, *config.weights.values()]),",
        ("tests/methods/test_same.py::test_weights_scale_the_outer_sum_only[isame]",),
    ),
    Mutation(
        "weights ignored in the outer sum",
        "weighting/weighting.py",
        "self.weights.get(task, 1.0)",
        "1.0",
        ("tests/methods/test_same.py::test_weights_scale_the_outer_sum_only[esame]",),
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
        "labels matched by position",
        "graphs/labels.py",
        "code[value] for value in self.classes)",
        "i for i, _ in enumerate(self.classes))",
        ("tests/tasks/test_init.py::test_a_set_to_score_is_matched_by_value",),
    ),
    Mutation(
        "score without matching labels",
        "saved/trained.py",
        "store = task.match(store)",
        "pass",
        ("tests/test_estimator.py::test_a_set_that_lacks_a_class_is_matched_by_value",),
    ),
    Mutation(
        "scaling in single precision",
        "graphs/inputs.py",
        "(store.x[nodes].astype(np.float64) - centre)",
        "(store.x[nodes].astype(np.float32) - centre.astype(np.float32))",
        ("tests/graphs/test_inputs.py::test_an_offset_changes_nothing",),
    ),
    Mutation(
        "scaling fitted on test graphs",
        "experiment.py",
        "Inputs.fit(store, parts.train,",
        "Inputs.fit(store, np.concatenate([parts.train, parts.test]),",
        ("tests/test_experiment.py::test_scaling_is_fitted_on_training_graphs_alone",),
    ),
    Mutation(
        "split that depends on the method",
        "experiment.py",
        "split(store, config.split, config.seed)",
        "split(store, config.split, config.seed + len(config.method))",
        ("tests/test_experiment.py::test_all_methods_start_from_the_same_encoder_and_split",),
    ),
    Mutation(
        "Δm against the wrong baseline",
        "study/report/tables.py",
        'Source("classical", (task,), protocol=source.protocol)',
        'Source("classical", ("gc", "nc"), protocol=source.protocol)',
        ("tests/study/report/test_tables.py::test_delta_m_is_per_split_against_that_splits_single_task_models",),
    ),
    Mutation(
        "key without the fields that have an absent value",
        "config.py",
        'isinstance(extra, dict) and values[name] == extra["absent"]',
        "isinstance(extra, dict)",
        ("tests/test_config.py::test_the_key_leaves_out_fields_at_their_absent_values",),
    ),
    Mutation(
        "run counted as finished without a result",
        "saved/format.py",
        "except FileNotFoundError:\n        return None",
        "except FileNotFoundError:\n        return {}",
        ("tests/saved/test_format.py::test_a_run_without_a_result_is_not_finished",),
    ),
    Mutation(
        "resume that forgets the random state",
        "training/loop.py",
        "seed_dropout(training.model, seed)",
        "pass",
        ("tests/test_experiment.py::test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_bits[dropout]",),
    ),
    Mutation(
        "initialisation that threads disturb",
        "seeding.py",
        "with _TORCH, torch",
        "with torch",
        ("tests/test_seeding.py::test_one_thread_at_a_time_uses_the_forked_generator",),
    ),
]


def run_tests(source: Path, tests: Sequence[str], flags: Sequence[str] = ("-x",)) -> subprocess.CompletedProcess[str]:
    """Run tests with another source."""
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
    """Return whether a test fails with a mutation; a test that cannot be run does not count."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "same" / mutation.file
        path.write_text(mutation.planted(path.read_text(encoding="utf-8")), encoding="utf-8")
        return run_tests(source, mutation.tests).returncode == 1


def control() -> bool:
    """Return whether the tests pass without a mutation; otherwise their failures would mean nothing."""
    return run_tests(ROOT / "src", tuple(test for mutation in MUTATIONS for test in mutation.tests)).returncode == 0
