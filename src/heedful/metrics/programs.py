"""Metric for outputs that are Python programs: the share that passes tests, run in a process with limits."""

import json
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

MAX_SECONDS = 60  # of a process, for a busy machine; it also has a limit on processor time


def passing(texts: Texts) -> list[bool]:
    """Return, for each output, True if its last function returns what the reference's does, for generated arguments.

    See `heedful.metrics.untrusted_program` for what a program may contain.

    Raises:
        InputError: A reference cannot be tested.
    """
    script = files("heedful.metrics") / "untrusted_program.py"
    with as_file(script) as path, TemporaryDirectory() as folder, ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(partial(result, path, folder), texts.outputs, texts.references))


def result(script: Path, folder: str, program: str, reference: str) -> bool:
    """Run the script that tests a program, in a process of its own; return False if the process fails."""
    task = json.dumps({"program": program, "reference": reference})
    command = [sys.executable, "-I", "-S", str(script)]
    try:
        process = subprocess.run(
            command, input=task, capture_output=True, text=True, cwd=folder, timeout=MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    if process.returncode:
        return False
    answer = json.loads(process.stdout)
    if isinstance(answer, dict):
        raise InputError(f"evaluate.metrics = passes_tests: {answer['error']}; the reference is:\n{reference}")
    return answer


PASSES_TESTS = per_example(passing)
