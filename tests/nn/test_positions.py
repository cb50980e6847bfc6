import math

import pytest
import torch

from heedful.config.schema import ModelConfig
from heedful.nn.positions import Relative, sinusoids
from heedful.registry import POSITIONS


def test_sinusoids_equal_the_papers_formula():
    table = sinusoids(97, 26)
    for pos in (0, 1, 53, 96):
        for i in range(13):
            angle = pos / 10000 ** (2 * i / 26)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_of_positions_is_a_rotation_of_each_pair_of_dimensions():
    table = sinusoids(601, 34).double().unflatten(1, (17, 2))
    frequency = 10000.0 ** (-torch.arange(17, dtype=torch.float64) / 17)
    for pos, k in ((0, 7), (11, 41), (503, 97)):
        sin, cos = (k * frequency).sin(), (k * frequency).cos()
        s, c = table[pos, :, 0], table[pos, :, 1]
        rotated = torch.stack([s * cos + c * sin, c * cos - s * sin], dim=1)
        torch.testing.assert_close(rotated, table[pos + k], atol=1e-6, rtol=0)


def rotations(shift: int, size: int) -> torch.Tensor:
    """The matrix that maps the code of any position to that of the position `shift` later, in float64."""
    angles = shift * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    sin, cos = angles.sin(), angles.cos()
    return torch.block_diag(*torch.stack([cos, sin, -sin, cos], dim=1).reshape(-1, 2, 2))


def codes(positions: torch.Tensor, size: int) -> torch.Tensor:
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def test_the_code_of_a_later_position_is_a_linear_function_that_depends_on_the_shift_only():
    positions = torch.randint(0, 5000, (50,)).double()
    for shift in torch.randint(1, 2000, (20,)).tolist():
        mapped = codes(positions, 64) @ rotations(shift, 64).T
        torch.testing.assert_close(mapped, codes(positions + shift, 64), atol=1e-9, rtol=0)
    torch.testing.assert_close(codes(torch.arange(97.0).double(), 64).float(), sinusoids(97, 64), atol=1e-5, rtol=0)


def test_the_product_of_two_codes_depends_on_their_distance_only():
    table = codes(torch.arange(2000.0).double(), 64)
    for distance in (1, 7, 100, 999):
        products = (table[:-distance] * table[distance:]).sum(1)
        assert products.max() - products.min() < 1e-9
    assert (table[0] @ table[0]).item() == pytest.approx(32)  # each pair of a sine and a cosine is on a unit circle


def test_every_position_has_its_own_code():
    table = sinusoids(5003, 32)
    assert torch.nn.functional.pdist(table).min() > 0
    assert (table[1:] - table[:-1]).norm(dim=1).min() > 0.1


def test_sinusoids_stay_between_minus_1_and_1_at_any_position():
    assert sinusoids(100_003, 26).abs().max() <= 1


def test_sinusoids_have_no_limit():
    config = ModelConfig(d_model=6, heads=2, max_positions=5)
    positions = POSITIONS["sinusoidal"](config, causal=True)
    x = torch.zeros(1, 23, 6)
    torch.testing.assert_close(positions.embed(x, torch.arange(23)[None], 23)[0], sinusoids(23, 6))
    assert not positions.state_dict()


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_sinusoidal_and_learned_positions_are_added_to_embeddings_and_change_nothing_else(name):
    positions = POSITIONS[name](ModelConfig(d_model=6, heads=2), causal=True)
    x, bias, places = torch.randn(2, 3, 6), torch.randn(2, 1, 3, 3), torch.arange(3).expand(2, 3)
    codes_alone = positions.embed(torch.zeros_like(x), places, 3)
    torch.testing.assert_close(positions.embed(x, places, 3), x + codes_alone)
    assert positions.rotation(places)(x) is x
    assert positions.add_bias(bias, places, places) is bias


def test_learned_positions_end_with_a_clear_error():
    positions = POSITIONS["learned"](ModelConfig(d_model=6, heads=2, max_positions=5), causal=True)
    with pytest.raises(IndexError, match=r"7 tokens, but model.max_positions is 5"):
        positions.embed(torch.zeros(1, 7, 6), torch.arange(7)[None], 7)


def test_no_positions_leave_the_embeddings_alone():
    x = torch.randn(2, 3, 6)
    positions = POSITIONS["none"](ModelConfig(d_model=6, heads=2), causal=True)
    assert positions.embed(x, torch.arange(3).expand(2, 3), 3) is x


def scheme(name, heads=2, *, causal=True, d_k=None):
    return POSITIONS[name](ModelConfig(d_model=12, heads=heads, d_k=d_k), causal=causal)


def test_rotated_queries_and_keys_know_their_offset_and_nothing_else():
    q, k = torch.randn(2, 1, 3, 1, 10, dtype=torch.float64)

    def score(query, key):
        places = (torch.tensor([[place]]) for place in (query, key))
        turned = [scheme("rotary", d_k=10).rotation(place)(x) for place, x in zip(places, (q, k), strict=True)]
        return (turned[0] * turned[1]).sum(-1)

    torch.testing.assert_close(score(11, 4), score(108, 101), atol=1e-5, rtol=0)
    torch.testing.assert_close(score(0, 0), (q * k).sum(-1))
    assert not torch.allclose(score(11, 4), score(11, 5), atol=1e-3)


def test_rotation_is_as_fine_in_half_precision_at_far_positions():
    x = torch.ones(1, 1, 2, 6)
    turned = scheme("rotary").bfloat16().rotation(torch.tensor([[4001, 4002]]))(x.bfloat16())
    torch.testing.assert_close(
        turned.float(), scheme("rotary").rotation(torch.tensor([[4001, 4002]]))(x), atol=0.02, rtol=0
    )


def test_rotary_positions_equal_those_of_llama():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=30, num_attention_heads=3, head_dim=10)
    q, k, position = torch.randn(2, 3, 7, 10), torch.randn(2, 3, 7, 10), torch.arange(5, 12).expand(2, 7)
    want = llama.apply_rotary_pos_emb(q, k, *llama.LlamaRotaryEmbedding(config)(q, position))
    rotate = scheme("rotary", d_k=10).rotation(position)
    torch.testing.assert_close((rotate(q), rotate(k)), want)


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12])
def test_alibi_slopes_equal_those_of_bloom(heads):
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    want = bloom.build_alibi_tensor(torch.ones(1, 5), heads, torch.float32)[:, 0]  # slope x position of the key
    query, keys = torch.tensor([[4]]), torch.arange(5)[None]
    got = scheme("alibi", heads).add_bias(torch.zeros(1, 1, 1, 5), query, keys)[0, :, 0]
    torch.testing.assert_close(got, want - want[:, -1:])


def test_alibi_falls_to_both_sides():
    bias = scheme("alibi", causal=False).add_bias(torch.zeros(1, 1, 1, 7), torch.tensor([[3]]), torch.arange(7)[None])
    assert torch.equal(bias, bias.flip(-1))
    assert (bias[..., :3] < bias[..., 1:4]).all()


@pytest.mark.parametrize("causal", [True, False])
def test_ranges_of_relative_positions_equal_those_of_t5(causal):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offset = torch.arange(-601, 602)
    want = t5.T5Attention._relative_position_bucket(offset, not causal, 32, 128)
    positions = Relative(ModelConfig(d_model=12, heads=2), causal=causal)
    assert torch.equal(positions.bucket(offset), want)
    got = positions.add_bias(torch.zeros(1, 1, 1, 1203), torch.tensor([[601]]), torch.arange(1203)[None])
    torch.testing.assert_close(got[0, :, 0], positions.table.weight[want].T)
