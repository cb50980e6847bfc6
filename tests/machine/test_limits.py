"""Measured limits are in their units, and what is slower takes longer."""

from itertools import count
from types import SimpleNamespace

import pytest
import torch

from heedful.machine import speed as limits

CPU = torch.device("cpu")


def test_a_call_that_waits_takes_as_long_as_it_waits(monkeypatch):
    moments = count(7, 0.003)  # of a clock that a call lets go on
    clock = SimpleNamespace(now=next(moments))
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    assert limits.best_time(lambda: setattr(clock, "now", next(moments)), CPU) == pytest.approx(0.003)


def test_what_counts_is_the_best_trial(monkeypatch):
    times = iter([0.5, 0.1, 0.4, 0.3, 0.7, 0.2, 0.9])
    monkeypatch.setattr(limits, "timed", lambda *_: next(times))
    assert limits.best_time(int, CPU) == 0.2


def test_a_matrix_product_counts_two_operations_for_each_of_its_products(monkeypatch):
    monkeypatch.setattr(limits, "best_time", lambda call, _: 0.5 if call().shape == (3, 7) else None)
    assert limits.matmul_speed(3, 5, 7, torch.bfloat16, CPU) == 2 * 3 * 5 * 7 / 0.5


def test_a_copied_byte_is_read_and_written(monkeypatch):
    monkeypatch.setattr(limits, "best_time", lambda call, _: 0.25 if len(call()) == 101 else None)
    assert limits.copy_speed(CPU, 101) == 808
