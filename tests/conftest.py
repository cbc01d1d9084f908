import logging
import os
import signal
import threading
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
if threading.current_thread() is threading.main_thread():
    # A shell that runs the tests in the background has them ignore SIGINT; what they start should not.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test sees or leaves anything in the user's cache, or the user's local sets unless it asks for them."""
    monkeypatch.setenv("SAME_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("SAME_DATA", raising=False)


@pytest.fixture(autouse=True)
def restore_log_level():
    """`same --quiet`, called in this process, sets the level of the logger for all later tests."""
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
    """The folder with the four real sets; the test is skipped where they are not."""
    if REAL_SETS is None:
        if os.environ.get("SAME_REQUIRE_DATA"):
            pytest.fail("SAME_REQUIRE_DATA is set, but the real sets are not there")
        pytest.skip("the real sets are not there: put ENZYMES.zip, … into a folder and name it with SAME_DATA")
    return REAL_SETS
