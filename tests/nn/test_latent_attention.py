"""Latent attention equals its formulas, and that of transformers, and caches one small vector per token."""

import math

import pytest
import torch

from children import ids, ones, stirred
from heedful.architectures import LanguageModel
from heedful.architectures.transformer.layers import self_attend
from heedful.config.schema import LoraConfig, ModelConfig
from heedful.nn.kv_cache import NO_CACHE, KVCache
from heedful.nn.latent_attention import LatentAttention
from heedful.nn.lora import add_updates
from heedful.nn.masks import AttentionMask
from heedful.registry import POSITIONS

SIZES = {"d_model": 24, "heads": 4, "d_k": 6, "d_v": 5, "kv_rank": 10, "d_rope": 4, "rope_theta": 100.0}
CONFIG = ModelConfig(**SIZES, attention="latent", positions="rotary", family="decoder", decoder_layers=2, norm_eps=1e-6)


def attention(**changes) -> tuple[LatentAttention, ModelConfig]:
    config = ModelConfig(**{**vars(CONFIG), **changes})
    return stirred(LatentAttention(config)).double(), config


def causal(length: int) -> AttentionMask:
    return AttentionMask(torch.ones(2, length, dtype=torch.bool), length, causal=True)


def attended(layer: LatentAttention, config: ModelConfig, x: torch.Tensor) -> torch.Tensor:
    inputs = causal(x.size(1)).inputs(POSITIONS[config.positions](config, causal=True).double(), x)
    return self_attend(layer, x, inputs, NO_CACHE)


def rotated(x: torch.Tensor, position: int) -> torch.Tensor:
    """Rotate the pairs (i, i + 2) of four numbers, the second one ten times as slowly, because rope_theta is 100."""
    angles = position * torch.tensor([1.0, 0.1], dtype=torch.float64)
    left, right = x.chunk(2)
    return torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()])


@torch.no_grad()
@pytest.mark.parametrize("q_rank", [None, 7])
def test_latent_attention_is_the_formulas_of_deepseek_v2_token_by_token_and_head_by_head(q_rank):
    layer, config = attention(q_rank=q_rank)
    x = torch.randn(2, 5, 24, dtype=torch.float64)
    want = torch.zeros(2, 5, 4, 5, dtype=torch.float64)
    for row in range(2):
        for head in range(4):
            keys, values = [], []
            for t in range(5):
                latent = layer.kv_latent(x[row, t][None, None])[0, 0]
                shared = rotated(layer.k_rotary(x[row, t]), t)
                keys.append(torch.cat([layer.k.weight[6 * head : 6 * head + 6] @ latent, shared]))
                values.append(layer.v.weight[5 * head : 5 * head + 5] @ latent)
                query = layer.q(layer.q_latent(x[row, t][None, None]))[0, 0, 10 * head : 10 * head + 10]
                query = torch.cat([query[:6], rotated(query[6:], t)])
                weights = (torch.stack(keys) @ query / math.sqrt(6 + 4)).softmax(0)
                want[row, t, head] = weights @ torch.stack(values)
    torch.testing.assert_close(attended(layer, config, x), layer.out(want.flatten(2)))


def interleaved(weight: torch.Tensor, heads: int, rotary: int) -> torch.Tensor:
    """Rows in DeepSeek's order of rotary dimensions: it rotates neighbours, heedful dimensions i and i + rotary / 2."""
    rows = weight.unflatten(0, (heads, -1)).clone()
    rows[:, -rotary::2], rows[:, -rotary + 1 :: 2] = (part.clone() for part in rows[:, -rotary:].chunk(2, dim=1))
    return rows.flatten(0, 1)


@torch.no_grad()
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("q_rank", [None, 7])
def test_latent_attention_equals_that_of_transformers_with_the_same_weights(version, q_rank):
    transformers = pytest.importorskip("transformers")
    module = pytest.importorskip(f"transformers.models.deepseek_v{version}.modeling_deepseek_v{version}")
    layer, config = attention(q_rank=q_rank, attention_bias=False)
    theirs_config = getattr(transformers, f"DeepseekV{version}Config")(
        hidden_size=24, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=q_rank, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, head_dim=4, attention_bias=False,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0}, attn_implementation="eager",
    )  # fmt: skip
    theirs = getattr(module, f"DeepseekV{version}Attention")(theirs_config, 0).double().eval()
    q, k_rotary = interleaved(layer.q.weight, 4, 4), interleaved(layer.k_rotary.weight, 1, 4)
    up = [layer.k.weight.unflatten(0, (4, 6)), layer.v.weight.unflatten(0, (4, 5))]
    weights = {
        "kv_a_proj_with_mqa.weight": torch.cat([layer.kv_latent.down.weight, k_rotary]),
        "kv_a_layernorm.weight": layer.kv_latent.norm.weight,
        "kv_b_proj.weight": torch.cat(up, dim=1).flatten(0, 1),
        "o_proj.weight": layer.out.weight,
    }
    if q_rank is None:
        weights["q_proj.weight"] = q
    else:
        names = {"q_b_proj.weight": q, "q_a_proj.weight": layer.q_latent.down.weight}
        weights |= {**names, "q_a_layernorm.weight": layer.q_latent.norm.weight}
    theirs.load_state_dict(weights)
    x, mask = torch.randn(2, 5, 24, dtype=torch.float64), causal(5)
    rotary = getattr(module, f"DeepseekV{version}RotaryEmbedding")(theirs_config)
    angles = rotary(x, torch.arange(5)[None].expand(2, -1))
    bias = mask.inputs(POSITIONS["none"](config, causal=True), x).attention_bias
    want = theirs(x, position_embeddings=angles, attention_mask=bias)[0]
    torch.testing.assert_close(attended(layer, config, x), want, atol=1e-6, rtol=1e-6)


def test_the_cache_holds_a_latent_and_a_rotary_key_of_each_token_and_no_keys_and_values_of_heads():
    model, tokens = stirred(LanguageModel(CONFIG, 23)), ids(2, 7)
    cache = model.backbone.stack.begin(2)
    model.hidden(tokens, AttentionMask(ones(tokens), 7, causal=True), cache)
    shapes = [[tuple(x[:, :, :7].shape) for x in block.buffers] for block in cache.blocks]
    assert shapes == [[(2, 1, 7, 10), (2, 1, 7, 4)]] * 2
    assert CONFIG.cache_size == 2 * (10 + 4)
    assert ModelConfig(**{**vars(CONFIG), "attention": "multi_head"}).cache_size == 2 * 4 * (6 + 5)


@pytest.mark.parametrize("new", [1, 3])
def test_new_queries_attend_to_latents_as_to_keys_and_values(new):
    layer, config = attention()
    x = torch.randn(2, 8, 24, dtype=torch.float64)
    positions = POSITIONS["rotary"](config, causal=True)
    cache = KVCache()
    first = causal(8 - new).inputs(positions, x)
    last = AttentionMask(torch.ones(2, 8, dtype=torch.bool), new, causal=True).inputs(positions, x)
    got = torch.cat(
        [self_attend(layer, x[:, :-new], first, cache), self_attend(layer, x[:, -new:], last, cache)], dim=1
    )
    torch.testing.assert_close(got, attended(layer, config, x))


def test_a_cached_step_includes_the_updates_of_lora():
    model = LanguageModel(CONFIG, 23)
    add_updates(model, LoraConfig(rank=3, targets=("self_attention.k", "self_attention.v"), dropout=0.5))
    for name, parameter in model.named_parameters():
        if name.endswith("lora_b"):
            torch.nn.init.normal_(parameter)
    stirred(model)
    tokens = ids(2, 7)
    cache = model.backbone.stack.begin(2)
    parts = []
    for position in range(7):
        mask = AttentionMask(ones(tokens[:, : position + 1]), 1, causal=True)
        parts.append(model.hidden(tokens[:, position : position + 1], mask, cache))
    want = model.hidden(tokens, AttentionMask(ones(tokens), 7, causal=True))
    torch.testing.assert_close(torch.cat(parts, dim=1), want, atol=1e-5, rtol=1e-5)


def test_sizes_that_are_not_set_are_those_of_deepseek_v2():
    config = ModelConfig(d_k=128, attention="latent", positions="rotary")
    assert (config.latent_size, config.rotary_size) == (512, 64)
    assert config.shape().endswith("8 heads of 128 from latents of 512, post-norm")
