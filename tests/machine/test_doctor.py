"""The doctor's findings: what is wrong is advised upon, what is right is not."""

import os
from types import SimpleNamespace

import pytest
import torch

from heedful.machine import doctor
from heedful.machine.device import PrecisionChoice


@pytest.fixture
def cores(monkeypatch):
    monkeypatch.setattr(doctor, "usable_cores", lambda: 5)


@pytest.mark.parametrize(
    ("threads", "surroundings", "found", "advice"),
    [
        (5, {"OMP_NUM_THREADS": "5"}, "5 threads on 5 cores", ""),
        (7, {}, "5 threads on 5 cores", ""),  # heedful takes no more
        (3, {}, "3 threads on 5 cores", ""),  # torch leaves second hardware threads out
        (
            1,
            {"OMP_NUM_THREADS": "1"},
            "1 thread on 5 cores",
            "cores are idle because of OMP_NUM_THREADS=1: unset it, or set it to 5",
        ),
    ],
)
def test_there_should_be_as_many_threads_as_nobody_forbids(cores, monkeypatch, threads, surroundings, found, advice):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    for name in doctor.THREADS:
        monkeypatch.delenv(name, raising=False)
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    assert doctor.threads() == doctor.Finding("threads", found, advice)


@pytest.mark.parametrize(("used", "advised"), [(0.0, False), (0.2, False), (0.3, True), (4.9, True)])
def test_other_work_is_measured_and_not_remembered(cores, monkeypatch, used, advised):
    monkeypatch.setattr(doctor, "OtherWork", lambda: SimpleNamespace(cores=lambda: used))
    monkeypatch.setattr(doctor, "PERIOD", 0.0)
    finding = doctor.other_work()
    assert finding.result == f"other processes use {used} of 5 cores"
    assert ("stop processes that you do not need" in finding.advice) == advised


@pytest.mark.parametrize(("half", "precision"), [(120e9, "float32"), (400e9, "bfloat16")])
def test_the_precision_that_training_takes_is_told(monkeypatch, half, precision):
    speeds = {torch.float32: 100e9, torch.bfloat16: half}
    monkeypatch.setattr(doctor, "matmul_speed", lambda *sizes: speeds[sizes[3]])
    monkeypatch.setattr(doctor, "choose_precision", lambda _: PrecisionChoice(precision, "a reason"))
    finding = doctor.matrix_products()
    assert finding.result.startswith(f"float32 100, bfloat16 {half / 1e9:.0f} GFLOP/s")
    assert finding.result.endswith(f'train.precision = "auto" is {precision}')


@pytest.mark.parametrize(("free", "advice"), [(1.9, "close other programs"), (17.0, "")])
def test_little_memory_is_noticed(monkeypatch, free, advice):
    monkeypatch.setattr(doctor, "copy_speed", lambda _: 23e9)
    monkeypatch.setattr(doctor, "free_memory", lambda: free * 1e9)
    assert doctor.memory() == doctor.Finding("memory", f"bandwidth 23 GB/s, {free} GB free", advice)


def test_a_full_disk_is_noticed(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Usage(1_000_000_007))
    assert doctor.disk().advice.startswith("checkpoints need space")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Usage(71_000_000_000))
    assert doctor.disk() == doctor.Finding("disk", "71 GB free here")


class Usage:
    def __init__(self, free: int) -> None:
        self.free = free


def test_no_more_cores_are_usable_than_there_are():
    assert 1 <= doctor.usable_cores() <= (os.cpu_count() or 1)
