"""Linear attention equals its formula, by sums as by pairs of tokens, with memory linear in the length."""

from itertools import product

import pytest
import torch

from children import ids, ones, stirred
from heedful.architectures import LanguageModel
from heedful.config.schema import ModelConfig
from heedful.nn import linear_attention
from heedful.nn.kv_cache import NO_CACHE
from heedful.nn.linear_attention import LinearAttention, LinearInputs
from heedful.nn.masks import AttentionMask
from tensor_sizes import LargestTensor

SIZES = {"d_model": 24, "heads": 4, "kv_heads": 2, "d_k": 6, "d_v": 5, "d_ff": 37, "decoder_layers": 2}
CONFIG = ModelConfig(**SIZES, family="decoder", attention="linear", norm="pre")


def mask_of(length: int, *, causal: bool, packed: bool = False) -> AttentionMask:
    """Three rows: without padding, with padding on the left, and on the right."""
    padding_mask = torch.ones(3, length, dtype=torch.bool)
    padding_mask[1, : length // 4] = padding_mask[2, -(length // 5) :] = False
    mask = AttentionMask(padding_mask, length, causal=causal)
    return mask.within((torch.arange(length) // 9).expand(3, -1)) if packed else mask


def phi(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x + 1, x.exp())


@torch.no_grad()
@pytest.mark.parametrize("causal", [True, False])
def test_linear_attention_is_the_formula_of_the_paper_token_by_token_and_head_by_head(causal):
    layer, x, mask = (
        stirred(LinearAttention(CONFIG)).double(),
        torch.randn(3, 11, 24).double(),
        mask_of(11, causal=causal),
    )
    want = torch.zeros(3, 11, 4, 5, dtype=torch.float64)
    for row, t, head in product(range(3), range(11), range(4)):
        query = phi(layer.q(x[row, t])[6 * head : 6 * head + 6])
        group, total = head // 2, 0.0
        for s in range(t + 1 if causal else 11):
            if mask.padding_mask[row, s]:
                weight = query @ phi(layer.k(x[row, s])[6 * group : 6 * group + 6])
                want[row, t, head] += weight * layer.v(x[row, s])[5 * group : 5 * group + 5]
                total += weight
        want[row, t, head] /= total or 1
    inputs = LinearInputs.of(mask)
    got = inputs.attend(layer, layer.queries(x, inputs.rotate), *layer.keys_values(x, inputs.rotate))
    torch.testing.assert_close(got[mask.padding_mask], layer.out(want.flatten(2))[mask.padding_mask])


@pytest.mark.parametrize(("causal", "packed"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("chunk", [1, 4, 41])
def test_sums_have_the_outputs_and_the_gradients_of_the_weights_of_all_pairs(causal, packed, chunk, monkeypatch):
    monkeypatch.setattr(linear_attention, "CHUNK", chunk)
    stack = stirred(LanguageModel(CONFIG, 23)).backbone.stack.double()
    mask, x = mask_of(41, causal=causal, packed=packed), torch.randn(3, 41, 24, dtype=torch.float64)
    results = []
    for pairs in (True, False):
        stack.weighs_all = pairs
        stack.zero_grad()
        y = stack(x, mask)[mask.padding_mask]
        (y * torch.arange(y.numel()).view_as(y).sin()).sum().backward()
        results.append([y, *(parameter.grad.clone() for parameter in stack.parameters())])
    for pairs, sums in zip(*results, strict=True):
        torch.testing.assert_close(sums, pairs, atol=1e-10, rtol=1e-10)


def test_packed_documents_without_a_causal_mask_are_refused():
    with pytest.raises(ValueError, match="give documents separate rows"):
        LinearInputs.of(mask_of(11, causal=False, packed=True))


@torch.no_grad()
@pytest.mark.parametrize("chunk", [3, 128])
def test_text_is_generated_from_a_state_of_fixed_size(chunk, monkeypatch):
    monkeypatch.setattr(linear_attention, "CHUNK", chunk)
    built, tokens = stirred(LanguageModel(CONFIG, 23)), ids(3, 40)
    padding_mask = ones(tokens)
    padding_mask[1, :7] = False
    state = built.start(tokens[:, :20], padding_mask[:, :20])
    logits = torch.stack([state.step(column) for column in tokens[:, 19:30].T], dim=1)
    torch.testing.assert_close(logits, built(tokens, padding_mask)[:, 19:30], atol=1e-5, rtol=1e-5)
    rows = torch.tensor([1, 1, 2])
    state.select(rows)
    logits = torch.stack([state.step(column) for column in tokens[rows, 30:].T], dim=1)
    torch.testing.assert_close(logits, built(tokens[rows], padding_mask[rows])[:, 30:], atol=1e-5, rtol=1e-5)
    assert [[tuple(x.shape) for x in block.buffers] for block in state.cache.blocks] == [[(3, 2, 6), (3, 2, 6, 5)]] * 2
    assert CONFIG.sums_size == sum(x[0].numel() for block in state.cache.blocks for x in block.buffers)


@torch.no_grad()
def test_several_new_tokens_at_once_continue_from_the_state_too(monkeypatch):
    monkeypatch.setattr(linear_attention, "CHUNK", 3)
    built, tokens = stirred(LanguageModel(CONFIG, 23)), ids(2, 30)
    cache, parts = built.backbone.stack.begin(2), []
    for start, end in ((0, 8), (8, 9), (9, 19), (19, 30)):
        mask = AttentionMask(ones(tokens[:, :end]), end - start, causal=True)
        parts.append(built.hidden(tokens[:, start:end], mask, cache))
    want = built.hidden(tokens, AttentionMask(ones(tokens), 30, causal=True))
    torch.testing.assert_close(torch.cat(parts, dim=1), want, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_over_a_long_text_keep_their_digits_under_autocast(dtype):
    layer, x = stirred(LinearAttention(CONFIG)), 3 * torch.randn(1, 20_000, 24)
    inputs = LinearInputs.of(AttentionMask(torch.ones(1, 20_000, dtype=torch.bool), 20_000, causal=True))

    def attended() -> torch.Tensor:
        return inputs.attend(layer, layer.queries(x, inputs.rotate), *layer.keys_values(x, inputs.rotate))[0, -100:]

    want = attended()
    with torch.autocast("cpu", dtype):
        torch.testing.assert_close(attended().float(), want, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("causal", [True, False])
def test_16384_tokens_never_need_a_tensor_of_all_pairs(causal):
    layer, x = stirred(LinearAttention(CONFIG)), torch.randn(1, 16_384, 24, requires_grad=True)
    inputs = LinearInputs.of(AttentionMask(torch.ones(1, 16_384, dtype=torch.bool), 16_384, causal=causal))

    def attended() -> torch.Tensor:
        keys, values = NO_CACHE.update(*layer.keys_values(x, inputs.rotate))
        return inputs.attend(layer, layer.queries(x, inputs.rotate), keys, values)

    with LargestTensor() as trained:
        attended().sum().backward()
    with LargestTensor() as evaluated, torch.no_grad():
        attended()
    assert max(trained.numbers, evaluated.numbers) <= 16_384 * 24 * 2
