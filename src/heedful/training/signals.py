"""Signals during training: Ctrl-C, SIGTERM and others finish the update and save; a second signal ends at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from heedful.distributed import Reducer, launcher_has_ended, of_torchrun

ECHO = 5.0  # seconds in which a process of torchrun may get the same signal twice: from torchrun and from its sender


class Work:
    """Work that a signal may abandon in the middle: a pass of an update or a validation, which changes no weight.

    So what is saved while it runs is what would have been saved before it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.save: Callable[[], object] | None = None

    @contextmanager
    def abandonable(self, save: Callable[[], object]) -> Iterator[None]:
        """Context manager of the work; `save` saves the state before it, from another thread."""
        with self.lock:
            self.save = save
        try:
            yield
        finally:
            with self.lock:  # if it was abandoned, the end is never reached
                self.save = None

    def abandon(self) -> bool:
        """Save the state before the work, and never let the work reach its end; False if none is being done.

        The process has to end now.
        """
        self.lock.acquire()  # and keep it, so that the work cannot leave its block and change weights
        if self.save is None:
            self.lock.release()
            return False
        self.save()
        return True


class Interruption:
    """Context manager that notes the first signal instead of ending the process; main thread only.

    A signal that was ignored before stays ignored, such as SIGHUP below nohup.
    """

    SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")  # Windows has only the first two

    def __init__(self, work: Work | None = None) -> None:
        self.work = work or Work()
        self.signal: signal.Signals | None = None
        self.noted = 0.0

    @classmethod
    def heard(cls) -> list[signal.Signals]:
        """List the signals that interrupt this process: those that are not ignored; none off the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return []
        numbers = [signal.Signals[name] for name in cls.SIGNALS if name in signal.Signals.__members__]
        return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def __enter__(self) -> "Interruption":
        self.before = {number: signal.signal(number, self.note) for number in self.heard()}
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def note(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: remember the first; a second one has the effect that it had before."""
        if self.signal is None:
            self.signal, self.noted = signal.Signals(number), time.monotonic()
        elif not of_torchrun() or time.monotonic() > self.noted + ECHO:
            self.restore()
            signal.raise_signal(number)

    def restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def of_any(self, reducer: Reducer) -> bool:
        """True if any process of the training has received a signal; all processes then take it for their own.

        A process whose launcher was killed counts as one that received SIGTERM: nobody else would end it.
        """
        if self.signal is None and launcher_has_ended():
            self.signal = signal.SIGTERM
        # All processes stop after the same update, or those that go on would wait for the others.
        number = max(reducer.all_gather(int(self.signal or 0)))
        if number:
            self.signal = signal.Signals(number)
        return number > 0

    @property
    def exit_code(self) -> int:
        """Exit code that a shell expects of a process ended by a signal: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.signal or 0)
