import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from heedful import load
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.predictors import translator as translator_module
from heedful.predictors.translator import WINDOW, Translation, Translator
from heedful.search.beam import search
from heedful.search.hypothesis import Hypothesis
from heedful.text.sequences import batches
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(89)]
SMALL = ModelConfig(d_model=26, d_ff=37, heads=2, encoder_layers=1, decoder_layers=2, tie="none")
GREEDY = DecodeConfig(beam=1, max_extra=5)
BEAM = DecodeConfig(beam=4, n_best=3, max_extra=5)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))


def random_model(tokenizer: Tokenizer, config: ModelConfig = SMALL) -> EncoderDecoder:
    """A model whose translations differ and end at many lengths."""
    torch.manual_seed(3)
    model = EncoderDecoder(config, len(tokenizer), len(tokenizer)).eval()
    model.output = nn.Linear(config.d_model, len(tokenizer))
    nn.init.normal_(model.output.weight, std=0.6)
    nn.init.constant_(model.output.bias[EOS], 1.0)
    for embedding in (model.source_embedding, model.target_embedding):
        nn.init.normal_(embedding.weight, std=0.6)
    return model


def random_translator(tokenizer: Tokenizer, decode: DecodeConfig, config: ModelConfig = SMALL) -> Translator:
    return Translator(random_model(tokenizer, config), TokenizerPair(tokenizer, tokenizer), decode)


def sentences(count: int) -> list[str]:
    chance = random.Random(count)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 11))) for _ in range(count)]


def assert_same(found: list[Translation], expected: list[Translation]) -> None:
    assert [t.text for t in found] == [t.text for t in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert_same_hypotheses([a.hypothesis for a in ours.alternatives], [a.hypothesis for a in theirs.alternatives])


def assert_same_hypotheses(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)
        assert ours.token_scores == pytest.approx(theirs.token_scores, abs=1e-5)


@pytest.mark.parametrize("decode", [GREEDY, BEAM], ids=["greedy", "beam"])
@pytest.mark.parametrize(("norm", "positions"), [("post", "sinusoidal"), ("pre", "learned")])
def test_a_sentence_is_translated_alike_alone_in_a_batch_of_64_and_in_reverse(tokenizer, decode, norm, positions):
    translator = random_translator(tokenizer, decode, replace(SMALL, norm=norm, positions=positions))
    texts = sentences(64)
    together = list(translator.translate_lines(texts))
    assert len({t.text for t in together}) > 10
    assert_same(list(translator.translate_lines(texts[::-1]))[::-1], together)
    assert_same([next(translator.translate_lines([text])) for text in texts[:17]], together[:17])


@pytest.mark.parametrize("decode", [GREEDY, BEAM], ids=["greedy", "beam"])
@pytest.mark.parametrize("padding", [(0, 7), (7, 0), (3, 5)], ids=["right", "left", "both"])
@torch.inference_mode()
def test_padding_of_the_source_does_not_matter(tokenizer, decode, padding):
    model = random_model(tokenizer)
    for text in sentences(3):
        source = torch.tensor([[*tokenizer.encode(text), EOS]])
        padding_mask = torch.ones_like(source, dtype=torch.bool)
        length = padding_mask.sum(1) - 1
        (expected,) = search(model.start(source, padding_mask), [int(length) + decode.max_extra], decode)
        state = model.start(nn.functional.pad(source, padding), nn.functional.pad(padding_mask, padding))
        (found,) = search(state, [int(length) + decode.max_extra], decode)
        assert_same_hypotheses(found, expected)


@pytest.mark.parametrize("decode", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_the_size_of_batches_and_windows_does_not_matter(tokenizer, decode):
    texts = sentences(13)
    expected = list(random_translator(tokenizer, decode).translate_lines(texts))
    for batch_tokens, window in ((1, 5), (67, 7), (10**6, 17)):
        translator = random_translator(tokenizer, replace(decode, batch_tokens=batch_tokens))
        assert_same(list(translator.translate_lines(texts, window)), expected)


def test_blank_lines_stay_empty_in_their_places(tokenizer):
    translator = random_translator(tokenizer, GREEDY)
    first, second = sentences(2)
    assert translator.translate(["", first, " \t", second, "\u3000", ""]) == [
        "",
        translator.translate([first])[0],
        "",
        translator.translate([second])[0],
        "",
        "",
    ]
    assert translator.translate([]) == []
    assert next(translator.translate_lines([""])).alternatives == []


def test_lines_are_read_only_as_they_are_needed(tokenizer):
    read = []

    def endless() -> Iterator[str]:
        for number in itertools.count():
            read.append(number)
            yield "w3"

    translations = random_translator(tokenizer, GREEDY).translate_lines(endless(), window=7)
    next(translations)
    assert len(read) == 7
    for _ in range(7):
        next(translations)
    assert len(read) == 14


def test_more_lines_than_a_window_keep_their_order(tokenizer):
    translator = random_translator(tokenizer, replace(GREEDY, max_extra=0))
    texts = [WORDS[number % 11] for number in range(WINDOW + 7)]
    answers = {text: translator.translate([text])[0] for text in set(texts)}
    assert translator.translate(texts) == [answers[text] for text in texts]


@pytest.mark.parametrize(("positions", "longest"), [("learned", 37), ("sinusoidal", 41)])
def test_a_line_too_long_for_the_model_is_cut_and_marked(tokenizer, positions, longest, monkeypatch):
    monkeypatch.setattr(translator_module, "MAX_SOURCE_TOKENS", 41)
    translator = random_translator(tokenizer, GREEDY, replace(SMALL, positions=positions, max_positions=37))
    assert translator.longest_source == longest
    fitting = " ".join(random.Random(1).choices(WORDS, k=translator.longest_source - 1))
    whole, cut = translator.translate_lines([fitting, f"{fitting} w5"])
    assert (whole.truncated, cut.truncated) == (False, True)
    assert cut.text == whole.text


@pytest.mark.parametrize("unit", ["a", "^", " ", "w5 ", "\u200d", "語", "é"])
def test_a_line_of_a_million_characters_is_translated_in_part(tokenizer, unit):
    translator = random_translator(tokenizer, GREEDY, replace(SMALL, positions="learned", max_positions=37))
    translation, after = translator.translate_lines([unit * (10**6 // len(unit)), "w5"])
    assert translation.truncated
    assert not after.truncated
    assert after.text == translator.translate(["w5"])[0]


@pytest.mark.parametrize("decode", [GREEDY, BEAM])
def test_an_output_is_at_most_as_long_as_the_positions_that_the_model_learns(tokenizer, decode):
    shape = replace(SMALL, positions="learned", max_positions=41, max_target_positions=7)
    translator = random_translator(tokenizer, replace(decode, max_extra=10_000), shape)
    nn.init.constant_(translator.model.output.bias[EOS], -100.0)
    [found] = translator.translate_lines(["w1 w2 w3 w4 w5 w6 w7 w8 w9"])
    assert len(found.alternatives[0].hypothesis.tokens) == translator.longest_output(9) == 7
    assert not found.complete
    assert not found.truncated


def test_a_model_in_training_is_used_without_dropout_and_stays_in_training(tokenizer):
    translator = random_translator(tokenizer, BEAM, replace(SMALL, dropout=0.5))
    texts = sentences(7)
    expected = list(translator.translate_lines(texts))
    translator.model.train()
    assert_same(list(translator.translate_lines(texts)), expected)
    assert all(module.training for module in translator.model.modules())


def test_a_line_feed_that_a_model_spells_is_one():
    tokenizer = train_tokenizer(["ab"], TokenizerConfig(kind="character"))
    translator = random_translator(tokenizer, GREEDY)
    nn.init.constant_(translator.model.output.bias[tokenizer.byte_ids[ord("\n")]], 100.0)
    assert translator.translate(["ab"]) == ["\n" * 7]


def test_a_saved_model_translates_as_before(tmp_path: Path, tokenizer):
    recipe = Recipe(model=SMALL, decode=BEAM, tokenizer=TokenizerConfig(joint=False))
    model = EncoderDecoder(SMALL, len(tokenizer), len(tokenizer))
    pair = TokenizerPair(tokenizer, tokenizer)
    write_model(tmp_path / "model", recipe, pair, weights(model))
    loaded = load(tmp_path / "model", "cpu")
    expected = Translator(model, pair, BEAM).translate_lines(sentences(5))
    assert loaded.config == BEAM
    assert_same(list(loaded.translate_lines(sentences(5))), list(expected))


@given(lengths=st.lists(st.integers(0, 23), max_size=41), tokens=st.integers(1, 67))
def test_batches_hold_every_row_once_within_their_budget(lengths, tokens):
    found = list(batches([[1] * length for length in lengths], tokens))
    assert sorted(i for batch in found for i in batch) == [i for i, length in enumerate(lengths) if length]
    assert all(len(batch) == 1 or len(batch) * (1 + max(lengths[i] for i in batch)) <= tokens for batch in found)
    assert [lengths[i] for batch in found for i in batch] == sorted(filter(None, lengths), reverse=True)
