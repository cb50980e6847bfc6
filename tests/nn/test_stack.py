import torch

from heedful.nn.masks import AttentionMask
from heedful.nn.stack import Memory

REAL = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])


def test_positions_count_real_tokens_on_either_side_of_padding():
    mask = AttentionMask(REAL, 5, causal=False)
    assert mask.query_positions.tolist() == [[0, 1, 2, 2, 2], [0, 0, 1, 2, 3]]


def test_a_causal_mask_shows_the_past_and_the_present():
    mask = AttentionMask(torch.ones(1, 4, dtype=torch.bool), 4, causal=True).allowed
    assert mask[0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_the_last_queries_see_all_keys_before_them():
    mask = AttentionMask(REAL, 2, causal=True).allowed
    assert mask.int().tolist() == [[[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]], [[0, 1, 1, 1, 0], [0, 1, 1, 1, 1]]]


def test_the_bias_is_zero_where_one_may_look_and_hides_the_rest():
    bias = Memory(torch.zeros(2, 5, 3), REAL).attention_bias
    assert bias.shape == (2, 1, 1, 5)
    assert ((bias == 0)[:, 0, 0] == REAL).all()
    assert (bias.softmax(-1)[:, 0, 0][~REAL] == 0).all()
