"""Signal handling of `heedful train`, which ends the command within seconds.

Before training, such as during data preparation, partial files are removed. If native code keeps running, the process
ends anyway, and the next command removes the files. During training, a long update or validation is abandoned, and the
run is saved.
"""

import os
import signal
import socket
import sys
import threading
from types import FrameType, TracebackType
from typing import NoReturn

from heedful.errors import Interrupted, RunError
from heedful.training.signals import Interruption

REQUEUE = 75  # exit code of --requeue: "temporary failure, try again" (EX_TEMPFAIL)
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")  # Windows has only the first two
TRAINING_PATIENCE = 2.0  # seconds for training to finish an update or a validation before it is abandoned
NATIVE_PATIENCE = 3.0  # seconds for native code, such as tokenizer training, to return


def exit_code(code: int, requeue: bool) -> int:
    """Return the exit code of `heedful train`: with `requeue`, 75 after any signal except Ctrl-C."""
    return REQUEUE if requeue and code > 128 and code != 128 + signal.SIGINT else code


class Stopping:
    """Context manager that turns a signal into `Interrupted`, so that partial files are removed.

    If this takes too long, because native code is running, a thread ends the process. A handler that is set within the
    block, such as the one for training, takes precedence. Only the main thread can enter the block.
    """

    def __init__(self, requeue: bool) -> None:
        self.requeue = requeue
        self.stopped = False
        self.ended = threading.Event()

    def __enter__(self) -> None:
        signals = [signal.Signals[name] for name in SIGNALS if name in signal.Signals.__members__]
        numbers = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
        self.before = {number: signal.signal(number, self.stop) for number in numbers}
        self.inner, self.outer = socket.socketpair()
        self.outer.setblocking(False)
        signal.set_wakeup_fd(self.outer.fileno(), warn_on_full_buffer=False)
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.ended.set()
        self.outer.shutdown(socket.SHUT_RDWR)  # a fork of this process may hold the socket open as well
        self.outer.close()
        self.thread.join()
        self.inner.close()

    def stop(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: the first one ends the block."""
        if not self.stopped:
            self.stopped = True
            error = Interrupted(stopped_by(number))
            error.exit_code = exit_code(128 + number, self.requeue)
            raise error

    def watch(self) -> None:
        """Wait for a signal, and end the process unless the block ends in time."""
        while received := self.inner.recv(1):
            number = received[0]
            handler = signal.getsignal(number)
            if handler == self.stop and not self.ended.wait(NATIVE_PATIENCE):
                self.end(number)
            training = getattr(handler, "__self__", None)
            if isinstance(training, Interruption) and not self.ended.wait(TRAINING_PATIENCE):
                self.abandon(training, number)

    def abandon(self, training: Interruption, number: int) -> None:
        """Save a run and end the process once its current work can be abandoned, unless the block ends first."""
        message = "stopped and saved in the middle of a long update or validation"
        try:
            while not training.work.abandon():
                if self.ended.wait(0.1):
                    return
        except RunError as error:
            message = f"stopped, but NOT SAVED: {error}"
        sys.stderr.write(f"heedful: {message} ({signal.Signals(number).name}); the same command resumes the run\n")
        sys.stderr.flush()
        os._exit(exit_code(128 + number, self.requeue))

    def end(self, number: int) -> NoReturn:
        """End the process at once; the next command removes the hidden folder in which data was being prepared."""
        sys.stderr.write(f"heedful: {stopped_by(number)}\n")
        sys.stderr.flush()
        os._exit(exit_code(128 + number, self.requeue))


def stopped_by(number: int) -> str:
    """Format the message about a signal that ends a command at once: one before training, or a second one during it."""
    name = signal.Signals(number).name
    return f"stopped by {name}; the same command resumes from the newest checkpoint, or starts again if there is none"
