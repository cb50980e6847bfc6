"""Exceptions of heedful with their exit codes: wrong input, a failed run, and interruption by the user.

Every message is one paragraph that says where the problem is (file, line, key) and how to solve it; the command line
prints it on standard error without a traceback and exits with `exit_code`. Public functions document an InputError only
if its cause is not obvious.
"""

MAX_CHARACTERS = 4000  # maximum length of a message, which may quote untrusted input


class HeedfulError(Exception):
    """Base class of all errors that a user can cause or has to act on."""

    exit_code = 1

    def message(self) -> str:
        """Return the message for the command line, which replaces the keys of settings by the user's options."""
        return str(self)

    def line(self) -> str:
        """Return the message for a terminal: without control characters, and shortened if it is very long."""
        text = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in self.message())
        half = MAX_CHARACTERS // 2
        return f"heedful: {text if len(text) <= MAX_CHARACTERS else f'{text[:half]} ... {text[-half:]}'}\n"


class InputError(HeedfulError):
    """Error in usage, configuration or data, raised before anything is started or changed."""

    exit_code = 2


class OptionError(InputError):
    """Error in the options of a call, with two messages: one names them as the call does, one by their recipe keys."""

    def __str__(self) -> str:
        return self.args[0]

    def message(self) -> str:
        return self.args[1]


class RunError(HeedfulError):
    """Failure while running, such as a full disk or a diverged loss; files that were saved stay valid."""

    exit_code = 1


class DivergedError(RunError):
    """Failure of a run because too many updates in a row had no finite gradient; other settings are needed."""

    exit_code = 3


class Interrupted(HeedfulError):
    """Interruption of a long-running operation by Ctrl-C; the message says what was saved, and how to resume."""

    exit_code = 130  # 128 + SIGINT, which shells expect after Ctrl-C


class Terminated(Interrupted):
    """Interruption of a long-running operation by SIGTERM, with the same effects as Ctrl-C."""

    exit_code = 143  # 128 + SIGTERM
