"""The peak of the memory is at least what was held."""

import time

import numpy as np
import psutil
import pytest
import torch

from heedful.machine.memory import PERIOD, PeakMemory, free_memory, is_out_of_memory, total_memory

CPU = torch.device("cpu")


def test_the_peak_of_a_block_is_what_was_held_at_most():
    with PeakMemory(CPU) as memory:
        before = psutil.Process().memory_info().rss
        held = torch.ones(60_000_000, dtype=torch.float32)
        # The system may take pages from the process meanwhile, so that this can be less than before + 240 MB.
        during = psutil.Process().memory_info().rss
        time.sleep(3 * PERIOD)
        del held
    assert memory.bytes >= max(0.99 * during, 240_000_000)
    assert memory.bytes < before + 480_000_000


def test_the_peak_is_known_after_an_error_too():
    memory = PeakMemory(CPU)
    with pytest.raises(ZeroDivisionError), memory:
        assert 1 / 0
    assert memory.bytes > 0


def test_less_memory_is_free_than_there_is():
    assert 0 < free_memory() < total_memory()


def test_an_allocation_that_fails_is_told_from_other_errors():
    with pytest.raises(RuntimeError) as failed:
        torch.empty(10**15)
    assert is_out_of_memory(failed.value)
    with pytest.raises(MemoryError) as failed:
        np.zeros(10**15)
    assert is_out_of_memory(failed.value)
    with pytest.raises(RuntimeError) as failed:
        torch.dot(torch.ones(2), torch.ones(3))
    assert not is_out_of_memory(failed.value)
