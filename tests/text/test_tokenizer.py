from functools import cache
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.pipeline import first_space, normalizer, splitter
from heedful.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from heedful.text.training import train_tokenizer, word_tokenizer

KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")
RESERVED = ["<pad>", "<unk>", "<bos>", "<eos>", "<0x41>", "<0xE2>", "<unused7>"]
LINES = [
    "The cat sits on the mat, and the other cat sat there.",
    "Zwei Frauen essen Äpfel im Garten; die Äpfel schmecken süß.",
    "我吃苹果。他也吃苹果，苹果很好吃。",
    "A man in 2024: it's 12.5 km to the next café!",
    " ".join(f"{name} x{name}y {name}{name}" for name in RESERVED),
] * 5
SEED_TABLE = {"<pad>": 0, "<unk>": 1, "Eat": 345, "an": 128, "apple": 672, "I": 42}
PLAIN_WORDS = TokenizerConfig(kind="word", byte_fallback=False)

texts = st.text() | st.text(alphabet="at ▁ÄS苹果\u0301<>0x41eos\t\n", max_size=23) | st.sampled_from(RESERVED)


@cache
def trained(kind: str, pretokenized: bool = False, **settings: object) -> Tokenizer:
    config = {"vocab_size": 409, "pretokenized": pretokenized, **settings}
    return train_tokenizer(LINES, TokenizerConfig(kind=kind, **config))


every_kind = pytest.mark.parametrize(("kind", "pretokenized"), [(k, p) for k in KINDS for p in (False, True)])


@every_kind
@given(text=texts)
def test_any_text_survives_encoding(kind, pretokenized, text):
    tokenizer = trained(kind, pretokenized)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@every_kind
@given(text=texts)
def test_a_text_that_goes_on_is_spelled_without_a_space_of_its_own(kind, pretokenized, text):
    tokenizer = trained(kind, pretokenized)
    assert tokenizer.spell(tokenizer.encode_continuation(text)).decode() == text


@every_kind
@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_typed_as_text_are_text(kind, pretokenized, name):
    tokenizer = trained(kind, pretokenized)
    for frame in ("{}", " {} ", "x{}y", "<{}>", "{0}{0}", "the {} cat", "<{}"):
        text = frame.format(name)
        ids = tokenizer.encode(text)
        assert min(ids) > EOS
        assert len(ids) > 1
        assert tokenizer.decode(ids) == text


@every_kind
def test_without_byte_fallback_the_unknown_is_unknown(kind, pretokenized):
    if kind == "byte":
        pytest.skip("bytes are never unknown")
    tokenizer = trained(kind, pretokenized, byte_fallback=False)
    assert UNK not in tokenizer.encode(LINES[0])
    assert tokenizer.decode(tokenizer.encode(LINES[0])) == LINES[0]
    assert tokenizer.encode("cat ☃").count(UNK) == 1
    assert tokenizer.decode(tokenizer.encode("cat ☃")) == "cat <unk>"
    assert all(UNK not in tokenizer.encode(name) or kind in ("word", "wordpiece") for name in RESERVED[:4])
    assert not set(tokenizer.encode(" ".join(RESERVED))) & {PAD, BOS, EOS}


@pytest.mark.parametrize("kind", ["character", "byte", "bpe", "unigram"])
@pytest.mark.parametrize("pretokenized", [False, True])
def test_the_library_alone_reads_the_saved_file_alike(kind, pretokenized, tmp_path):
    tokenizer = trained(kind, pretokenized, normalization="nfkc", lowercase=True)
    tokenizer.save(tmp_path)
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*LINES, " ☃  two ", "ﬁnal Ⅳ", ""]:
        assert library.encode(text).ids == tokenizer.encode(text)
        assert library.decode(tokenizer.encode(text), skip_special_tokens=False) == tokenizer.decode(
            tokenizer.encode(text)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_encodes_as_its_lines_do(kind):
    tokenizer = trained(kind)
    lines = [f"{line} {number} ☃" for number, line in enumerate(LINES * 43)] + [""]
    assert len(lines) > 1024
    assert tokenizer.encode_batch(lines) == [tokenizer.encode(line) for line in lines]


def test_a_stream_is_encoded_while_it_comes():
    def endless():
        while True:
            yield "the cat"

    assert next(trained("bpe").encode_lines(endless())) == trained("bpe").encode("the cat")


@pytest.mark.parametrize("kind", KINDS)
def test_lone_surrogates_are_refused_by_name(kind):
    tokenizer = trained(kind)
    for use in (
        tokenizer.encode,
        lambda text: tokenizer.encode_batch(["fine", text]),
        lambda text: train_tokenizer([text], tokenizer.config),
    ):
        with pytest.raises(InputError, match=r"character 4 of the text is a lone surrogate \(U\+DC80\)"):
            use("abc\udc80")


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts_of_any_sort_pass(kind):
    tokenizer = trained(kind)
    for unit in ("a", "<", " ", "苹", "\0", "👨‍👩‍👧", "e\u0301"):
        text = unit * (20_000 // len(unit))
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_table_of_the_source_documents_gives_its_ids():
    tokenizer = word_tokenizer(SEED_TABLE, PLAIN_WORDS)
    assert tokenizer.encode("Eat an apple") == [345, 128, 672]
    assert tokenizer.decode([345, 128, 672, EOS, PAD, PAD]) == "Eat an apple"
    assert tokenizer.encode("ApplePie") == [UNK]
    assert len(tokenizer) == 673
    assert set(tokenizer.encode("<unused7> <eos>")) == {UNK}
    assert tokenizer.decode(tokenizer.encode("I EAT an apple")) == "I <unk> an apple"


def test_i_love_you_has_the_ids_of_the_source_documents():
    tokenizer = word_tokenizer({"I": 101, "love": 245, "you": 389}, PLAIN_WORDS)
    assert tokenizer.encode("I love you") == [101, 245, 389]


@pytest.mark.parametrize(
    ("table", "config", "message"),
    [
        ({"a": 5, "b": 5}, PLAIN_WORDS, "the id 5 of 'b' is taken"),
        ({"a": 3}, PLAIN_WORDS, "the id 3 of 'a' is taken; give each word its own id, 4 or above"),
        ({"a": -1}, PLAIN_WORDS, "the id -1 of 'a' is taken"),
        ({"an": 128}, TokenizerConfig(kind="word"), "give each word its own id, 260 or above"),
        ({"a": 5}, TokenizerConfig(), 'kind "word", not "bpe"'),
    ],
)
def test_a_table_that_cannot_be_is_refused(table, config, message):
    with pytest.raises(InputError, match=message):
        word_tokenizer(table, config)


def test_words_end_at_spaces():
    sentence = "I bought the book that he read yesterday"
    tokenizer = train_tokenizer([sentence], PLAIN_WORDS)
    ids = tokenizer.encode(sentence)
    assert len(set(ids)) == 8
    assert tokenizer.pieces(ids) == [f"▁{word}" for word in sentence.split()]


@pytest.mark.parametrize(
    ("text", "raw", "pretokenized"),
    [
        ("Don't pay 12.50", ["▁Don", "'", "t", "▁pay", "▁12", ".", "50"], ["▁Don't", "▁pay", "▁12.50"]),
        ("我吃 苹果x", ["▁我", "吃", "▁苹", "果", "x"], ["▁我吃", "▁苹果x"]),
        ("a  (b", ["▁a", "▁", "▁(", "b"], ["▁a", "▁", "▁(b"]),
        ("हिन्दी e\u0301a", ["▁हिन्दी", "▁e\u0301a"], ["▁हिन्दी", "▁e\u0301a"]),
        ("a\tb\u00a0c", ["▁a", "\\t", "b", "\\xa0", "c"], ["▁a\\tb\\xa0c"]),
    ],
)
def test_raw_text_is_cut_between_letters_digits_and_the_rest(text, raw, pretokenized):
    for config, words in (
        (PLAIN_WORDS, raw),
        (TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True), pretokenized),
    ):
        tokenizer = train_tokenizer([text], config)
        assert tokenizer.pieces(tokenizer.encode(text)) == words


def test_words_of_subword_kinds_may_be_runs_of_han_characters():
    cut = splitter(TokenizerConfig()).pre_tokenize_str(" 我吃 苹果x, हिन्दी 5é")
    assert [word for word, _ in cut] == [" 我吃", " 苹果x", ",", " हिन्दी", " 5", "é"]


@pytest.mark.parametrize("kind", ["word", "wordpiece"])
def test_an_unknown_word_leaves_the_others_alone(kind):
    tokenizer = trained(kind)
    known = tokenizer.encode("The cat sits")
    assert len(known) < len("The cat sits") / 2
    assert tokenizer.encode("The cat sits ☃ The cat sits") == known + tokenizer.encode(" ☃")[-4:] + known


def test_characters_give_one_id_each():
    tokenizer = trained("character")
    assert tokenizer.pieces(tokenizer.encode("a cat")) == ["a", "▁", "c", "a", "t"]
    assert len(train_tokenizer(["Eat"], tokenizer.config).encode("Eat")) == 3
    assert tokenizer.pieces(tokenizer.encode("☃")) == ["<0xE2>", "<0x98>", "<0x83>"]


def test_bytes_give_one_id_each():
    tokenizer = train_tokenizer([], TokenizerConfig(kind="byte", vocab_size=260))
    assert len(tokenizer) == 260
    assert tokenizer.encode("a ☃") == [4 + byte for byte in "a ☃".encode()]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_a_compound_is_spelled_by_its_parts(kind):
    lines = ["Apple tart", "Apple juice", "Apple jam", "CherryPie", "PeachPie", "PlumPie", "PearPie"]
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind=kind, vocab_size=41, byte_fallback=False))
    assert tokenizer.pieces(tokenizer.encode("ApplePie")) == ["▁Apple", "Pie"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_chinese_words_are_found_in_a_run_of_characters(kind):
    lines = ["我吃苹果", "他吃苹果", "我有苹果", "苹果好", "红苹果"]
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind=kind, vocab_size=17, byte_fallback=False))
    assert tokenizer.pieces(tokenizer.encode("他有苹果")) == ["▁", "他", "有", "苹果"]


@pytest.mark.parametrize("kind", KINDS)
def test_normal_form_and_lower_case_are_part_of_the_tokenizer(kind, tmp_path):
    trained(kind, normalization="nfkc", lowercase=True).save(tmp_path)
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.encode("ﬁne CAFE\u0301") == tokenizer.encode("fine café")
    assert tokenizer.decode(tokenizer.encode("ﬁne CAFE\u0301")) == "fine café"
    composed = trained(kind, normalization="nfc")
    assert composed.decode(composed.encode("ﬁne CAFE\u0301")) == "ﬁne CAFÉ"


def test_special_tokens_are_skipped_and_broken_bytes_are_shown():
    tokenizer = trained("bpe")
    cat = tokenizer.encode("cat")
    snowman = tokenizer.encode("☃")[-3:]
    assert tokenizer.decode([BOS, *cat, EOS, PAD]) == "cat"
    assert tokenizer.decode(np.array(cat)) == "cat"
    assert tokenizer.decode([*cat, *snowman[:2], *cat]) == "cat\ufffd cat"
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("ids", [[-1], [409], [7, 10**9]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    for use in (trained("bpe").decode, trained("bpe").pieces, trained("bpe").word_of_piece):
        with pytest.raises(InputError, match=f"id {ids[-1]} is not in the vocabulary, whose ids go from 0 to 408"):
            use(ids)


def test_pieces_can_be_printed():
    tokenizer = train_tokenizer(["a\n\u202eb \u0007"], TokenizerConfig(kind="character", vocab_size=307))
    assert tokenizer.pieces(tokenizer.encode("a\n\u202e \u0007")) == ["a", "\\n", "\\u202e", "▁", "\\x07"]
    assert tokenizer.pieces([PAD, UNK, BOS, EOS, 4]) == ["<pad>", "<unk>", "<bos>", "<eos>", "<0x00>"]


@every_kind
@given(text=st.text(alphabet="at, ☃Ä苹果sit1.", max_size=31))
def test_the_pieces_of_a_word_spell_the_word(kind, pretokenized, text):
    tokenizer = trained(kind, pretokenized)
    ids = tokenizer.encode(text)
    numbers = tokenizer.word_of_piece(ids)
    pairs = groupby(zip(numbers, ids, strict=True), key=itemgetter(0))
    spelled = [tokenizer.decode([i for _, i in pieces]) for _, pieces in pairs]
    normal = normalizer(tokenizer.config).normalize_str(text)
    words = [word for word, _ in splitter(tokenizer.config).pre_tokenize_str(normal)]
    assert spelled == [word.removeprefix(first_space(tokenizer.config)) for word in words]
    assert sorted(set(numbers)) == list(range(len(words)))


def test_pieces_know_their_word():
    tokenizer = trained("bpe", byte_fallback=True)
    text = "The café, ☃☃ sits"
    words = tokenizer.word_of_piece([BOS, *tokenizer.encode(text), EOS, PAD])
    assert words[0] == 0
    assert words[-2:] == [words[-3] + 1, words[-3] + 2]
    assert words[-3] == 5


def test_a_special_token_parts_words():
    tokenizer = trained("bpe")
    [cat], [_, s] = tokenizer.encode("cat"), tokenizer.encode(";s")[-2:]
    assert tokenizer.word_of_piece([cat, s, EOS, s, s]) == [0, 0, 1, 2, 2]


def test_broken_bytes_do_not_shift_the_words():
    tokenizer = trained("bpe")
    cat, snowman = tokenizer.encode("cat"), tokenizer.encode("☃")
    assert len(cat) == 1
    assert tokenizer.word_of_piece([*snowman[:-1], *cat, *cat]) == [0] * (len(snowman) - 1) + [1, 2]
