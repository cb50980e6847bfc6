"""A random MarianMT model of Hugging Face, its weights copied into ours: the same logits and the same translations."""

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderDecoder
from heedful.config.schema import DecodeConfig, ModelConfig
from heedful.search.beam import search
from heedful.text.tokenizer import BOS, EOS, PAD

transformers = pytest.importorskip("transformers")

VOCABULARY, D_MODEL, D_FF, HEADS, ENCODER_LAYERS, DECODER_LAYERS = 131, 24, 37, 3, 2, 3
EXTRA = 3


@pytest.fixture(scope="module")
def marian():
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        d_model=D_MODEL,
        encoder_layers=ENCODER_LAYERS,
        decoder_layers=DECODER_LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    torch.manual_seed(7)
    model = transformers.MarianMTModel(config).eval()
    # Untied and sharp: a random tied output would follow every token by itself.
    model.lm_head.weight = nn.Parameter(0.6 * torch.randn(VOCABULARY, D_MODEL))
    for name, parameter in model.model.named_parameters():
        if parameter.requires_grad and "layer_norm.weight" not in name:  # the positions are not trained
            nn.init.normal_(parameter, std=0.4 if name == "shared.weight" else 0.1)
    model.final_logits_bias.normal_(std=0.5)
    model.final_logits_bias[0, EOS] += 4.5  # so that outputs end at many lengths
    return model


@pytest.fixture(scope="module")
def ours(marian) -> EncoderDecoder:
    model = EncoderDecoder(
        ModelConfig(
            d_model=D_MODEL,
            d_ff=D_FF,
            heads=HEADS,
            encoder_layers=ENCODER_LAYERS,
            decoder_layers=DECODER_LAYERS,
        ),
        VOCABULARY,
        VOCABULARY,
    ).eval()
    theirs = marian.model
    with torch.no_grad():
        model.target_embedding.weight.copy_(theirs.shared.weight)
    # Marian's output has a bias, and the sines of its positions stand before the cosines.
    model.output = nn.Linear(D_MODEL, VOCABULARY)
    model.output.load_state_dict({"weight": marian.lm_head.weight, "bias": marian.final_logits_bias[0]})
    for stack, other in ((model.encoder, theirs.encoder), (model.decoder, theirs.decoder)):
        stack.positions.table = other.embed_positions.weight.detach()
        for block, layer in zip(stack.blocks, other.layers, strict=True):
            copy_attention(block.self_attention, layer.self_attn)
            block.self_residual.norm.load_state_dict(layer.self_attn_layer_norm.state_dict())
            block.feed_forward.up.load_state_dict(layer.fc1.state_dict())
            block.feed_forward.down.load_state_dict(layer.fc2.state_dict())
            block.feed_residual.norm.load_state_dict(layer.final_layer_norm.state_dict())
    for block, layer in zip(model.decoder.blocks, theirs.decoder.layers, strict=True):
        copy_attention(block.cross_attention, layer.encoder_attn)
        block.cross_residual.norm.load_state_dict(layer.encoder_attn_layer_norm.state_dict())
    return model


def copy_attention(attention: nn.Module, other: nn.Module) -> None:
    for name in ("q", "k", "v", "out"):
        getattr(attention, name).load_state_dict(getattr(other, f"{name}_proj").state_dict())


@pytest.fixture(scope="module")
def sources() -> list[torch.Tensor]:
    """Twenty sentences of 2 to 12 random tokens and <eos>."""
    generator = torch.Generator().manual_seed(11)
    lengths = torch.randint(2, 13, (20,), generator=generator).tolist()
    rows = [torch.randint(4, VOCABULARY, (n,), generator=generator) for n in lengths]
    return [torch.cat([row, torch.tensor([EOS])]) for row in rows]


def test_the_logits_are_those_of_marian(marian, ours, sources):
    source = nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD)
    target = torch.randint(4, VOCABULARY, (len(sources), 11))
    padding_mask = source != PAD
    with torch.inference_mode():
        expected = marian(input_ids=source, attention_mask=padding_mask.long(), decoder_input_ids=target).logits
        found = ours(source, padding_mask, target, torch.ones_like(target, dtype=torch.bool))
    assert expected.std() > 1
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def generated(marian, source: torch.Tensor, config: DecodeConfig) -> list[tuple[list[int], float]]:
    """What `generate` finds: the ids up to <eos>, and their score."""
    result = marian.generate(
        input_ids=source[None],
        attention_mask=torch.ones_like(source)[None],
        num_beams=config.beam,
        num_return_sequences=config.n_best,
        do_sample=False,
        early_stopping=(bool(config.patience) or "never") if config.beam > 1 else False,
        length_penalty=config.alpha,
        max_new_tokens=len(source) - 1 + config.extra,
        bad_words_ids=[[PAD], [BOS]],
        return_dict_in_generate=True,
        output_scores=True,
    )
    scores = result.sequences_scores.tolist() if config.beam > 1 else [float("nan")]
    rows = [row[1 : row.index(EOS) + 1] if EOS in row else row[1:] for row in result.sequences.tolist()]
    return list(zip([[token for token in row if token != PAD] for row in rows], scores, strict=True))


CONFIGS = [
    DecodeConfig(beam=1, max_extra=EXTRA),
    *(
        DecodeConfig(beam=4, penalty=penalty, alpha=alpha, n_best=n_best, max_extra=EXTRA, patience=patience)
        for patience in (0.0, 1.0)
        for penalty, alpha, n_best in (("gnmt", 0.0, 4), ("average", 1.0, 4), ("average", 1.0, 1))
    ),
]


@pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda c: f"beam{c.beam}-alpha{c.alpha}-nbest{c.n_best}-patience{c.patience}"
)
def test_search_finds_what_generate_finds_token_for_token(marian, ours, sources, config):
    source = nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD)
    padding_mask = source != PAD
    with torch.inference_mode():
        found = search(ours.start(source, padding_mask), (padding_mask.sum(1) - 1 + config.max_extra).tolist(), config)
    lengths = set()
    for row, hypotheses in zip(sources, found, strict=True):
        expected = generated(marian, row, config)
        assert [[*h.tokens, EOS] if h.complete else h.tokens for h in hypotheses] == [ids for ids, _ in expected]
        if config.beam > 1:
            assert [h.score for h in hypotheses] == pytest.approx([score for _, score in expected], abs=1e-4)
        lengths |= {(len(h.tokens), h.complete) for h in hypotheses}
    assert len(lengths) > 5
    assert {complete for _, complete in lengths} == {True, False}
