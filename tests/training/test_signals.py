"""Signals during training: what the first one, a second one and that of another process do."""

import os
import signal
from collections.abc import Iterator

import pytest

from heedful.distributed.reducer import SINGLE_PROCESS
from heedful.training import signals
from heedful.training.signals import Interruption
from several_processes import in_processes


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C does what it usually does, even where the tests run in the background and were told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]
)
def test_the_first_signal_is_noted_and_gives_the_shells_exit_code(number, code):
    with Interruption() as interruption:
        assert interruption.signal is None
        os.kill(os.getpid(), number)
        assert interruption.signal == number
    assert interruption.exit_code == code


def test_the_second_signal_ends_at_once(ctrl_c):
    with Interruption():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_given_back():
    before = signal.getsignal(signal.SIGTERM)
    with Interruption():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.signal is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_torchrun_and_a_service_manager_may_both_send_the_same_signal(ctrl_c, monkeypatch):
    monkeypatch.setattr(signals, "launched_by_torchrun", lambda: True)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        interruption.noted -= signals.ECHO
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_signal_of_one_process_stops_all_of_them():
    def work(reducer):
        interruption = Interruption()
        before = interruption.of_any(reducer)
        interruption.signal = signal.SIGTERM if reducer.rank == 1 else None
        return before, interruption.of_any(reducer), interruption.exit_code

    assert in_processes(3, work) == [(False, True, 143)] * 3


def test_a_signal_that_comes_while_the_processes_ask_each_other_is_not_lost():
    class Late:
        def all_gather(self, value):
            interruption.signal = signal.SIGTERM
            return [value]

    interruption = Interruption()
    assert not interruption.of_any(Late())
    assert interruption.of_any(Late())


def test_a_process_whose_launcher_was_killed_saves_and_ends(monkeypatch):
    with Interruption() as interruption:
        assert not interruption.of_any(SINGLE_PROCESS)
        monkeypatch.setattr(signals, "launcher_has_ended", lambda: True)
        assert interruption.of_any(SINGLE_PROCESS)
    assert interruption.exit_code == 143
