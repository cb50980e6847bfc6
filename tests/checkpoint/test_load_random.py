"""Loading, using and training a model leave the random generators of the caller as they are.

In one process, without the checks of types, which draw random numbers themselves.
"""

import json
import subprocess
import sys

import pytest

STATES = """
import json, random, sys
import numpy as np
import torch
import heedful
from rich.console import Console

def states():
    return torch.random.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()

changed, before = {}, states()
for name, use in json.loads(sys.argv[1]).items():
    exec(use)
    changed[name], before = states() != before, states()
print(json.dumps(changed))
"""
TRAINING = """
open("en", "w").write("a b c\\nb c a\\nc a b\\n" * 20)
tables = {
    "name": "small", "task": "language_model",
    "data": {"train": [{"source": "en"}], "max_length": 16},
    "tokenizer": {"kind": "character"},
    "model": {"family": "decoder", "d_model": 8, "d_ff": 8, "heads": 2, "decoder_layers": 1},
    "train": {"max_updates": 2, "batch_tokens": 64},
}
heedful.train(tables, out="run", data=".", console=Console(quiet=True))
"""
USES = {
    "load": 'heedful.load("en-de", "cpu")',
    "load in int8": 'heedful.load("en-de", "cpu", "int8", engine="ctranslate2")',
    "translate": 'heedful.load("en-de", "cpu").translate("Two dogs are running.")',
    "trace": 'heedful.trace("en-de", "Two dogs are running.")',
    "train": TRAINING,
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Whether each use has changed a generator, one use after the other in one process."""
    command = [sys.executable, "-c", STATES, json.dumps(USES)]
    folder = tmp_path_factory.mktemp("uses")
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("use", USES)
def test_the_generators_of_torch_numpy_and_random_stay_as_they_are(use, changed):
    assert not changed[use]
