"""Exceptions of heedful with their exit codes: wrong input, a failed run, and interruption by the user.

Every message is one paragraph that names the place (file, line, key) and the remedy; the command line prints it on
standard error without a traceback and ends with `exit_code`.
"""

MAX_CHARACTERS = 4000  # of a message, which may quote what a stranger wrote


class HeedfulError(Exception):
    """Base class of all errors that a user can cause or must act on."""

    exit_code = 1

    def line(self) -> str:
        """The message for a terminal: without control characters, and without the middle of a very long one."""
        text = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(self))
        half = MAX_CHARACTERS // 2
        return f"heedful: {text if len(text) <= MAX_CHARACTERS else f'{text[:half]} ... {text[-half:]}'}\n"


class InputError(HeedfulError):
    """Error in usage, configuration or data, raised before anything is started or changed."""

    exit_code = 2


class RunError(HeedfulError):
    """Failure while running, such as a full disk or a diverged loss; files that were saved stay valid."""

    exit_code = 1


class DivergedError(RunError):
    """A run has no finite gradient any more; another one needs other settings."""

    exit_code = 3


class Interrupted(HeedfulError):
    """Raised after Ctrl-C during long work; the message says which results were kept, and how to resume."""

    exit_code = 130  # what shells expect after Ctrl-C


class Terminated(Interrupted):
    """Raised after SIGTERM during long work; otherwise the same as after Ctrl-C."""

    exit_code = 143  # 128 + SIGTERM
