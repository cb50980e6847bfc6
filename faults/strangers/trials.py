"""Trials of `heedful` on what a stranger sent, each in a process of its own that a server forks within milliseconds.

The server (`python trials.py`) has imported heedful and computed nothing; it answers one line of JSON with another.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

MODULES = (  # what the commands import
    "heedful.checkpoint.load",
    "heedful.cli",
    "heedful.convert",
    "heedful.predictors.translator",
    "heedful.metrics.translation",
    "heedful.inspector.page",
    "heedful.training.loop",
    "heedful.tools.verify",
)
SOURCE = Path(__file__).resolve().parents[2] / "src"
MOST_SECONDS = 10  # of CPU time that a trial may take
PATIENCE = 60  # seconds after which a trial is ended
MOST_MEMORY = 500 * 10**6  # bytes that a trial may take in addition to heedful itself
ADDRESSES = 6 * 2**30  # bytes of address space that a trial may take in addition


@dataclass(frozen=True)
class Ended:
    """How a trial ended: its exit code (128 + a signal), CPU seconds, bytes of memory, and what it wrote."""

    code: int
    seconds: float
    memory: int
    said: str
    output: str

    def check(self, codes: Sequence[int] = (0, 2)) -> None:
        """Check that a trial ended as it should: soon, small, with one of some exit codes, and without a traceback."""
        told = f"exit code {self.code}, {self.seconds:.1f} s, {self.memory / 1e6:.0f} MB: {self.said[-1500:]}"
        assert "Traceback" not in self.said, told
        assert self.code in codes, told
        assert self.code == 0 or 0 < len(self.said) < 5000, told
        assert self.seconds < MOST_SECONDS, told
        assert self.memory < MOST_MEMORY, told


class Server:
    """A server that runs trials; `with` ends it."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def heedful(self, folder: Path, *arguments: str) -> Ended:
        """Run `heedful ARGUMENTS` in a folder, which has to be written by nobody else."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"folder": str(folder), "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


def serve() -> None:
    """Answer trials until standard input ends."""
    for module in MODULES:
        import_module(module)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(trial(**json.loads(line)))) + "\n")
        sys.stdout.flush()


def trial(folder: str, arguments: list[str]) -> Ended:
    """Fork a process that is `heedful ARGUMENTS`, and measure it to its end."""
    said, output = Path(folder, "said"), Path(folder, "output")
    before = of_status("VmRSS")
    if (child := os.fork()) == 0:
        become(folder, arguments, said, output)
    begin = time.monotonic()
    while (ended := os.wait4(child, os.WNOHANG))[0] == 0:
        if time.monotonic() - begin > PATIENCE:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    _, status, usage = ended
    return Ended(
        code=os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status),
        seconds=usage.ru_utime + usage.ru_stime,
        memory=peak(said) - before,
        said=text(said),
        output=text(output),
    )


def become(folder: str, arguments: list[str], said: Path, output: Path) -> None:
    """Turn this process into `heedful ARGUMENTS`; it never returns."""
    code = 1
    try:
        os.chdir(folder)
        for path, descriptor in ((said, 2), (output, 1)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        most = of_status("VmSize") + ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak of the memory is counted anew
        sys.argv = ["heedful", *arguments]
        from heedful.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            Path(f"{said}.peak").write_text(str(of_status("VmHWM")), encoding="ascii")
        os._exit(code)


def of_status(key: str) -> int:
    """A number of bytes that the kernel tells about this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def peak(said: Path) -> int:
    """The most memory that a trial had; 0 where it was ended before it could tell."""
    told = Path(f"{said}.peak")
    found = int(told.read_text(encoding="ascii")) if told.exists() else 0
    told.unlink(missing_ok=True)
    return found


def text(path: Path) -> str:
    """What a trial wrote, as far as 100,000 characters."""
    with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read(100_000)
    return ""


if __name__ == "__main__":
    serve()
