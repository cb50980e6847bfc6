"""heedful as on a system that is not Linux: `python without_linux.py COMMANDS.json` runs commands one after another.

What only Unix or Linux has is taken away before heedful and torch are imported, and processes are started anew. Each
new process runs this file once more. Libraries that choose what the real system has are imported first.
"""

import json
import multiprocessing
import os
import sys
from pathlib import Path

import filelock
import portalocker  # of sacrebleu
import psutil

LIBRARIES = filelock, portalocker, psutil
GONE = ("fork", "sysconf", "sched_getaffinity", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "pread", "mkfifo")


def take_away() -> None:
    for name in ("fcntl", "resource"):
        sys.modules[name] = None
    for name in GONE:
        if hasattr(os, name):
            delattr(os, name)


def main() -> None:
    multiprocessing.set_start_method("spawn")
    from heedful.cli import main as heedful

    for command in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        sys.argv = ["heedful", *command]
        try:
            heedful()
        except SystemExit as end:
            if end.code:
                raise


if __name__ in ("__main__", "__mp_main__"):  # the second in a process that multiprocessing has started
    take_away()
if __name__ == "__main__":
    main()
