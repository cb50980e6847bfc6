import itertools

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderDecoder, EncoderOnly, MaskedLanguageModel, load_weights, weights
from heedful.architectures.transformer.layers import FeedForward
from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention
from heedful.registry import POSITIONS
from heedful.text.tokenizer import EOS

DENSE = [
    *(
        {"positions": positions, "norm": norm, "kv_heads": kv_heads}
        for positions, norm, kv_heads in itertools.product(POSITIONS, ["post", "pre"], [None, 2])
    ),
    *({"positions": positions, "attention": "latent"} for positions in POSITIONS),
    {"positions": "rotary", "norm": "pre", "attention": "latent", "kv_rank": 7, "q_rank": 5, "d_rope": 4, "d_v": 3},
    *({"positions": positions, "window": 3, "norm": "pre"} for positions in POSITIONS),
    {"positions": "rotary", "window": 2, "attention": "latent", "kv_rank": 7},
    {"positions": "learned", "attention": "linear", "kv_heads": 2, "d_v": 5},
]
EXPERTS = [
    {"feed_forward": "experts", "experts": 3, "experts_per_token": 1, "d_expert": 11},
    {"feed_forward": "experts", "shared_experts": 1, "activation": "swiglu", "norm": "pre"},
    {"feed_forward": "experts", "attention": "latent", "positions": "rotary", "activation": "swiglu", "bias": False},
]
VARIANTS = DENSE + EXPERTS


def model(**changes):
    torch.manual_seed(0)
    settings = {"d_model": 24, "heads": 4, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 3, "max_positions": 61}
    built = EncoderDecoder(ModelConfig(**{**settings, **changes}), 23, 23).eval()
    with torch.no_grad():  # fresh norms and biases are ones and zeros, which would hide a mistake
        for name, parameter in built.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.rand_like(parameter) + ("norm" in name))
    return built


def ids(rows, length):
    return torch.randint(1, 23, (rows, length))


def ones(x):
    return torch.ones_like(x, dtype=torch.bool)


def steps(built, source, padding_mask, target):
    state = built.start(source, padding_mask)
    return torch.stack([state.step(token) for token in target.T], dim=1)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_decoding_with_a_cache_equals_decoding_all_at_once(variant):
    built = model(**variant)
    source, target = ids(3, 7), ids(3, 11)
    padding_mask = ones(source)
    padding_mask[1, 5:] = False
    want = built(source, padding_mask, target, ones(target))
    torch.testing.assert_close(steps(built, source, padding_mask, target), want)


def test_the_encoder_computes_once_and_the_decoder_once_for_each_token():
    built, source, target, calls = model(), ids(3, 7), ids(3, 5), []
    for side in ("encoder", "decoder"):
        block = built.get_submodule(f"{side}.blocks.0.feed_forward")
        block.register_forward_hook(lambda *_, side=side: calls.append(side))
    steps(built, source, ones(source), target)
    assert calls == ["encoder", *["decoder"] * 5]


def test_keys_and_values_of_the_source_are_computed_once_and_queries_for_each_token():
    built, source, calls = model(), ids(3, 7), []
    for name in ("k", "v", "q"):
        part = built.get_submodule(f"decoder.blocks.0.cross_attention.{name}")
        part.register_forward_hook(lambda *_, name=name: calls.append(name))
    steps(built, source, ones(source), ids(3, 5))
    assert calls == ["k", "v", *["q"] * 5]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_rms_norms_and_gates_decode_with_a_cache_too(norm):
    built = model(normalization="rms", activation="swiglu", norm=norm, positions="rotary")
    assert not [part for part in built.modules() if isinstance(part, nn.LayerNorm)]
    source, target = ids(3, 7), ids(3, 11)
    torch.testing.assert_close(
        steps(built, source, ones(source), target), built(source, ones(source), target, ones(target))
    )


@pytest.mark.parametrize("variant", DENSE, ids=str)
def test_future_tokens_do_not_matter(variant):
    built = model(**variant)
    source, target = ids(3, 7), ids(3, 11)
    other = target.clone()
    other[:, 5:] = ids(3, 6)
    first, second = (built(source, ones(source), y, ones(y)) for y in (target, other))
    assert torch.equal(first[:, :5], second[:, :5])
    assert not torch.allclose(first[:, 5:], second[:, 5:])


@pytest.mark.parametrize("variant", EXPERTS, ids=str)
def test_future_tokens_change_the_number_of_rows_of_an_expert_and_so_no_more_than_the_rounding(variant):
    built = model(**variant)
    source, target = ids(3, 7), ids(3, 11)
    other = target.clone()
    other[:, 5:] = ids(3, 6)
    first, second = (built(source, ones(source), y, ones(y)) for y in (target, other))
    torch.testing.assert_close(first[:, :5], second[:, :5], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(first[:, 5:], second[:, 5:])


def test_an_encoder_may_be_blind_to_the_end_of_the_source():
    built = model(source_eos=False)
    source, target = ids(3, 7).clamp(min=EOS + 1), ids(3, 5)
    ended = torch.cat([source, torch.full((3, 1), EOS)], dim=1)
    want = built(source, ones(source), target, ones(target))
    torch.testing.assert_close(built(ended, ones(ended), target, ones(target)), want)
    built.source_eos = True
    assert not torch.allclose(built(ended, ones(ended), target, ones(target)), want)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_matter(variant, side):
    built = model(**variant)
    source, target = ids(3, 7), ids(3, 5)
    want = built(source, ones(source), target, ones(target))

    def padded(x, amount):
        pad = torch.zeros(3, amount, dtype=torch.long)
        return torch.cat([pad, x] if side == "left" else [x, pad], dim=1)

    x, y = padded(source, 13), padded(target, 2)
    got = built(x, x > 0, y, y > 0)
    torch.testing.assert_close(got[:, 2:] if side == "left" else got[:, :5], want)


def test_the_order_of_the_batch_does_not_matter():
    built, source, target = model(), ids(5, 7), ids(5, 3)
    order = torch.tensor([3, 0, 4, 1, 2])
    got = built(source[order], ones(source), target[order], ones(target))
    torch.testing.assert_close(got, built(source, ones(source), target, ones(target))[order])


def test_selected_rows_go_on_as_if_they_had_always_stood_there():
    built, source, target = model(), ids(3, 7), ids(3, 5)
    rows = torch.tensor([2, 0, 0, 1])
    state = built.start(source, ones(source))
    for token in target.T[:3]:
        state.step(token)
    state.select(rows)
    rest = torch.stack([state.step(token) for token in target[rows].T[3:]], dim=1)
    torch.testing.assert_close(rest, steps(built, source[rows], ones(source[rows]), target[rows])[:, 3:])


def test_without_positions_the_encoder_is_equivariant_to_order():
    source, order = ids(3, 7), torch.tensor([4, 2, 6, 0, 1, 5, 3])
    bag, ordered = model(positions="none"), model()
    got, want = (bag.encode(x, ones(x)).states for x in (source[:, order], source))
    torch.testing.assert_close(got, want[:, order])
    got, want = (ordered.encode(x, ones(x)).states for x in (source[:, order], source))
    assert not torch.allclose(got, want[:, order], atol=1e-3)


def copy_attention(torch_layer, layer):
    torch_layer.in_proj_weight.copy_(torch.cat([layer.q.weight, layer.k.weight, layer.v.weight]))
    torch_layer.in_proj_bias.copy_(torch.cat([layer.q.bias, layer.k.bias, layer.v.bias]))
    torch_layer.out_proj.load_state_dict(layer.out.state_dict())


def torch_transformer(built, norm):
    ours = nn.Transformer(24, 4, 2, 3, 37, 0.0, batch_first=True, norm_first=norm == "pre").eval()
    with torch.no_grad():
        for layer, block in zip(ours.encoder.layers, built.encoder.blocks, strict=True):
            copy_attention(layer.self_attn, block.self_attention)
            layer.norm1.load_state_dict(block.self_residual.norm.state_dict())
            layer.norm2.load_state_dict(block.feed_residual.norm.state_dict())
            layer.linear1.load_state_dict(block.feed_forward.up.state_dict())
            layer.linear2.load_state_dict(block.feed_forward.down.state_dict())
        for layer, block in zip(ours.decoder.layers, built.decoder.blocks, strict=True):
            copy_attention(layer.self_attn, block.self_attention)
            copy_attention(layer.multihead_attn, block.cross_attention)
            layer.norm1.load_state_dict(block.self_residual.norm.state_dict())
            layer.norm2.load_state_dict(block.cross_residual.norm.state_dict())
            layer.norm3.load_state_dict(block.feed_residual.norm.state_dict())
            layer.linear1.load_state_dict(block.feed_forward.up.state_dict())
            layer.linear2.load_state_dict(block.feed_forward.down.state_dict())
    for part, stack in ((ours.encoder, built.encoder), (ours.decoder, built.decoder)):
        if norm == "pre":
            part.norm.load_state_dict(stack.norm.state_dict())
        else:
            part.norm = None
    return ours


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_stacks_equal_torchs_transformer(norm):
    built = model(positions="none", norm=norm)
    reference = torch_transformer(built, norm)
    source, target = ids(3, 7), ids(3, 5)
    padding_mask = ones(source)
    padding_mask[2, 4:] = False
    embed = built.target_embedding
    want = reference(
        embed(source),
        embed(target),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5),
        src_key_padding_mask=~padding_mask,
        memory_key_padding_mask=~padding_mask,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(built.hidden(source, padding_mask, target, ones(target)), want)


def test_attention_feed_forward_networks_and_norms_come_in_the_order_of_figure_1():
    built, order = model(encoder_layers=1, decoder_layers=1), []
    for name, part in built.named_modules():
        if isinstance(part, Attention | FeedForward | nn.LayerNorm):
            part.register_forward_hook(lambda *_, name=name: order.append(name.replace("_residual.norm", "_norm")))
    source, target = ids(3, 7), ids(3, 5)
    built(source, ones(source), target, ones(target))
    encoder = ["self_attention", "self_norm", "feed_forward", "feed_norm"]
    decoder = [*encoder[:2], "cross_attention", "cross_norm", *encoder[2:]]
    assert order == [f"encoder.blocks.0.{name}" for name in encoder] + [f"decoder.blocks.0.{name}" for name in decoder]


def test_a_decoder_generates_from_the_output_of_an_encoder_that_is_gone_and_an_encoder_cannot_generate():
    built, source, target = model(), ids(3, 7), ids(3, 5)
    want = steps(built, source, ones(source), target)
    state = built.start(source, ones(source))
    del built.encoder
    torch.testing.assert_close(torch.stack([state.step(token) for token in target.T], dim=1), want)
    assert not any(hasattr(kind, "start") for kind in (EncoderOnly, MaskedLanguageModel))


def test_tied_embeddings_are_one_matrix_scaled_by_the_root_of_d_model():
    built = model()
    assert built.source_embedding is built.target_embedding
    assert built.output.weight is built.target_embedding.weight
    token = torch.tensor([[5]])
    torch.testing.assert_close(built.source_embedding(token)[0, 0], built.output.weight[5] * 24**0.5)


def test_embeddings_are_the_product_of_a_one_hot_vector_and_the_matrix():
    built, tokens = model(), ids(3, 7)
    one_hot = nn.functional.one_hot(tokens, 23).float()
    torch.testing.assert_close(built.target_embedding(tokens), one_hot @ built.output.weight * 24**0.5)


def test_looking_up_a_row_has_the_values_and_gradients_of_the_product_with_a_one_hot_vector():
    tokens, weight = torch.tensor([5, 17, 5, 9_999]), torch.randn(10_000, 64)
    one, other = (weight.clone().requires_grad_() for _ in range(2))
    looked_up = nn.functional.embedding(tokens, one)
    product = nn.functional.one_hot(tokens, 10_000).float() @ other
    torch.testing.assert_close(looked_up, product, atol=0, rtol=0)
    slopes = torch.randn(4, 64)
    looked_up.backward(slopes)
    product.backward(slopes)
    torch.testing.assert_close(one.grad, other.grad, atol=1e-6, rtol=0)  # row 5 is a sum of two


@pytest.mark.parametrize(("tie", "matrices"), [("all", 1), ("output", 2), ("none", 3)])
def test_tying_decides_how_many_vocabulary_matrices_there_are(tie, matrices):
    built = model(tie=tie)
    assert sum(p.numel() for n, p in built.named_parameters() if p.size(0) == 23 and p.dim() == 2) == matrices * 23 * 24


def test_a_fresh_tied_model_knows_nothing():
    torch.manual_seed(3)
    built = EncoderDecoder(
        ModelConfig(d_model=128, d_ff=256, heads=4, encoder_layers=2, decoder_layers=2), 1009, 1009
    ).eval()
    source, target = torch.randint(4, 1009, (7, 11)), torch.randint(4, 1009, (7, 13))
    logits = built(source, ones(source), target, ones(target))
    assert logits.std() < 1.5
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(4, 1009, (91,)))
    assert loss.item() == pytest.approx(6.9, abs=0.8)  # ln 1009


def test_weights_come_back_and_wrong_ones_are_refused_by_name():
    built, other = model(), model(norm="pre")
    torch.manual_seed(5)
    fresh = EncoderDecoder(ModelConfig(d_model=24, heads=4, d_ff=37, encoder_layers=2, decoder_layers=3), 23, 23).eval()
    load_weights(fresh, weights(built))
    source, target = ids(3, 7), ids(3, 5)
    x = (source, ones(source), target, ones(target))
    assert torch.equal(fresh(*x), built(*x))
    with pytest.raises(ValueError, match=r"missing decoder.norm.bias \(24,\); missing decoder.norm.weight \(24,\)"):
        load_weights(other, weights(built))
    with pytest.raises(ValueError, match=r"source_embedding.weight is \(3, 24\), but the model needs \(23, 24\)"):
        load_weights(built, {**weights(built), "source_embedding.weight": torch.zeros(3, 24)})
