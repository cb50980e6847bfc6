"""Workers compute what the process would, in its order, and end when it does."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import count, islice
from typing import Any

import pytest
import torch

from heedful import workers
from heedful.errors import InputError, RunError
from heedful.workers import AHEAD, Workers, map_ahead

COPIES = [True, False]  # workers are copies of this process, or new ones, as on macOS and Windows
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")


def squared(number):
    return number * number


@pytest.mark.parametrize("system", [pytest.param("linux", marks=LINUX), "darwin"])
@pytest.mark.parametrize("number", [0, 1, 2, 17])
def test_results_come_in_the_order_of_the_items(system, number, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    assert list(map_ahead(squared, range(number), 3)) == [squared(item) for item in range(number)]


@pytest.mark.parametrize("system", [pytest.param("linux", marks=LINUX), "darwin"])
def test_items_without_end_are_computed_a_few_ahead(system, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    items = count()
    with closing(map_ahead(squared, items, 2)) as found:
        assert list(islice(found, 5)) == [0, 1, 4, 9, 16]
    assert next(items) == 5 + 2 * AHEAD
    assert multiprocessing.active_children() == []


@LINUX
def test_workers_compute_side_by_side_with_one_thread_each():
    def who(_):
        time.sleep(0.05)
        return os.getpid(), torch.get_num_threads()

    with closing(Workers(who, 3)) as workers:
        found = list(workers.map(range(7)))
    assert len({process for process, _ in found}) == 3
    assert {threads for _, threads in found} == {1}
    assert os.getpid() not in {process for process, _ in found}


def numbers(size: int) -> dict[str, Any]:
    wanted = torch.arange(size).reshape(3, -1)
    return {"a": wanted, "b": (wanted.double(), 7)}


@pytest.mark.parametrize("copies", COPIES)
def test_tensors_come_back_as_they_were(copies, monkeypatch):
    monkeypatch.setattr(workers, "uses_fork", lambda: copies)
    with closing(Workers(numbers, 1)) as started:
        (found,) = started.map([600_000])
    wanted = torch.arange(600_000).reshape(3, -1)
    assert torch.equal(found["a"], wanted)
    assert torch.equal(found["b"][0], wanted.double())


def test_new_processes_as_well_raise_errors_leave_signals_alone_and_end(monkeypatch):
    monkeypatch.setattr(workers, "uses_fork", lambda: False)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with closing(Workers(reciprocal, 2)) as started:
            results = started.map([1, 2, 4, 0, 5])
            assert next(results) == 1
            for process in started.processes:
                os.kill(process.pid, signal.SIGTERM)
            assert list(islice(results, 2)) == [0.5, 0.25]
            with pytest.raises(ZeroDivisionError):
                next(results)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert multiprocessing.active_children() == []


@LINUX
def test_what_a_user_must_act_on_is_raised_in_its_own_words():
    def fail(_):
        raise InputError("cat.png: the file is damaged")

    with closing(Workers(fail, 2)) as workers, pytest.raises(InputError, match=r"^cat\.png: the file is damaged$"):
        next(iter(workers.map(range(3))))


def reciprocal(number: int) -> float:
    return 1 / number


@LINUX
def test_an_error_of_another_kind_is_raised_with_the_lines_of_the_worker():
    with closing(Workers(reciprocal, 2)) as workers, pytest.raises(ZeroDivisionError) as caught:
        list(workers.map([1, 0]))
    assert "in a worker:" in caught.value.__notes__[0]
    assert "1 / number" in caught.value.__notes__[0]


@LINUX
def test_an_error_that_cannot_be_sent_is_told():
    class Local(Exception):
        pass

    def fail(_):
        raise Local("odd")

    with closing(Workers(fail, 1)) as workers, pytest.raises(RunError, match=r"a worker failed: .*Local\('odd'\)"):
        list(workers.map([1]))


def unsendable(_):
    return lambda: None


@LINUX
def test_a_result_that_cannot_be_sent_ends_the_worker_aloud(capfd):
    with (
        closing(Workers(unsendable, 1)) as workers,
        pytest.raises(RunError, match=r"exited with code 1; its error is above"),
    ):
        list(workers.map([1]))
    assert "Traceback" in capfd.readouterr().err


def no_descriptor(_):
    raise OSError(24, "Too many open files")


@LINUX
def test_an_error_of_the_system_within_the_function_is_no_end_of_the_process():
    with closing(Workers(no_descriptor, 1)) as workers, pytest.raises(OSError, match="Too many open files"):
        list(workers.map([1]))


SUMS = """
import torch
from heedful.workers import map_ahead
assert [int(x.sum()) for x in map_ahead(lambda n: torch.ones(n), range(9), 3)] == [*range(9)]
"""


@LINUX
def test_workers_leave_no_folder_behind(tmp_path):
    subprocess.run([sys.executable, "-c", SUMS], check=True, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=60)
    assert list(tmp_path.iterdir()) == []


@LINUX
def test_workers_compute_where_the_folder_for_temporary_files_has_a_long_name(tmp_path):
    folder = tmp_path / ("long" * 32)
    folder.mkdir()
    subprocess.run([sys.executable, "-c", SUMS], check=True, env={**os.environ, "TMPDIR": str(folder)}, timeout=60)
    assert list(folder.iterdir()) == []


@LINUX
def test_processes_that_the_system_does_not_make_are_an_error_and_leave_none(monkeypatch):
    start = multiprocessing.context.ForkProcess.start

    def refuse(process):
        if multiprocessing.active_children():
            raise BlockingIOError(11, "Resource temporarily unavailable")
        start(process)

    monkeypatch.setattr(multiprocessing.context.ForkProcess, "start", refuse)
    with pytest.raises(RunError, match=r"cannot start 3 workers .*temporarily unavailable.* fewer"):
        Workers(squared, 3)
    assert multiprocessing.active_children() == []


@LINUX
def test_a_daemon_which_may_have_no_children_uses_threads(monkeypatch):
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    assert list(map_ahead(squared, range(5), 2)) == [0, 1, 4, 9, 16]


@LINUX
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda _: os.kill(os.getpid(), signal.SIGKILL), r"a worker was terminated by SIGKILL: .*memory.*workers=1"),
        (lambda _: os._exit(7), r"a worker exited with code 7; its error is above"),
    ],
)
def test_a_worker_that_ends_is_an_error_with_a_remedy(end, told):
    with closing(Workers(end, 2)) as workers, pytest.raises(RunError, match=told):
        list(workers.map(range(9)))
    assert multiprocessing.active_children() == []


@LINUX
@pytest.mark.parametrize("ending", ["1 / 0", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "pass"])
def test_no_worker_outlives_its_process(ending):
    code = f"""
from heedful.workers import Workers
import os
workers = Workers(lambda _: os.getpid(), 2)
print(*sorted(set(workers.map(range(6)))), flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    first, second = map(int, done.stdout.split())
    deadline = time.monotonic() + 10
    while any(map(is_alive, (first, second))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, (first, second)))


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Unwanted:
    """Garbage in a cycle, which writes the process that destroys it."""

    def __init__(self, path):
        self.path, self.me = path, self

    def __del__(self):
        self.path.write_text(str(os.getpid()))


@LINUX
def test_a_worker_does_not_destroy_what_it_inherits(tmp_path):
    gc.disable()
    try:
        Unwanted(tmp_path / "destroyed")
        assert list(map_ahead(lambda _: gc.collect() >= 0, range(3), 2)) == [True] * 3
        assert not (tmp_path / "destroyed").exists()
    finally:
        gc.enable()
    gc.collect()
    assert (tmp_path / "destroyed").read_text() == str(os.getpid())


@LINUX
@pytest.mark.parametrize("collects", [True, False])
def test_a_worker_collects_garbage_if_its_parent_does(collects):
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert list(map_ahead(lambda _: gc.isenabled(), range(3), 2)) == [collects] * 3
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
