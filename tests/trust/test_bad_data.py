"""Spoilt sets, configurations and arguments are refused in one line, or turn out to be valid."""

import pytest

from trust.bad_data import Tally, bounded, fuzz_cli, fuzz_config, fuzz_pyg, fuzz_tu


def try_all(share: int, seed: int, folder) -> Tally:
    with bounded():
        graphs = fuzz_tu(6 * share, seed, folder / "tu") + fuzz_pyg(4 * share, seed)
        return graphs + fuzz_config(2 * share, seed, folder / "config") + fuzz_cli(share, seed, folder / "cli")


def test_a_sample_of_bad_input(tmp_path):
    tally = try_all(24, 0, tmp_path)
    assert not tally.faults, "\n".join(tally.faults[:20])
    assert 0.1 < tally.accepted / tally.tried < 0.9


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_bad_inputs(tmp_path):
    tally = try_all(1000, 1, tmp_path)
    assert tally.tried >= 13_000
    assert not tally.faults, "\n".join(tally.faults[:50])
