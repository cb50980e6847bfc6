"""Signals during training: after Ctrl-C, SIGTERM or the like, a run saves and ends; a second signal ends it at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from heedful.distributed.reducer import Reducer, launched_by_torchrun, launcher_has_ended

ECHO = 5.0  # seconds within which a process under torchrun may get a signal twice: from torchrun and from the sender


class Work:
    """Work that a signal may abandon halfway, because it changes no weights: the passes of an update, or a validation.

    So a checkpoint saved during the work equals one saved before it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.save: Callable[[], object] | None = None

    @contextmanager
    def abandonable(self, save: Callable[[], object]) -> Iterator[None]:
        """Let `abandon`, called by another thread, interrupt the work in the block; `save` saves the state before."""
        with self.lock:
            self.save = save
        try:
            yield
        finally:
            with self.lock:  # waits forever if the work was abandoned
                self.save = None

    def abandon(self) -> bool:
        """Save the state before the work, and keep the work from ever finishing; the process has to end afterwards.

        Returns False, and does nothing, if no work is being done.
        """
        self.lock.acquire()  # held from now on, so that the work cannot leave its block and change weights
        if self.save is None:
            self.lock.release()
            return False
        self.save()
        return True


class Interruption:
    """Context manager that notes the first signal instead of ending the process; it works only in the main thread.

    A signal that was ignored before stays ignored, such as SIGHUP under nohup.
    """

    SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")  # Windows has only the first two

    def __init__(self, work: Work | None = None) -> None:
        self.work = work or Work()
        self.signal: signal.Signals | None = None
        self.noted = 0.0

    @classmethod
    def handled_signals(cls) -> list[signal.Signals]:
        """List the signals that interrupt this process: those not ignored, or none outside of the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return []
        numbers = [signal.Signals[name] for name in cls.SIGNALS if name in signal.Signals.__members__]
        return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def __enter__(self) -> "Interruption":
        self.before = {number: signal.signal(number, self.note) for number in self.handled_signals()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def note(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: remember the first; a second one has its original effect.

        Under torchrun, a second one within `ECHO` seconds is ignored, because it may be a copy of the first.
        """
        if self.signal is None:
            self.signal, self.noted = signal.Signals(number), time.monotonic()
        elif not launched_by_torchrun() or time.monotonic() > self.noted + ECHO:
            self.__exit__()
            signal.raise_signal(number)

    def of_any(self, reducer: Reducer) -> bool:
        """Return True if any training process has received a signal; then all processes act as if they had.

        A process whose launcher was killed counts as one that received SIGTERM, because nothing else would end it.
        """
        if self.signal is None and launcher_has_ended():
            self.signal = signal.SIGTERM
        # All processes stop after the same update; otherwise those that continue would wait for the others.
        number = max(reducer.all_gather(int(self.signal or 0)))
        if number:
            self.signal = signal.Signals(number)
        return number > 0

    @property
    def exit_code(self) -> int:
        """Exit code that a shell expects from a process ended by a signal: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.signal or 0)
