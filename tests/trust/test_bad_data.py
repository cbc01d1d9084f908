"""Nothing bad is let in: spoilt sets, configurations and arguments are refused in a line, or are sound after all."""

import pytest

from trust.bad_data import Tally, bounded, fuzz_cli, fuzz_config, fuzz_pyg, fuzz_tu


def try_all(share: int, seed: int, folder) -> Tally:
    with bounded():
        found = fuzz_tu(6 * share, seed, folder / "tu") + fuzz_pyg(4 * share, seed)
        return found + fuzz_config(2 * share, seed, folder / "config") + fuzz_cli(share, seed, folder / "cli")


def test_a_sample(tmp_path):
    found = try_all(24, 0, tmp_path)
    assert not found.faults, "\n".join(found.faults[:20])
    assert 0.1 < found.taken / found.tried < 0.9  # There is something of either.


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_more_than_ten_thousand(tmp_path):
    found = try_all(1000, 1, tmp_path)
    assert found.tried >= 13_000
    assert not found.faults, "\n".join(found.faults[:50])
