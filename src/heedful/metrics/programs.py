"""Metric for outputs that are Python programs: the share that passes tests, run in a process with limits."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

from heedful.errors import InputError
from heedful.machine.cores import usable_cores
from heedful.metrics.metric import per_example
from heedful.metrics.texts import Texts
from heedful.metrics.untrusted_program import READY

MAX_SECONDS = 60  # of a process, for a busy machine; it also has a limit on processor time


def passing(texts: Texts) -> list[bool]:
    """Return, for each output, True if its function returns what the reference's does, for generated arguments.

    See `heedful.metrics.untrusted_program` for what a program may contain.

    Raises:
        InputError: A reference cannot be tested.
    """
    script = files("heedful.metrics") / "untrusted_program.py"
    with as_file(script) as path, TemporaryDirectory() as folder, ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(partial(passes, path, folder), texts.outputs, texts.references))


def passes(script: Path, folder: str, program: str, reference: str) -> bool:
    """Run the script that tests a program, in a separate process; a program fails if its process does."""
    command = [sys.executable, "-s", "-S", "-P", "-W", "ignore", str(script)]
    # Of equal sets, the order is the same in every run; Windows starts no process without SYSTEMROOT.
    environment = {"PYTHONHASHSEED": "0"} | {key: value for key, value in os.environ.items() if key == "SYSTEMROOT"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, env=environment
    ) as process:
        task = json.dumps({"program": program, "reference": reference}).encode()
        try:
            output, _ = process.communicate(task, timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    answer = output.decode()
    if not answer.startswith(READY):
        problem = answer or "it takes too much time or memory"
        raise InputError(f"evaluate.metrics = passes_tests: {problem}; the reference is:\n{reference}")
    return answer.removeprefix(READY) == "true"


PASSES_TESTS = per_example(passing)
