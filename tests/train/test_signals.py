import os
import signal
from collections.abc import Iterator

import pytest

from heedful.train.signals import Interruption


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C does what it usually does, even where the tests run in the background and were told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
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
