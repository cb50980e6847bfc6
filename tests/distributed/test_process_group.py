"""Real processes hand each other what the reducer promises."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from heedful.distributed.launch import launch
from heedful.distributed.reducer import LAUNCHED_BY

SCRIPT = Path(__file__).with_name("collectives.py")


def test_three_processes_share_and_join_their_work(tmp_path):
    assert launch([sys.executable, str(SCRIPT), str(tmp_path)], 3) == 0
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    for rank, told in enumerate(found):
        assert told["gathered"] == [{"rank": i, "text": "é" * i, "value": 0.1 * i} for i in range(3)]
        assert told["first"] == [0, 0.1, None]
        assert told["in order"] == [10 * i for i in range(7)]
        assert told["after first"][0] == 0
        assert rank in told["after first"]
        assert told["tensors"] == {"a": torch.full((2, 3), 0.1).tolist(), "b": list(range(5))}
        assert told["gradients"] == [[7.0] * 15, None, None, [*map(float, range(7))], None]
        assert [row[0] for row in told["rows"]] == [1, 0, 1, 0, 0, 0, 0, 4, 0, 0, 0]


def run(tmp_path: Path, text: str, processes: int = 3) -> tuple[int, float]:
    """Launch a program; return its exit code and the seconds that it took."""
    script, begin = tmp_path / "program.py", time.monotonic()
    script.write_text("import os, sys, time\nrank = int(os.environ['RANK'])\n" + text)
    return launch([sys.executable, str(script)], processes), time.monotonic() - begin


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_process_that_failed_and_the_others_are_stopped(tmp_path):
    code, seconds = run(tmp_path, "time.sleep(600 * (rank != 1))\nsys.exit(7 + rank)\n")
    assert code == 8
    assert seconds < 300


@pytest.mark.slow
def test_a_process_that_was_killed_is_told_by_its_number_and_the_signal(tmp_path, capsys):
    code, _ = run(tmp_path, "time.sleep(600 * (rank != 1))\nos.kill(os.getpid(), 9)\n")
    assert code == 137
    assert capsys.readouterr().err == "heedful: process 1 was ended by SIGKILL; the same command resumes the run\n"


FAILS = """
from heedful.errors import InputError
from heedful.distributed.reducer import join_process_group, launched_by_torchrun
from heedful import cli

def work():
    with join_process_group(1, "cpu") as reducer:
        if reducer.rank in {failing}:
            raise InputError("the true cause")
        {others}

cli.app = work
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failing", "others"),
    [("[0]", "reducer.rank_zero_first(int)"), ("[1]", "reducer.all_gather(0)"), ("[0, 1]", "nobody")],
)
def test_an_error_of_one_process_or_all_is_told_once_and_ends_all_with_its_code(failing, others, tmp_path, capfd):
    code, seconds = run(tmp_path, FAILS.format(failing=failing, others=others), 2)
    assert capfd.readouterr().err == "heedful: the true cause\n"
    assert code == 2
    assert seconds < 25


SLOW_LINK = """
from heedful.distributed import reducer as processes
from heedful.distributed.reducer import end_process, join_process_group
import torch

honest = processes.dist.broadcast

def broadcast(*of):
    time.sleep(0.4)
    honest(*of)

processes.dist.broadcast = broadcast
with join_process_group(10 / 60, "cpu") as reducer:
    reducer.all_gather(0)
    reducer.broadcast_tensors({str(i): torch.ones(1) for i in range(31)})
end_process(0)
"""


@pytest.mark.slow
def test_a_slow_link_that_gives_one_tensor_after_the_other_is_no_hang(tmp_path):
    code, seconds = run(tmp_path, SLOW_LINK, 2)
    assert code == 0
    assert seconds > 12.4


SILENT = """
from heedful import cli
from heedful.distributed.reducer import join_process_group

def stay_away(slow):
    time.sleep(600 * slow)

def work():
    with join_process_group(0.1, "cpu") as reducer:
        reducer.all_gather(0)
        stay_away(rank == 1)
        reducer.all_gather(0)

cli.app = work
cli.main()
"""


@pytest.mark.slow
def test_a_process_that_stays_away_from_the_others_writes_its_stack_and_ends_them(tmp_path, capfd):
    code, seconds = run(tmp_path, SILENT, 2)
    told = capfd.readouterr().err
    assert code == 1
    assert 6 < seconds < 60
    assert "Timeout (0:00:06)!" in told
    assert "in stay_away" in told


STOPPED = SILENT.replace("time.sleep(600 * slow)", "slow and os.kill(os.getpid(), 19)")


@pytest.mark.slow
def test_processes_give_up_waiting_for_one_that_is_stopped(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "1")
    code, seconds = run(tmp_path, STOPPED, 2)
    told = capfd.readouterr().err
    assert told.startswith("heedful: process 0 received no reply from the others (")
    assert told.endswith("; the same command resumes the run\n")
    assert code == 1
    assert 6 < seconds < 60


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored_and_handlers_are_as_before(tmp_path):
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)}
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(tmp_path, "os.kill(os.getppid(), 1)\ntime.sleep(1)\n", 1)[0] == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, hangup)
    assert {name: signal.getsignal(name) for name in before} == before


ORPHAN = """
import os, subprocess, sys
variables = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "9"}
variables |= {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True", LAUNCHED_BY: str(os.getpid())}
subprocess.Popen([sys.executable, "-c", JOINS], env=os.environ | variables)
"""
JOINS = "from heedful.distributed.reducer import join_process_group\nwith join_process_group(3, 'cpu'): pass"


@pytest.mark.slow
def test_a_process_whose_launcher_was_killed_before_it_joins_the_others_ends_within_seconds():
    text = ORPHAN.replace("LAUNCHED_BY", repr(LAUNCHED_BY)).replace("JOINS", repr(JOINS))
    ended = subprocess.run([sys.executable, "-c", text], stderr=subprocess.PIPE, timeout=100, text=True, check=False)
    assert "the process that started this one was killed" in ended.stderr
