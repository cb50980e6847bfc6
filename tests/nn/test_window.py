"""A sliding window equals its mask token by token, and Mistral's; in blocks, its memory is linear in the length."""

from itertools import product
from typing import Any
from unittest.mock import patch

import pytest
import torch

from children import ids, ones, stirred
from heedful.architectures import EncoderDecoder, EncoderOnly, LanguageModel, weights
from heedful.config.schema import ModelConfig
from heedful.convert.llama import NAMES
from heedful.nn import window as window_module
from heedful.nn.embedding import Embedding
from heedful.nn.masks import AttentionMask
from heedful.nn.window import Blocks, WindowInputs, window_inputs
from heedful.registry import POSITIONS
from tensor_sizes import LargestTensor

SIZES = {"d_model": 24, "heads": 4, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 97}


def model_of(family: str, **changes) -> Any:
    """The backbone of a GPT or of a BERT, with random norms and biases."""
    config = ModelConfig(**{**SIZES, "family": family, "norm": "pre", **changes})
    built = LanguageModel(config, 23).backbone if family == "decoder" else EncoderOnly(config, Embedding(23, config))
    return stirred(built).double()


def mask_of(length: int, *, causal: bool, packed: bool = False) -> AttentionMask:
    """Three rows: without padding, with padding on the left, and on the right."""
    padding_mask = torch.ones(3, length, dtype=torch.bool)
    padding_mask[1, : length // 4] = padding_mask[2, -(length // 5) :] = False
    mask = AttentionMask(padding_mask, length, causal=causal)
    return mask.within((torch.arange(length) // 9).expand(3, -1)) if packed else mask


@pytest.mark.parametrize(("causal", "window"), product([True, False], [1, 2, 4]))
def test_a_query_attends_to_less_than_a_window_before_it_and_if_not_causal_after_it(causal, window):
    mask = mask_of(11, causal=causal, packed=True)
    positions = POSITIONS["none"](None, causal=causal)
    allowed = mask.inputs(positions, torch.zeros(()), window).attention_bias[:, 0] == 0
    for row, query, key in product(range(3), range(11), range(11)):
        near = 0 <= query - key < window or (not causal and 0 <= key - query < window)
        assert allowed[row, query, key] == (near and mask.padding_mask[row, key] and query // 9 == key // 9)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("family", ["decoder", "encoder"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_blocks_have_the_outputs_and_the_gradients_of_the_full_mask(positions, family, window, packed, monkeypatch):
    monkeypatch.setattr(window_module, "MIN_BLOCK", 2)
    built = model_of(family, positions=positions, window=window, kv_heads=2, d_v=5)
    mask, x = mask_of(41, causal=family == "decoder", packed=packed), torch.randn(3, 41, 24, dtype=torch.float64)
    assert isinstance(built.stack.inputs(mask, x), WindowInputs)
    results = []
    for full in (True, False):
        built.stack.weighs_all = full
        built.zero_grad()
        y = built.stack(x, mask)[mask.padding_mask]
        (y * torch.arange(y.numel()).view_as(y).sin()).sum().backward()
        results.append([y, *(parameter.grad.clone() for parameter in built.stack.parameters())])
    for full, blocks in zip(*results, strict=True):
        torch.testing.assert_close(blocks, full, atol=1e-10, rtol=1e-10)


def test_latents_in_blocks_equal_those_under_the_full_mask(monkeypatch):
    monkeypatch.setattr(window_module, "MIN_BLOCK", 2)
    built = model_of("decoder", positions="rotary", window=3, attention="latent")
    mask, x = mask_of(41, causal=True), torch.randn(3, 41, 24, dtype=torch.float64)
    blocks = built.stack(x, mask)
    built.stack.weighs_all = True
    torch.testing.assert_close(blocks[mask.padding_mask], built.stack(x, mask)[mask.padding_mask])


def test_a_short_text_is_one_block_and_a_long_one_has_blocks_of_a_window_or_more():
    positions, x = POSITIONS["none"](None, causal=True), torch.zeros(())
    assert not isinstance(window_inputs(mask_of(100, causal=True), positions, x, 50), WindowInputs)
    assert isinstance(window_inputs(mask_of(114, causal=True), positions, x, 50), WindowInputs)
    assert (Blocks(300, 300, 100, causal=True).size, Blocks(300, 300, 100, causal=True).context) == (100, 199)
    assert (Blocks(300, 300, 7, causal=False).size, Blocks(300, 300, 7, causal=False).context) == (64, 76)


@torch.no_grad()
def test_a_gpt_with_a_window_equals_mistral_with_the_same_weights():
    transformers = pytest.importorskip("transformers")
    config = ModelConfig(
        family="decoder", d_model=24, heads=4, kv_heads=2, d_ff=37, decoder_layers=2, positions="rotary", norm="pre",
        normalization="rms", activation="swiglu", bias=False, attention_bias=False, scale_embeddings=False, window=5,
    )  # fmt: skip
    ours = stirred(LanguageModel(config, 23))
    theirs = transformers.MistralForCausalLM(
        transformers.MistralConfig(
            vocab_size=23, hidden_size=24, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=6, rms_norm_eps=config.norm_eps, sliding_window=5, tie_word_embeddings=True,
            attn_implementation="eager",
        )
    ).eval()  # fmt: skip
    theirs.load_state_dict(NAMES.theirs(weights(ours)), strict=False)
    tokens = ids(2, 31)
    want = theirs(tokens).logits
    torch.testing.assert_close(ours(tokens), want, atol=1e-5, rtol=1e-5)
    with patch.object(window_module, "MIN_BLOCK", 2):
        torch.testing.assert_close(ours(tokens), want, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_text_that_is_longer_than_the_window_is_generated_from_a_cache_of_two_windows(positions):
    built = stirred(LanguageModel(ModelConfig(**SIZES, family="decoder", positions=positions, window=4), 23))
    tokens, padding_mask = ids(3, 60), torch.ones(3, 60, dtype=torch.bool)
    padding_mask[1, :7] = False
    state = built.start(tokens[:, :20], padding_mask[:, :20])
    logits = torch.stack([state.step(column) for column in tokens[:, 19:40].T], dim=1)
    torch.testing.assert_close(logits, built(tokens, padding_mask)[:, 19:40], atol=1e-5, rtol=1e-5)
    assert {x.size(2) for block in state.cache.blocks for x in block.buffers} == {8}
    rows = torch.tensor([1, 1, 2])
    state.select(rows)
    logits = torch.stack([state.step(column) for column in tokens[rows, 40:].T], dim=1)
    torch.testing.assert_close(logits, built(tokens[rows], padding_mask[rows])[:, 40:], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_lanes_of_a_beam_drop_the_tokens_that_have_left_the_window():
    built = stirred(EncoderDecoder(ModelConfig(**SIZES, window=3), 23, 23))
    source, texts = ids(2, 9), ids(2, 0)
    state, rows, logits = built.start(source, ones(source)), torch.tensor([0, 0, 0, 1, 1, 1]), torch.zeros(0)
    for _ in range(40):
        texts = torch.cat([texts, ids(len(texts), 1)], dim=1)
        logits = state.step(texts[:, -1])[rows]
        state.select(rows)
        texts, rows = texts[rows], torch.tensor([1, 0, 2, 5, 5, 4])
        assert state.cache.target[0].length <= 2 * 3 * 3
    sources = source.repeat_interleave(3, 0)
    want = built(sources, ones(sources), texts, ones(texts))[:, -1]
    torch.testing.assert_close(logits, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["decoder", "encoder"])
def test_16384_tokens_never_need_a_tensor_of_all_pairs(family):
    built = model_of(family, d_model=4, heads=1, d_ff=4, encoder_layers=1, decoder_layers=1, window=16).float()
    mask = AttentionMask(torch.ones(1, 16_384, dtype=torch.bool), 16_384, causal=family == "decoder")
    x = torch.randn(1, 16_384, 4, requires_grad=True)
    with LargestTensor() as trained:
        built.stack(x, mask).sum().backward()
    with LargestTensor() as evaluated, torch.no_grad():
        built.stack(x, mask)
    assert max(trained.numbers, evaluated.numbers) <= 16_384 * (64 + 2 * 15)
