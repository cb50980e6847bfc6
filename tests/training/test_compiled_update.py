"""A model that torch has compiled trains as the plain one does."""

import json
import subprocess
import sys

import compiled_update
import pytest


@pytest.mark.slow
def test_a_compiled_update_equals_a_plain_one():
    done = subprocess.run([sys.executable, compiled_update.__file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain, compiled = json.loads(done.stdout)
    for a, b in zip(plain, compiled, strict=True):
        assert a["losses"] == pytest.approx(b["losses"], rel=1e-4)
        assert a["norm"] == pytest.approx(b["norm"], rel=1e-3)
