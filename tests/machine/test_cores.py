import threading

import pytest
import torch

from heedful.machine import map_on_cores

CPU = torch.device("cpu")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_and_thread(item: int) -> tuple[int, int, int]:
    return item, torch.get_num_threads(), threading.get_ident()


@pytest.mark.usefixtures("three_threads")
def test_as_many_items_as_cores_are_worked_on_side_by_side_each_on_one_core():
    found = list(map_on_cores(threads_and_thread, range(11), CPU))
    assert [item for item, _, _ in found] == list(range(11))
    assert {threads for _, threads, _ in found} == {1}
    assert threading.get_ident() not in {thread for _, _, thread in found}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("items", "device"), [(2, "cpu"), (11, "cuda")])
def test_fewer_items_share_the_cores_and_those_of_a_gpu_come_one_after_another(items, device):
    found = list(map_on_cores(threads_and_thread, range(items), torch.device(device)))
    assert found == [(item, 3, threading.get_ident()) for item in range(items)]


@pytest.mark.usefixtures("three_threads")
def test_an_error_comes_through_and_the_cores_come_back():
    def fails(item: int) -> None:
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(map_on_cores(fails, range(5), CPU))
    assert torch.get_num_threads() == 3
