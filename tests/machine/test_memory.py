"""The peak of the memory is at least what was held, and never falls."""

import numpy as np
import pytest
import torch

from heedful.machine import memory
from heedful.machine.memory import is_out_of_memory, peak_memory

CPU = torch.device("cpu")


def test_the_peak_grows_with_what_is_held_and_stays():
    before = peak_memory(CPU)
    held = torch.ones(60_000_000, dtype=torch.float32)
    during = peak_memory(CPU)
    assert during >= held.numel() * 4
    del held
    assert peak_memory(CPU) >= 0.99 * during  # Linux counts pages of several cores, and is some behind
    assert during >= 0.99 * before


def test_without_procfs_the_peak_is_near(tmp_path, monkeypatch):
    exact = peak_memory(CPU)
    monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    assert peak_memory(CPU) >= 0.9 * exact


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
