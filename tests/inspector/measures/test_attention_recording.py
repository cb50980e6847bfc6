"""Where a translator looks, by piece and by word."""

import pytest
import torch

import every_architecture
from heedful.architectures import EncoderDecoder
from heedful.config.schema import DecodeConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import Pieces
from heedful.inspector.measures.attention import (
    AlignedAttention,
    alignment_error,
    cross_attention,
    view,
)
from heedful.predictors.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

LAYERS, HEADS = 3, 2
ENGLISH = ["the old dog sees the station .", "the cat sees how the dog sleeps .", "two women read a book ."]
GERMAN = [
    "der alte Hund sieht den Bahnhof .",
    "die Katze sieht , wie der Hund schläft .",
    "zwei Frauen lesen ein Buch .",
]


@pytest.fixture
def translator() -> Translator:
    config = TokenizerConfig(vocab_size=307, joint=False)
    pair = TokenizerPair(train_tokenizer(ENGLISH, config), train_tokenizer(GERMAN, config))
    shape = ModelConfig(
        d_model=14, d_ff=23, heads=HEADS, encoder_layers=1, decoder_layers=LAYERS, tie="none", attention_dropout=0.5
    )
    model = EncoderDecoder(shape, len(pair.source), len(pair.target))
    return Translator(model, pair, DecodeConfig(beam=2, max_extra=5))


def test_looking_leaves_the_model_in_training_mode_and_drops_nothing_out(translator):
    translator.model.train()
    seen = cross_attention(translator, ENGLISH[0], GERMAN[0])
    assert translator.model.training
    torch.testing.assert_close(seen.weights, cross_attention(translator, ENGLISH[0], GERMAN[0]).weights)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(seen.weights.shape[:-1]))


def test_one_pass_sees_what_writing_token_by_token_sees(translator):
    seen = cross_attention(translator, ENGLISH[1])
    [translation] = translator.translate_lines([ENGLISH[1]])
    assert seen.target.ids[:-1] == translation.alternatives[0].hypothesis.tokens
    source = torch.tensor([seen.source.ids])
    steps = []
    with torch.inference_mode(), recording(translator.model.eval(), ["dec.*.cross.attn"]) as found:
        state = translator.model.start(source, torch.ones_like(source, dtype=torch.bool))
        for token in [2, *seen.target.ids[:-1]]:
            state.step(torch.tensor([token]))
            steps.append(torch.cat(list(found.values())))
    written = torch.cat(steps, dim=2)
    torch.testing.assert_close(seen.weights, written, atol=1e-6, rtol=0)


def test_a_given_translation_is_looked_at_as_it_is(translator):
    seen = cross_attention(translator, ENGLISH[2], GERMAN[2])
    assert seen.source.words == [*ENGLISH[2].split(), "<eos>"]
    assert seen.target.words == [*GERMAN[2].split(), "<eos>"]
    assert seen.weights.shape == (LAYERS, HEADS, len(seen.target.ids), len(seen.source.ids))


def test_weights_of_a_word_are_summed_over_its_source_pieces_and_averaged_over_its_target_pieces():
    source = Pieces([5, 6, 7, 3], ["▁a", "b", "▁c", "<eos>"], ["ab", "c", "<eos>"], [0, 0, 1, 2])
    target = Pieces([5, 6, 3], ["▁x", "y", "<eos>"], ["xy", "<eos>"], [0, 0, 1])
    weights = torch.tensor([[[[0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.4], [0.0, 0.0, 0.0, 1.0]]]])
    expected = torch.tensor([[[[0.4, 0.2, 0.4], [0.0, 0.0, 1.0]]]])
    torch.testing.assert_close(AlignedAttention([1], source, target, weights).by_word(), expected)


def test_rows_between_words_still_sum_to_one(translator):
    words = cross_attention(translator, ENGLISH[0], GERMAN[1]).by_word()
    assert words.shape == (LAYERS, HEADS, len(GERMAN[1].split()) + 1, len(ENGLISH[0].split()) + 1)
    torch.testing.assert_close(words.sum(-1), torch.ones(words.shape[:-1]))


def sharpened(*sharpness):
    logits = torch.randn(len(sharpness), HEADS, 5, 7, generator=torch.Generator().manual_seed(1))
    return torch.softmax(logits * torch.tensor(sharpness)[:, None, None, None], dim=-1)


def test_the_sharpest_layer_is_the_one_that_spreads_least():
    assert view(sharpened(1.0, 30.0, 3.0), [1, 2, 3])[1].startswith("Cross-attention, layer 2")
    assert view(torch.eye(7)[None, None, :5], [1])[1].startswith("Cross-attention, layer 1")


def test_a_view_is_one_head_or_the_mean_of_a_layer():
    weights = sharpened(1.0, 30.0, 3.0)
    chosen, title = view(weights, [1, 2, 3], 3, 2)
    assert torch.equal(chosen, weights[2, 1])
    assert title == "Cross-attention, layer 3, head 2"
    chosen, title = view(weights, [1, 2, 3])
    assert torch.equal(chosen, weights[1].mean(0))
    assert title == "Cross-attention, layer 2, mean of 2 heads"
    assert torch.equal(view(weights, [1, 2, 3], head=1)[0], weights[1, 0])


@pytest.mark.parametrize(("layer", "head", "words"), [(0, None, "layer 0"), (4, 1, "layer 4"), (1, 3, "head 3")])
def test_a_view_of_nothing_is_refused(layer, head, words):
    with pytest.raises(InputError, match=f"{words}: the decoder has"):
        view(sharpened(1.0, 2.0, 3.0), [1, 2, 3], layer, head)


def test_the_cross_attention_of_a_recurrent_decoder_is_that_of_its_last_layer():
    seen = cross_attention(every_architecture.translator("lstm with general attention"), "the old dog .", "the old .")
    assert seen.layers == [2]
    assert view(seen.weights, seen.layers)[1] == "Cross-attention, layer 2, mean of 1 head"
    assert torch.equal(view(seen.weights, seen.layers, layer=2)[0], seen.weights[0, 0])
    with pytest.raises(InputError, match="layer 1: the decoder has cross-attention in 1 layer: 2"):
        view(seen.weights, seen.layers, layer=1)


def test_alignment_error_counts_links():
    weights = sharpened(1.0, 3.0)
    gold = {(0, 0), (2, 1), (2, 2), (6, 2), (4, 4), (0, 3), (1, 3)}
    for layer in range(2):
        for head in range(HEADS):
            links = {(int(row.argmax()), target) for target, row in enumerate(weights[layer, head])}
            expected = 1 - 2 * len(links & gold) / (len(links) + len(gold))
            assert float(alignment_error(weights, gold)[layer, head]) == pytest.approx(expected)


def test_alignment_error_is_0_for_gold_and_1_for_none_in_common():
    weights = torch.eye(5)[torch.tensor([2, 0, 1, 4, 4])][None, None]
    gold = {(2, 0), (0, 1), (1, 2), (4, 3), (4, 4)}
    assert float(alignment_error(weights, gold)) == 0
    assert float(alignment_error(weights, {(3, 0), (3, 1)})) == 1


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_no_text_is_refused(translator, text):
    with pytest.raises(InputError, match="the text is empty"):
        cross_attention(translator, text)


def test_text_that_is_too_long_is_refused(translator):
    with pytest.raises(InputError, match="but the model takes at most 999"):
        cross_attention(translator, "x " * 1009)
    with pytest.raises(InputError, match="but the model takes at most 1004"):
        cross_attention(translator, "a dog", "x " * 1009)
