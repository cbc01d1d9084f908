import logging
import os
import signal
import threading
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
if threading.current_thread() is threading.main_thread():
    # A shell that runs the tests in the background makes them ignore SIGINT; their subprocesses must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def separate_cache(tmp_path_factory, monkeypatch):
    """Keep the tests away from the user's cache and local sets."""
    monkeypatch.setenv("SAME_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("SAME_DATA", raising=False)


@pytest.fixture(autouse=True)
def restore_log_level():
    """`same --quiet` in this process would set the level of the logger for all later tests."""
    log = logging.getLogger("same")
    level = log.level
    yield
    log.setLevel(level)


def _real_sets() -> Path | None:
    beside = Path(__file__).parents[2] / "shared" / "data" / "tu"
    for folder in (os.environ.get("SAME_DATA"), beside):
        if folder and (Path(folder) / "ENZYMES.zip").is_file():
            return Path(folder)
    return None


REAL_SETS = _real_sets()


@pytest.fixture
def real_sets() -> Path:
    """The folder with the four real sets; without them the test is skipped."""
    if REAL_SETS is None:
        if os.environ.get("SAME_REQUIRE_DATA"):
            pytest.fail("SAME_REQUIRE_DATA is set, but the real sets are missing")
        pytest.skip("the real sets are missing: put ENZYMES.zip, … into a folder and name it with SAME_DATA")
    return REAL_SETS
