"""Shards of a batch, and the identity of a single process; sums over two are in tests/train/test_training_step.py."""

import numpy as np
import pytest
import torch

from heedful.data_parallel import SINGLE_PROCESS, Reducer


class OneOfMany(Reducer):
    """A process whose sums are never asked for."""

    def sum_values(self, values):
        raise AssertionError

    def sum_gradients(self, model):
        raise AssertionError


@pytest.mark.parametrize("world_size", [1, 2, 3, 5, 7, 11])
@pytest.mark.parametrize("count", [1, 2, 13, 97])
def test_the_shards_of_all_processes_are_the_batch(count, world_size):
    ids = np.random.default_rng(count).permutation(2 * count).reshape(count, 2)
    shards = [OneOfMany(rank, world_size).shard(ids) for rank in range(world_size)]
    joined = np.concatenate(shards)
    assert sorted(joined.tolist()) == sorted(ids.tolist())
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_a_single_process_has_all_examples_and_its_own_sums():
    ids = np.arange(7)
    assert SINGLE_PROCESS.shard(ids).tolist() == ids.tolist()
    assert SINGLE_PROCESS.sum_values([0.1, 3.0]) == [0.1, 3.0]
    model = torch.nn.Linear(2, 3)
    model.weight.grad = torch.full((3, 2), 0.1)
    SINGLE_PROCESS.sum_gradients(model)
    assert model.weight.grad.tolist() == torch.full((3, 2), 0.1).tolist()
    assert model.bias.grad is None
