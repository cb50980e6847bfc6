"""Signal handling during training: Ctrl-C and SIGTERM finish the step and save; a second signal ends at once."""

import signal
import threading
from types import FrameType, TracebackType

from heedful.parallel import Reducer


class Interruption:
    """Context manager that notes the first SIGINT or SIGTERM instead of ending the process; main thread only."""

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
        """Handle a signal: remember it and restore the previous handlers for the next one."""
        self.signal = signal.Signals(number)
        self.restore()

    def restore(self) -> None:
        """Restore the signal handlers that were set before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def of_any(self, reducer: Reducer) -> bool:
        """True if any process of the training has received a signal; all processes then take it for their own."""
        number = max(reducer.gather(int(self.signal or 0)))
        self.signal = signal.Signals(number) if number else None
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code that a shell expects of a process ended by a signal: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.signal or 0)
