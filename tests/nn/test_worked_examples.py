"""The numeric examples of the documents that asked for heedful, with the right values where a document is wrong."""

import torch
from torch import nn

from heedful.nn.attention import scaled_dot_product
from heedful.nn.positions import sinusoids

WORDS = torch.tensor([[0.25, 0.15, -0.35], [-0.05, 0.45, 0.4], [0.45, -0.55, 0.25], [-0.3, 0.25, 0.85]])  # wo ai chi li
W_Q = torch.tensor([[0.2, 0.1, 0.3], [0.5, -0.2, 0.4], [-0.1, 0.7, 0.6]])
W_K = torch.tensor([[0.1, -0.3, 0.5], [-0.2, 0.4, -0.6], [0.3, 0.2, 0.4]])
W_V = torch.tensor([[0.3, 0.6, -0.1], [-0.5, 0.7, 0.2], [0.4, -0.4, 0.5]])


def assert_near(got, want, digits=4):
    torch.testing.assert_close(got, torch.tensor(want), atol=0.51 * 10**-digits, rtol=0)


def attention(q, k, v):
    output, weights = scaled_dot_product(q[None, None], k[None, None], v[None, None], torch.zeros(1, 1, 1, k.size(0)))
    return output[0, 0], weights[0, 0]


def test_ai_attends_to_wo_chi_and_li_by_plain_dot_products():
    others = WORDS[[0, 2, 3]]
    q = WORDS[1:2] * 3**0.5  # the example leaves the scaling out
    output, weights = attention(q, others, others)
    assert_near(WORDS[1] @ others.T, [-0.085, -0.17, 0.4675])
    assert_near(weights[0], [0.2735, 0.2512, 0.4753])
    assert_near(output[0], [0.0389, 0.0217, 0.3710])


def test_queries_keys_and_values_of_wo_and_ai():
    assert_near(WORDS[0] @ W_Q, [0.16, -0.25, -0.075])
    assert_near(WORDS[0] @ W_K, [-0.11, -0.085, -0.105])
    assert_near(WORDS[0] @ W_V, [-0.14, 0.395, -0.17])
    assert_near(WORDS[1] @ W_Q, [0.175, 0.185, 0.405])


def test_ai_attends_to_all_four_words():
    output, weights = attention(WORDS @ W_Q, WORDS @ W_K, WORDS @ W_V)
    assert_near(weights[1], [0.2288, 0.2394, 0.2763, 0.2555])
    assert_near(output[1], [0.1217, -0.0272, 0.1524])


def test_i_eat_apples_in_a_head_of_size_64():
    scores = torch.tensor([[0.2, 0.8, 0.1], [0.9, 0.3, 0.7], [0.1, 0.9, 0.2]])
    q, k = nn.functional.pad(scores, (0, 61)), torch.eye(3, 64)
    output, weights = attention(q, k, torch.eye(3))
    assert_near(weights, [[0.3262, 0.3516, 0.3222], [0.3445, 0.3196, 0.3360], [0.3207, 0.3545, 0.3248]])
    torch.testing.assert_close(output, weights)


def test_positions_zero_and_one_of_four_dimensions():
    assert_near(sinusoids(2, 4), [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.0100, 1.0000]])


def test_layer_norm_of_four_six_eight_ten():
    assert_near(nn.LayerNorm(4)(torch.tensor([4.0, 6.0, 8.0, 10.0])).detach(), [-1.3416, -0.4472, 0.4472, 1.3416])


def test_layer_norm_of_four_six_eight_ten_with_a_gain():
    norm = nn.LayerNorm(4, bias=False)
    norm.weight.data = torch.tensor([1.2, 0.9, 1.1, 0.8])
    assert_near(norm(torch.tensor([4.0, 6.0, 8.0, 10.0])).detach(), [-1.6100, -0.4025, 0.4919, 1.0733])


def test_gains_and_biases_can_undo_a_batch_norm_and_no_layer_norm():
    x = torch.randn(61, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + 5
    batch_norm, layer_norm = nn.BatchNorm1d(4, eps=1e-9), nn.LayerNorm(4, eps=1e-9)
    batch_norm.weight.data, batch_norm.bias.data = x.std(0, correction=0), x.mean(0)
    torch.testing.assert_close(batch_norm(x), x)
    nn.init.normal_(layer_norm.weight)
    nn.init.normal_(layer_norm.bias)
    torch.testing.assert_close(layer_norm(3 * x + 7), layer_norm(x), atol=1e-4, rtol=1e-4)


def test_king_and_queen_are_close():
    king, queen = torch.tensor([-0.2, 0.8, 1.1]), torch.tensor([0.1, 0.7, 1.3])
    assert_near(nn.functional.cosine_similarity(king, queen, dim=0), 0.968, digits=3)
