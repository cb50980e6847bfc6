"""Words are linked as the decoder attends, whatever else is in the batch."""

import random
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import every_architecture
from heedful import load
from heedful.architectures import EncoderDecoder
from heedful.architectures.ensemble import ensemble
from heedful.config.schema import DecodeConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.inspector.measures.attention import cross_attention
from heedful.predictors.cross_attention import attention_layers, head_counts, head_weights, upper_heads
from heedful.predictors.translator import Translator
from heedful.predictors.word_alignment import Side, by_word, links_of, symmetrised
from heedful.text.tokenizer import BOS, EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.text.words import word_spans

LETTERS = "abcdefghijklmnopqrstuvwxyz"
POSITIONS = 32


def neighbour(position):
    return position ^ 1


def follower(settings: TokenizerConfig, texts=tuple(LETTERS), beam=1) -> Translator:
    """A translator whose last layer attends from each target token to its neighbour among the source tokens: from the
    first to the second, from the second to the first, and so on. Other layers attend to one token.
    """
    config = ModelConfig(
        d_model=POSITIONS, d_ff=3, heads=1, encoder_layers=1, decoder_layers=2, tie="none", norm="none", dropout=0.0,
        positions="learned", max_positions=POSITIONS,
    )  # fmt: skip
    tokenizer = train_tokenizer(texts, settings)
    model: Any = EncoderDecoder(config, len(tokenizer), len(tokenizer)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for stack in (model.encoder, model.decoder):
            stack.positions.table.weight.copy_(torch.eye(POSITIONS))
        first, last = (block.cross_attention for block in model.decoder.blocks)
        first.k.weight[:, 3] = 9.0
        last.k.weight.copy_(torch.eye(POSITIONS))
        for attention in (first, last):
            attention.q.weight.copy_(40 * torch.eye(POSITIONS)[[neighbour(i) for i in range(POSITIONS)]])
    return Translator(model, TokenizerPair(tokenizer, tokenizer), DecodeConfig(beam=beam, batch_tokens=97))


@pytest.fixture(scope="module")
def translator() -> Translator:
    return follower(TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))


def texts(count: int, longest: int = 14) -> list[str]:
    chance = random.Random(count)
    return [" ".join(chance.choices(LETTERS, k=2 * chance.randint(1, longest // 2))) for _ in range(count)]


def test_each_word_is_linked_with_the_word_that_its_position_attends_to(translator):
    pairs = [(text, " ".join(random.Random(1).sample(text.split(), len(text.split())))) for text in texts(31)]
    for (source, _), alignment in zip(pairs, translator.align(pairs), strict=True):
        words = range(len(source.split()))
        assert alignment.pairs == tuple((neighbour(word), word) for word in sorted(words, key=neighbour))
        assert [source[begin:end] for begin, end in alignment.source_words] == source.split()


def test_links_are_spans_of_characters_and_lines_of_pharaoh(translator):
    alignment = translator.align(("a b", "d c"))
    assert alignment.links == (((0, 1), (2, 3)), ((2, 3), (0, 1)))
    assert str(alignment) == "0-1 1-0"


def test_an_alignment_depends_neither_on_the_batch_nor_on_the_order(translator):
    chance = random.Random(5)
    sources, targets = texts(47), [" ".join(chance.choices(LETTERS, k=chance.randint(1, 20))) for _ in range(47)]
    pairs = list(zip(sources, targets, strict=True))
    together = translator.align(iter(pairs))
    assert translator.align(pairs[::-1])[::-1] == together
    assert [translator.align(pair) for pair in pairs] == together


def test_tokens_of_a_word_are_aligned_together():
    translator = follower(TokenizerConfig(kind="bpe", vocab_size=300), ["ab cd", "ef gh"])
    tokenizer = translator.tokenizer
    source, target = "xy zw", "pq rs"
    assert len(tokenizer.encode(source)) == len(tokenizer.encode(target)) > 2
    assert str(translator.align((source, target))) == "0-0 1-1"


def test_blank_texts_have_no_links(translator):
    pairs = [("", "a b"), ("a b", ""), ("", ""), ("  ", "a"), ("a b", "c d")]
    alignments = translator.align(pairs)
    assert [str(alignment) for alignment in alignments] == ["", "", "", "", "0-1 1-0"]
    assert len(alignments[0].target_words) == 2


def test_words_that_the_model_does_not_read_have_no_links(translator):
    text = " ".join(LETTERS * 3)
    alignment = translator.align((text, text))
    sources, targets = ({words[side] for words in alignment.pairs} for side in (0, 1))
    assert len(alignment.source_words) == len(alignment.target_words) == len(text.split())
    assert sources == set(range(POSITIONS - 1))  # one position is that of <eos>
    assert POSITIONS - 2 <= len(targets) <= max(targets) + 1 <= POSITIONS


def test_each_chinese_character_is_a_word():
    translator = follower(TokenizerConfig(kind="word", byte_fallback=False), ["我 你 好 他"])
    alignment = translator.align(("我 你", "他好"))
    assert alignment.target_words == ((0, 1), (1, 2))


def test_a_text_that_is_no_pair_is_reported(translator):
    for bad in ("text", ["text"], [("a",)]):
        with pytest.raises(InputError, match="is not a pair"):
            translator.align(bad)


def test_engines_align_alike():
    texts = ["Where is the train station?", "", "The old woman has given the child a red apple."]
    torch_engine, engine = load("en-de"), load("en-de", engine="ctranslate2")
    pairs = list(zip(texts, torch_engine.translate(texts), strict=True))
    assert engine.align(pairs) == torch_engine.align(pairs)
    assert str(engine.align(pairs[0])) == "0-0 1-1 2-2 3-3 4-3 5-4"


@pytest.mark.parametrize("architecture", every_architecture.ENCODER_DECODERS)
def test_weights_are_those_that_the_inspector_records(architecture):
    translator = every_architecture.translator(architecture)
    model = translator.model.eval()
    source, target = "the old dog sees the station .", "two women read"
    if not attention_layers(model):
        with pytest.raises(InputError, match="the model has no cross-attention"):
            translator.align((source, target))
        return
    before = dict(model.named_modules())
    ids = torch.tensor([[*translator.tokenizers.source.encode(source), EOS]])
    written = torch.tensor([[BOS, *translator.tokenizers.target.encode(target)]])
    masks = torch.ones_like(ids, dtype=torch.bool), torch.ones_like(written, dtype=torch.bool)
    heads = range(sum(head_counts(model)))
    weights = head_weights(model, ids, masks[0], written, masks[1], heads)
    expected = cross_attention(translator, source, target).weights
    torch.testing.assert_close(weights[0], expected.flatten(0, 1), atol=1e-5, rtol=0)
    # A choice of heads is that choice of the weights, and the model is as before.
    last = head_weights(model, ids, masks[0], written, masks[1], heads[-1:])
    torch.testing.assert_close(last, weights[:, -1:])
    assert dict(model.named_modules()) == before
    assert not any(layer._forward_hooks for layer in attention_layers(model))
    # Its mean over the heads in the upper half, without <eos> on either side, gives the links.
    mean = expected.flatten(0, 1)[upper_heads(head_counts(model))].mean(0)[:-1, :-1].double().numpy()
    sides = Side.of(source, translator.tokenizers.source, 99), Side.of(target, translator.tokenizers.target, 99)
    links = links_of(by_word(mean, *sides))
    assert [set(each.pairs) for each in translator.align([(source, target)] * 2)] == [links] * 2


def test_other_threads_may_use_the_model_meanwhile(translator, monkeypatch):
    hidden = translator.model.hidden

    def busy(*inputs):
        other = Thread(target=translator.translate, args=("a b c d",))
        other.start()
        other.join()
        return hidden(*inputs)

    expected = translator.align(("a b", "c d"))
    monkeypatch.setattr(translator.model, "hidden", busy)
    assert translator.align(("a b", "c d")) == expected


def test_an_ensemble_aligns_as_its_first_model(translator):
    pairs = [(text, text) for text in texts(3)]
    other = EncoderDecoder(ModelConfig(d_model=8, d_ff=8, heads=2), *translator.tokenizers.sizes)
    together = Translator(ensemble([translator.model, other]), translator.tokenizers, translator.config)
    assert together.align(pairs) == translator.align(pairs)


@pytest.mark.parametrize(("counts", "expected"), [([2], [0, 1]), ([2, 2], [2, 3]), ([1, 1, 1], [1, 2]), ([], [])])
def test_the_upper_half_of_the_layers_aligns(counts, expected):
    assert list(upper_heads(counts)) == expected


MATRICES = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 9).map(float))
)


def plain_links(weights):
    """The links of the docstrings, in loops."""
    rows, columns = weights.shape
    table = [[float(x) for x in row] for row in weights]
    totals = [sum(row[column] for row in table) for column in range(columns)]
    table = [[x / total if total else 0.0 for x, total in zip(row, totals, strict=True)] for row in table]
    table = [[x / sum(row) if sum(row) else 0.0 for x in row] for row in table]
    forward = {(max(range(columns), key=row.__getitem__), number) for number, row in enumerate(table) if any(row)}
    backward = {
        (column, max(range(rows), key=lambda row: table[row][column]))
        for column in range(columns)
        if any(row[column] for row in table)
    }
    return forward, backward


@given(MATRICES)
def test_links_are_those_of_plain_loops(weights):
    forward, backward = plain_links(weights)
    links = links_of(weights)
    assert links == symmetrised(forward, backward)
    assert forward & backward <= links <= forward | backward


@given(MATRICES, st.integers(0, 5), st.floats(0.1, 9.0))
def test_a_source_word_that_all_attend_to_changes_no_link(weights, column, factor):
    scaled = weights.copy()
    scaled[:, column % weights.shape[1]] *= 2.0 ** round(factor)  # a power of two is exact
    assert links_of(scaled) == links_of(weights)


@pytest.mark.parametrize(
    ("forward", "backward", "links"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1)}),
        ({(0, 0), (0, 1), (0, 2)}, {(0, 0)}, {(0, 0), (0, 1), (0, 2)}),  # grows from (0, 0) to (0, 1) to (0, 2)
        ({(0, 0), (0, 2)}, {(0, 0)}, {(0, 0)}),  # (0, 2) is not adjacent
        ({(0, 0), (1, 1), (0, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1)}),  # both words have links
        ({(0, 0), (3, 3)}, {(0, 0), (3, 5)}, {(0, 0), (3, 3)}),  # words without any link
    ],
)
def test_links_grow_from_those_of_both_directions(forward, backward, links):
    assert symmetrised(forward, backward) == symmetrised(backward, forward) == links


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tom's “well-known” (12.30) cup!", ["Tom's", "“", "well-known", "”", "(", "12.30", ")", "cup", "!"]),
        ("the mothers' bottle", ["the", "mothers'", "bottle"]),
        ("我喜欢 Python，你呢？", ["我", "喜", "欢", "Python", "，", "你", "呢", "？"]),
        ("", []),
    ],
)
def test_words_are_separated_from_punctuation_at_their_ends(text, words):
    assert [text[begin:end] for begin, end in word_spans(text)] == words


@given(st.text())
def test_words_cover_all_but_spaces(text):
    spans = word_spans(text)
    assert "".join(text[begin:end] for begin, end in spans) == "".join(text.split())
    assert all(begin < end for begin, end in spans)
    assert spans == sorted(spans)
