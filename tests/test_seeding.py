"""Independent random streams, and blocks in which torch's global generator is seeded."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
import torch

from same.seeding import Stream, forked_torch, stream, stream_seed


def test_streams_of_other_seeds_purposes_and_keys_are_independent():
    keys = [(0, name) for name in get_args(Stream)] + [
        (1, "splits"),
        (0, "splits", 0),
        (0, "splits", 1),
        (0, "splits", 0, 1),
    ]
    draws = [stream(*key).standard_normal(500) for key in keys]
    for a, b in itertools.combinations(draws, 2):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.2
    for key, values in zip(keys, draws, strict=True):
        assert np.array_equal(stream(*key).standard_normal(500), values)


def test_streams_never_change():
    """Every published number depends on these draws."""
    assert stream(0, "splits").integers(10**6, size=3).tolist() == [802237, 942937, 5483]
    assert stream(3, "tune", 1, 2).integers(10**6, size=3).tolist() == [763808, 161315, 344265]
    assert stream_seed(0, "init", 4) == 6119337129203562263


def test_a_block_repeats_and_restores_the_global_generator():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    draws = []
    for seed in (1, 1, 2):
        with forked_torch(seed):
            draws.append(torch.rand(3))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    with pytest.raises(TypeError), forked_torch(3):
        torch.rand(1, dtype=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_blocks_can_be_nested():
    with forked_torch(1):
        torch.rand(1)
        expected = torch.rand(3)
    with forked_torch(1):
        torch.rand(1)
        with forked_torch(2):
            torch.rand(7)
        assert torch.equal(torch.rand(3), expected)


def test_one_thread_at_a_time_uses_the_forked_generator():
    entered = threading.Event()

    def enter():
        with forked_torch(2):
            entered.set()

    thread = threading.Thread(target=enter)
    with forked_torch(1):
        thread.start()
        assert not entered.wait(0.1)
    thread.join()
    assert entered.is_set()


def test_threads_draw_the_numbers_of_a_serial_program():
    def draw(seed):
        with forked_torch(seed):
            return torch.cat([torch.rand(50) for _ in range(20)])

    before = torch.get_rng_state()
    expected = [draw(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for values, serial in zip(pool.map(draw, range(8)), expected, strict=True):
            assert torch.equal(values, serial)
    assert torch.equal(torch.get_rng_state(), before)
