"""Ctrl-C and SIGTERM while training: finish the step, save, say how to go on. A second signal ends at once."""

import signal
import threading
from types import FrameType, TracebackType


class Interruption:
    """A context in which the first signal is only noted; signals come to the main thread, and to no other."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __enter__(self) -> "Interruption":
        here = self.SIGNALS if threading.current_thread() is threading.main_thread() else ()
        self.before = {number: signal.signal(number, self.note) for number in here}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def note(self, number: int, _: FrameType | None) -> None:
        """Remember the signal and let the next one do what it always did."""
        self.signal = signal.Signals(number)
        self.restore()

    def restore(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal has ended: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.signal or 0)
