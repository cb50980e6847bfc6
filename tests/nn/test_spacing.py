import torch

from heedful.nn.masks import AttentionMask
from heedful.nn.spacing import Spacing, centred_windows, windows

MASK = torch.tensor([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1], [0, 1, 0, 0, 0]]).bool()


def spacing(mask: torch.Tensor, gap: int, documents: torch.Tensor | None = None) -> Spacing:
    whole = AttentionMask(mask, mask.size(1), causal=False)
    return Spacing(mask, (whole if documents is None else whole.within(documents)).query_positions, gap)


def test_rows_end_at_the_last_column_wherever_their_padding_is():
    numbers = torch.arange(1.0, 16).view(3, 5, 1)
    spread = spacing(MASK, 2).spread(numbers)[..., 0]
    assert spread.tolist() == [[0, 1, 2, 3], [7, 8, 9, 10], [0, 0, 0, 12]]


def test_documents_in_a_row_are_apart_by_the_gap():
    documents = torch.tensor([[4, 4, 6, 6, 6], [0, 0, 1, 2, 2], [0, 0, 0, 0, 0]])
    numbers = torch.arange(1.0, 16).view(3, 5, 1)
    laid = spacing(MASK, 2, documents)
    assert laid.spread(numbers)[..., 0].tolist() == [
        [0, 0, 0, 1, 2, 0, 0, 3],
        [7, 0, 0, 8, 0, 0, 9, 10],
        [0, 0, 0, 0, 0, 0, 0, 12],
    ]
    assert torch.equal(laid.real, laid.spread(numbers) > 0)


def test_what_was_spread_is_collected_again_with_zeros_for_padding():
    numbers = torch.arange(1.0, 31).view(3, 5, 2)
    laid = spacing(MASK, 3, torch.tensor([[4, 4, 6, 6, 6], [0, 0, 1, 2, 2], [0, 0, 0, 0, 0]]))
    assert torch.equal(laid.collect(laid.spread(numbers)), numbers * MASK[:, :, None])


def test_gradients_pass_both_ways():
    numbers = torch.randn(3, 5, 2, requires_grad=True)
    laid = spacing(MASK, 1)
    (laid.collect(laid.spread(numbers)) * 3).sum().backward()
    assert torch.equal(numbers.grad, 3.0 * MASK[:, :, None].expand(-1, -1, 2))


def test_a_window_joins_neighbours_from_left_to_right():
    numbers = torch.arange(1.0, 6).view(1, 5, 1)
    assert windows(numbers, 3).tolist() == [[[1, 2, 3], [2, 3, 4], [3, 4, 5]]]
    assert centred_windows(numbers, 3).tolist() == [[[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 0]]]
    assert centred_windows(numbers, 2).tolist() == [[[1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]]
    assert windows(torch.arange(1.0, 7).view(1, 3, 2), 2).tolist() == [[[1, 2, 3, 4], [3, 4, 5, 6]]]
