import subprocess
import sys
import time

import psutil
import pytest
import torch

from heedful.machine import other_work
from heedful.machine.other_work import OtherWork, SparePool, WaitPolicy, busy_seconds, wait_policy


class Readings:
    """Other work as a list says."""

    def __init__(self, *cores: float | None) -> None:
        self.left = list(cores)

    def cores(self) -> float | None:
        return self.left.pop(0)


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_waiting_threads_give_way_to_other_work_and_take_over_again_afterwards(three_threads):
    said: list[str] = []
    policy = WaitPolicy(Readings(0.0, 0.2, None, 0.9, 0.9, 0.2, 0.05, 0.05), said.append)
    brief = []
    with policy:
        for _ in range(8):
            policy.adapt()
            brief.append(policy.spare is not None)
    assert brief == [False, False, False, True, True, True, False, False]
    assert said == [
        "other processes use 0.9 cores: idle threads now yield the processor instead of spinning",
        "other processes no longer need the cores: idle threads spin again",
    ]


def test_the_threads_of_the_spare_pool_end_with_the_policy(three_threads):
    torch.zeros(1_000_003).add_(1)  # the threads that torch computes with
    before = threads_of_this_process()
    with WaitPolicy(Readings(0.9), lambda _: None) as policy:
        policy.adapt()
        assert threads_of_this_process() == before + 3
    assert policy.spare is None
    deadline = time.monotonic() + 120
    while threads_of_this_process() > before:  # the system takes a moment to end them
        assert time.monotonic() < deadline
        time.sleep(0.01)


def threads_of_this_process() -> int:
    return psutil.Process().num_threads()


def test_a_spare_pool_changes_no_bit_of_a_result(three_threads):
    x = torch.randn(401, 307)
    alone = (x @ x.mT).softmax(-1).sum()
    pool = SparePool()
    beside = (x @ x.mT).softmax(-1).sum()
    pool.close()
    assert torch.equal(alone, beside)


def test_what_other_processes_use_is_told_from_what_this_one_uses(monkeypatch):
    clock = iter([0.0, 0.5, 2.0, 2.0])  # the last one is read with the times of the processors
    processors, own = iter([100.0, 103.5]), iter([7.0, 8.0])
    monkeypatch.setattr(other_work.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(other_work.time, "process_time", lambda: next(own))
    monkeypatch.setattr(other_work, "busy_seconds", lambda: next(processors))
    others = OtherWork()
    assert others.cores() is None  # half a second tells nothing
    assert others.cores() == pytest.approx((3.5 - 1.0) / 2.0)


def test_a_busy_process_is_seen():
    before = busy_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert busy_seconds() - before > 0.4


@pytest.mark.parametrize(("threads", "cores", "matters"), [(3, 3, True), (3, 2, True), (3, 5, False), (1, 1, False)])
def test_threads_that_have_cores_to_spare_are_left_alone(monkeypatch, threads, cores, matters):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(other_work, "usable_cores", lambda: cores)
    monkeypatch.setattr(sys, "platform", "linux")
    assert (wait_policy(torch.device("cpu"), print).others is not None) == matters
    assert wait_policy(torch.device("meta"), print).others is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert wait_policy(torch.device("cpu"), print).others is None
