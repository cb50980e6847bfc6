import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from heedful.architectures.recurrent.layers import Packing
from heedful.nn.masks import AttentionMask


def mask_of(lengths: list[int], side: str = "right") -> torch.Tensor:
    places = torch.arange(max(lengths))
    places = places if side == "right" else places.flip(0)
    return places < torch.tensor(lengths)[:, None]


def packing_of(padding_mask: torch.Tensor) -> Packing:
    return Packing(padding_mask, AttentionMask(padding_mask, padding_mask.size(1), causal=False).query_positions)


def test_the_order_is_that_of_torch():
    lengths, x = [3, 7, 1, 5], torch.randn(4, 7, 2)
    packing = packing_of(mask_of(lengths))
    theirs = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    assert torch.equal(packing.pack(x), theirs.data)
    assert torch.equal(packing.batch_sizes, theirs.batch_sizes)
    assert torch.equal(packing.rows, theirs.sorted_indices)


@pytest.mark.parametrize("side", ["left", "right"])
def test_unpacking_brings_every_real_token_back_and_zeros_elsewhere(side):
    padding_mask, x = mask_of([3, 7, 1, 5], side), torch.randn(4, 7, 2)
    packing = packing_of(padding_mask)
    assert torch.equal(packing.unpack(packing.pack(x)), x * padding_mask[:, :, None])


def test_documents_in_a_row_are_sequences_of_their_own():
    documents = torch.tensor([[1, 1, 1, 2, 3, 3, 9], [4, 4, 4, 4, 4, 4, 4]])
    padding_mask = documents != 9
    mask = AttentionMask(padding_mask, 7, causal=True).within(documents)
    packing = Packing(padding_mask, mask.query_positions)
    assert packing.rows.tolist() == [1, 0, 0, 0]
    assert packing.batch_sizes.tolist() == [4, 3, 2, 1, 1, 1, 1]
    assert packing.pack(documents[:, :, None].float())[:, 0].tolist() == [4, 1, 3, 2, 4, 1, 3, 4, 1, 4, 4, 4, 4]
    assert packing.sequence.tolist() == [0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 0, 0, 0]


def test_a_row_of_padding_has_no_sequence():
    padding_mask = torch.tensor([[False, False, False], [False, True, True], [False, False, False]])
    packing = packing_of(padding_mask)
    assert packing.rows.tolist() == [1]
    assert packing.batch_sizes.tolist() == [1, 1]


def test_nothing_can_be_packed():
    packing = packing_of(torch.zeros(2, 3, dtype=torch.bool))
    assert packing.pack(torch.randn(2, 3, 5)).shape == (0, 5)
    assert torch.equal(packing.unpack(torch.zeros(0, 5)), torch.zeros(2, 3, 5))
