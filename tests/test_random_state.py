"""No public function of heedful changes the global generators of torch, numpy or random."""

import json
import os
import subprocess
import sys

import pytest

import random_state_uses

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def changes(tmp_path_factory) -> dict[str, dict[str, str]]:
    """By task and use, the generators that were changed, or how the use failed; empty: it is as it should be."""
    program = [sys.executable, random_state_uses.__file__, str(tmp_path_factory.mktemp("uses"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("task", [*random_state_uses.TASKS, "others"])
def test_the_global_generators_stay_as_they_are(changes, task):
    assert changes[task]
    assert {name: found for name, found in changes[task].items() if found} == {}
