"""Loading a model leaves the random generators of the caller as they are."""

import random

import numpy as np
import pytest
import torch

import heedful


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_loading_leaves_the_generators_of_torch_numpy_and_random_alone(precision):
    before = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    heedful.load("en-de", "cpu", precision)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert (np.random.get_state()[1] == before[2]).all()
