"""Shares of the work, what is made of them, and the identity of a single process."""

import pytest
import torch

from heedful.distributed.reducer import SINGLE_PROCESS
from several_processes import in_processes


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 13])
def test_shares_hold_everything_once_and_come_back_in_order(count, processes):
    def work(reducer):
        own = list(reducer.shard(range(count)))
        return own, reducer.all_gather_in_order([7 * item for item in own])

    shares, joined = zip(*in_processes(processes, work), strict=True)
    assert sorted(item for share in shares for item in share) == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert list(joined) == [[7 * item for item in range(count)]] * processes


def test_a_single_process_has_all_work_and_its_own_results():
    assert list(SINGLE_PROCESS.shard(range(7))) == SINGLE_PROCESS.all_gather_in_order(range(7)) == list(range(7))
    assert SINGLE_PROCESS.all_gather(0.1) == [0.1]
    assert SINGLE_PROCESS.broadcast_object(lambda: 3) == SINGLE_PROCESS.rank_zero_first(lambda: 3) == 3
    model = torch.nn.Linear(2, 3)
    model.weight.grad = torch.full((3, 2), 0.1)
    SINGLE_PROCESS.sum_gradients(model)
    assert model.weight.grad.tolist() == torch.full((3, 2), 0.1).tolist()
    assert model.bias.grad is None
