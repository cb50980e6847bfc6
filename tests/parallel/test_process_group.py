"""Real processes hand each other what the reducer promises."""

import json
import sys
from pathlib import Path

import pytest
import torch

from heedful.parallel.launch import launch

SCRIPT = Path(__file__).with_name("collectives.py")


@pytest.mark.slow
def test_three_processes_share_and_join_their_work(tmp_path):
    assert launch([sys.executable, str(SCRIPT), str(tmp_path)], 3) == 0
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    for rank, told in enumerate(found):
        assert told["gathered"] == [{"rank": i, "text": "é" * i, "value": 0.1 * i} for i in range(3)]
        assert told["first"] == [0, 0.1, None]
        assert told["in order"] == [10 * i for i in range(7)]
        assert told["after first"][0] == 0
        assert rank in told["after first"]
        assert told["tensors"] == {"a": torch.full((2, 3), 0.1).tolist(), "b": list(range(5))}
        assert told["gradients"] == [[7.0] * 15, None, None, [*map(float, range(7))], None]


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_process_that_failed_first(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, sys, time\nrank = int(os.environ['RANK'])\ntime.sleep(60 * (rank != 1))\nsys.exit(7)\n"
    )
    assert launch([sys.executable, str(script)], 3) == 7
