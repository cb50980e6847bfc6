"""Tokenizers written for SentencePiece encode and decode there as here."""

from dataclasses import replace

import pytest

from heedful.config.schema import TokenizerConfig
from heedful.convert.sentencepiece_export import sentencepiece_misfits, sentencepiece_model
from heedful.text.training import train_tokenizer

sentencepiece = pytest.importorskip("sentencepiece")

LINES = [
    "The cat's 3 kittens aren't here, are they?",
    "Größe: 1.75m (etwa)…",
    "天气很好，我们去公园。",
    "abcabc cabcab bca",
] * 4
TEXTS = [
    *LINES[:4],
    "",
    "  two  spaces ",
    "a tab\tand\r\nlines\n",
    "unseen: 日本語 🙂🙂 é e\u0301 \u00a0\u3000",
    "ÄÖÜ İẞ ΑΣ",
    "don't<<unk>> 3rd2nd ...x",
    "aaaaaaabbbabcabcabcccc" * 20,
]
SETTINGS = [
    {"kind": "bpe"},
    {"kind": "bpe", "pretokenized": True},
    {"kind": "bpe", "lowercase": True, "mask": True},
    {"kind": "unigram"},
    {"kind": "unigram", "pretokenized": True, "lowercase": True},
    {"kind": "character"},
    {"kind": "byte"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: " ".join(map(str, settings.values())))
def test_ids_pieces_and_decoded_texts_are_equal(settings):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(vocab_size=420, **settings))
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer).SerializeToString())
    assert len(processor) == len(tokenizer)
    for text, theirs in zip(TEXTS, processor.encode(TEXTS), strict=True):
        ours = tokenizer.encode(text)
        assert theirs == ours
        assert processor.decode(ours) == tokenizer.decode(ours)
    visible = [i for i in range(len(tokenizer)) if tokenizer.texts([i])[0].isprintable()]
    assert processor.id_to_piece(visible) == tokenizer.pieces(visible)


def test_special_tokens_are_control_symbols():
    tokenizer = train_tokenizer(LINES, TokenizerConfig(vocab_size=420, mask=True))
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer).SerializeToString())
    assert (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()) == (0, 1, 2, 3)
    assert [processor.is_control(i) for i in range(6)] == [True, False, True, True, True, False]
    assert processor.decode([2, *tokenizer.encode("a cat"), 1, 3]) == "a cat<unk>"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"kind": "word"}, 'tokenizer.kind = "word": must be one of "bpe", "unigram", "character", "byte"'),
        ({"kind": "wordpiece"}, 'tokenizer.kind = "wordpiece": must be one of'),
        ({"normalization": "nfkc"}, 'tokenizer.normalization = "nfkc": must be "none"'),
        ({"byte_fallback": False}, "tokenizer.byte_fallback = false: must be true"),
    ],
)
def test_what_sentencepiece_cannot_express_is_refused_by_name(settings, problem):
    tokenizer = train_tokenizer(LINES, replace(TokenizerConfig(vocab_size=420), **settings))
    assert any(misfit.startswith(problem) for misfit in sentencepiece_misfits(tokenizer))


def test_a_vocabulary_with_the_mark_of_a_space_is_refused():
    tokenizer = train_tokenizer(["▁The ▁cat"] * 4, TokenizerConfig(vocab_size=420))
    [misfit] = sentencepiece_misfits(tokenizer)
    assert misfit.endswith("must be trained on text without it")
