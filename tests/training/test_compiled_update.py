"""A model of which torch has compiled each block trains as the plain one does."""

import json
import subprocess
import sys

import compiled_update
import pytest


@pytest.mark.slow
def test_updates_of_compiled_blocks_equal_plain_ones_also_if_the_blocks_are_recomputed():
    done = subprocess.run([sys.executable, compiled_update.__file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("graphs") == 2  # one for all encoder blocks and one for the decoder block, whatever the shapes
    plain = found.pop("plain")
    assert sorted(found) == ["compiled", "recomputed"]
    for compiled in found.values():
        for a, b in zip(plain, compiled, strict=True):
            assert a["losses"] == pytest.approx(b["losses"], rel=1e-4)
            assert a["norm"] == pytest.approx(b["norm"], rel=1e-3)
