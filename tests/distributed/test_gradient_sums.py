"""Sums of gradients that begin during the backward pass are those that begin after it, to the last bit."""

import json
import sys
from pathlib import Path

import pytest

from heedful.distributed.launch import launch

SCRIPT = Path(__file__).parents[1] / "training" / "background_sums.py"


@pytest.mark.slow
def test_three_processes_sum_during_the_backward_pass_what_they_sum_after_it(tmp_path):
    assert launch([sys.executable, str(SCRIPT), str(tmp_path)], 3) == 0
    for rank in range(3):
        for case in json.loads((tmp_path / f"{rank}.json").read_text()).values():
            assert case["equal"]
            assert case["same"] == 1
            # Process 2 has no gradient of the last parameter, which is summed first, and in the third update only
            # process 0 has a batch.
            assert case["begun"][0] > 1 or rank == 2
            assert case["begun"][2] > 1 or rank > 0
