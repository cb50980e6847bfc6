import math

import pytest
import torch

from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig
from heedful.nn.attention import MASKED_SCORE, Attention, attend, scaled_dot_product
from heedful.nn.embedding import Embedding
from heedful.nn.patches import PatchEmbedding


@torch.no_grad()
def loops(q, k, v, mask):
    """Formula 1 of the paper, one number at a time, in Python floats."""
    batch, heads, queries, size = q.shape
    keys, groups = k.shape[2], q.shape[1] // k.shape[1]
    out = torch.zeros(batch, heads, queries, v.shape[3], dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for t in range(queries):
                seen = [s for s in range(keys) if mask[b, t if mask.shape[1] > 1 else 0, s]]
                scores = [
                    sum(float(q[b, h, t, i] * k[b, h // groups, s, i]) for i in range(size)) / math.sqrt(size)
                    for s in seen
                ]
                top = max(scores)
                exps = [math.exp(score - top) for score in scores]
                for s, e in zip(seen, exps, strict=True):
                    out[b, h, t] += e / sum(exps) * v[b, h // groups, s].double()
    return out


def draw(groups=1, queries=5, keys=7):
    torch.manual_seed(0)
    q = torch.randn(3, 6, queries, 11, dtype=torch.float64)
    k = torch.randn(3, 6 // groups, keys, 11, dtype=torch.float64)
    v = torch.randn(3, 6 // groups, keys, 13, dtype=torch.float64)
    mask = torch.rand(3, queries, keys) > 0.4
    mask[:, :, 2] = True
    return q, k, v, mask


def bias_of(mask, dtype=torch.float64):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, MASKED_SCORE)[:, None]


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_the_reference_equals_float64_loops(groups):
    q, k, v, mask = draw(groups)
    got, weights = scaled_dot_product(q, k, v, bias_of(mask))
    torch.testing.assert_close(got, loops(q, k, v, mask), atol=1e-12, rtol=0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 6, 5, dtype=torch.float64))
    assert (weights.masked_select(~mask[:, None].expand_as(weights)) == 0).all()


@pytest.mark.parametrize("groups", [1, 3])
def test_the_fused_kernel_equals_the_reference(groups):
    q, k, v, mask = draw(groups)
    v = v[..., :11]
    want = scaled_dot_product(q, k, v, bias_of(mask))[0]
    with torch.no_grad():
        got = attend(q, k, v, bias_of(mask))
    torch.testing.assert_close(got, want)


def test_values_may_be_wider_than_keys_in_the_fused_kernel():
    q, k, v, mask = draw()
    with torch.no_grad():
        torch.testing.assert_close(attend(q, k, v, bias_of(mask)), scaled_dot_product(q, k, v, bias_of(mask))[0])


@pytest.mark.parametrize("grad", [True, False])
def test_a_query_that_sees_nothing_gets_a_finite_output(grad):
    q, k, v, mask = draw()
    mask[1] = False
    with torch.set_grad_enabled(grad):
        assert attend(q.float(), k.float(), v.float(), bias_of(mask, torch.float32)).isfinite().all()


def test_attention_is_linear_in_its_values_and_not_in_its_input():
    q, k, v, mask = draw()
    other, bias = torch.randn_like(v), bias_of(mask)
    of_sum, of_one, of_other = (scaled_dot_product(q, k, x, bias)[0] for x in (v + 3 * other, v, other))
    torch.testing.assert_close(of_sum, of_one + 3 * of_other)
    assert (scaled_dot_product(2 * q, 2 * k, 2 * v, bias)[0] - 2 * of_one).abs().max() > 0.1


def test_large_scores_stay_finite():
    q, k, v, mask = draw()
    assert scaled_dot_product(q * 1e4, k, v, bias_of(mask))[0].isfinite().all()


def test_scaling_makes_the_variance_of_scores_one():
    torch.manual_seed(0)
    q, k = torch.randn(4001, 64), torch.randn(4001, 64)
    products = (q * k).sum(-1)
    assert abs(products.var().item() - 64) < 6
    assert abs((products / 8).var().item() - 1) < 0.1


def module(**changes):
    torch.manual_seed(1)
    return Attention(ModelConfig(**{"d_model": 24, "heads": 4, **changes})).eval()


def test_one_head_equals_the_plain_formula_with_its_projections():
    layer = module(heads=1)
    x, mask = torch.randn(3, 5, 24), torch.ones(3, 5, 5, dtype=torch.bool).tril()
    with torch.no_grad():
        want = layer.out(loops(layer.q(x)[:, None], layer.k(x)[:, None], layer.v(x)[:, None], mask).float()[:, 0])
        torch.testing.assert_close(layer(layer.queries(x), *layer.keys_values(x), bias_of(mask, torch.float32)), want)


def of_torch(layer: Attention) -> torch.nn.MultiheadAttention:
    """The attention of torch with the weights of a layer."""
    torch_layer = torch.nn.MultiheadAttention(24, 4, batch_first=True).eval()
    assert torch_layer.in_proj_weight is not None
    with torch.no_grad():
        torch_layer.in_proj_weight.copy_(torch.cat([layer.q.weight, layer.k.weight, layer.v.weight]))
        torch_layer.in_proj_bias.copy_(torch.cat([layer.q.bias, layer.k.bias, layer.v.bias]))
        torch_layer.out_proj.load_state_dict(layer.out.state_dict())
    return torch_layer


def test_multi_head_attention_equals_torch():
    layer = module()
    torch_layer = of_torch(layer)
    x, context = torch.randn(3, 5, 24), torch.randn(3, 7, 24)
    padding_mask = torch.ones(3, 7, dtype=torch.bool)
    padding_mask[1, 4:] = False
    want, _ = torch_layer(x, context, context, key_padding_mask=~padding_mask)
    bias = bias_of(padding_mask[:, None], torch.float32)
    torch.testing.assert_close(layer(layer.queries(x), *layer.keys_values(context), bias), want)


@torch.no_grad()
def test_a_text_queries_a_picture_and_the_picture_the_text():
    layer, config = module(), ModelConfig(d_model=24, heads=4)
    text = Embedding(29, config)(torch.randint(4, 29, (3, 5)))
    pixels, real = torch.randn(3, 8, 12, 3), torch.ones(3, 8, dtype=torch.bool)
    picture, _ = PatchEmbedding(ImageConfig(size=(8, 12), patch=4), 24).embed(pixels, real)
    assert picture.shape == (3, 7, 24)
    for asks, asked in ((text, picture), (picture, text)):
        everything = torch.zeros(1, 1, 1, asked.size(1))
        want, _ = of_torch(layer)(asks, asked, asked)
        torch.testing.assert_close(layer(layer.queries(asks), *layer.keys_values(asked), everything), want)


def test_grouped_heads_equal_repeated_heads():
    grouped, full = module(kv_heads=2), module()
    with torch.no_grad():
        for name in ("k", "v"):
            few, many = getattr(grouped, name), getattr(full, name)
            many.weight.copy_(few.weight.unflatten(0, (2, 6)).repeat_interleave(2, 0).flatten(0, 1))
            many.bias.copy_(few.bias.unflatten(0, (2, 6)).repeat_interleave(2, 0).flatten(0, 1))
        full.q.load_state_dict(grouped.q.state_dict())
        full.out.load_state_dict(grouped.out.state_dict())
    x = torch.randn(3, 5, 24)
    bias = torch.zeros(1, 1, 1, 5)
    torch.testing.assert_close(*(layer(layer.queries(x), *layer.keys_values(x), bias) for layer in (grouped, full)))


def test_queries_and_keys_are_both_rotated_and_values_are_not():
    layer, x = module(heads=1), torch.randn(3, 5, 24)
    mask = torch.ones(3, 5, 5, dtype=torch.bool)

    def rotate(y):
        return y.roll(1, dims=2)  # anything that changes them

    with torch.no_grad():
        q, k, v = (project(x)[:, None] for project in (layer.q, layer.k, layer.v))
        want = layer.out(loops(rotate(q), rotate(k), v, mask).float()[:, 0])
        torch.testing.assert_close(
            layer(layer.queries(x, rotate), *layer.keys_values(x, rotate), bias_of(mask, torch.float32)), want
        )


def test_keys_and_values_have_free_sizes():
    layer = module(d_k=7, d_v=13)
    x = torch.randn(3, 5, 24)
    assert layer(layer.queries(x), *layer.keys_values(x), torch.zeros(1, 1, 1, 5)).shape == (3, 5, 24)
    assert layer.q.weight.shape == (28, 24)
    assert layer.out.weight.shape == (24, 52)


def test_a_width_of_512_gives_eight_heads_of_size_64():
    layer, x = Attention(ModelConfig(d_model=512, heads=8)), torch.randn(1, 3, 512)
    assert all(heads.shape == (1, 8, 3, 64) for heads in (layer.queries(x), *layer.keys_values(x)))
    assert layer.out.weight.shape == (512, 512)


def test_heads_that_look_at_fixed_neighbours_are_a_convolution():
    torch.manual_seed(0)
    layer = Attention(ModelConfig(d_model=6, heads=3, d_v=5)).double()
    x, places = torch.randn(2, 11, 6, dtype=torch.float64), torch.arange(11)
    offsets = torch.tensor([-1, 0, 1])[:, None, None]  # one for each head
    bias = torch.where(places - places[:, None] == offsets, 0.0, MASKED_SCORE).double()
    kernels = torch.einsum("dhu,hui->dih", layer.out.weight.unflatten(1, (3, 5)), layer.v.weight.unflatten(0, (3, 5)))
    want = torch.nn.functional.conv1d(x.mT, kernels, layer.out(layer.v.bias)).mT
    torch.testing.assert_close(layer(layer.queries(x), *layer.keys_values(x), bias[None])[:, 1:-1], want)
