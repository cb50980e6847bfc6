"""Tokenizers taken over give the ids that `transformers` gives, up to the permutation."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreign_folders import MARIAN_SCORES, TEXTS, marian_pieces, write_bert, write_gpt2, write_marian, write_unigram
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.hugging_face import from_hugging_face, from_words, pair_from_hugging_face
from heedful.text.pipeline import BOS, EOS, MASK, PAD, UNK
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

BERT = {
    "uncased": {"do_lower_case": True},
    "cased": {"do_lower_case": False},
    "accents": {"do_lower_case": True, "strip_accents": False},
    "chinese": {"do_lower_case": False, "tokenize_chinese_chars": False},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("foreign")
    made = {name: write_bert(base / name, **settings) for name, settings in BERT.items()}
    made |= {"gpt2": write_gpt2(base / "gpt2"), "unigram": write_unigram(base / "unigram")}
    for name in ("uncased", "gpt2"):  # the same in a tokenizer.json
        transformers.AutoTokenizer.from_pretrained(made[name]).save_pretrained(base / f"{name}-json")
        made[f"{name}-json"] = base / f"{name}-json"
    return made | {"marian": write_marian(base / "marian")}


HUGGING_FACE = (*BERT, "gpt2", "unigram", "uncased-json", "gpt2-json")
every_format = pytest.mark.parametrize("name", HUGGING_FACE)


@every_format
def test_ids_are_those_of_transformers(folders, name):
    theirs = transformers.AutoTokenizer.from_pretrained(folders[name])
    ours, old_id_of = from_hugging_face(folders[name])
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=False, truncation=False)
        assert old_id_of[ours.encode(text)].tolist() == expected
    assert sum(len(ours.encode(text)) for text in TEXTS) > 73


@every_format
def test_texts_decode_as_in_transformers(folders, name):
    theirs = transformers.AutoTokenizer.from_pretrained(folders[name])
    ours, old_id_of = from_hugging_face(folders[name])
    for text in TEXTS:
        ids = [i for i in ours.encode(text) if i != UNK]
        expected = theirs.decode(old_id_of[ids], clean_up_tokenization_spaces=False)
        assert ours.decode([BOS, *ids, EOS, PAD]) == expected


@every_format
def test_every_old_id_is_there_once_and_in_its_order(folders, name):
    theirs = transformers.AutoTokenizer.from_pretrained(folders[name])
    ours, old_id_of = from_hugging_face(folders[name])
    rest = old_id_of[ours.first_piece :]
    assert len(ours) == len(old_id_of) == ours.config.vocab_size
    assert np.all(np.diff(rest) > 0)
    assert set(old_id_of) - {-1} == set(theirs.get_vocab().values())


def test_special_tokens_come_first(folders):
    def head(name):
        ours, old_id_of = from_hugging_face(folders[name])
        vocabulary = json.loads((folders[name] / "vocab.json").read_text()) if name in ("gpt2", "marian") else {}
        return ours.first_piece, old_id_of[: ours.first_piece].tolist(), vocabulary

    assert head("uncased")[:2] == head("uncased-json")[:2] == (5, [0, 2, 3, 4, 5])
    names = transformers.AutoTokenizer.from_pretrained(folders["unigram"]).get_vocab()
    assert head("unigram")[:2] == (5, [1, 3, 0, 2, names["<mask>"]])
    count, ids, vocabulary = head("gpt2")
    assert (count, ids) == (4, [-1, -1, vocabulary["<|endoftext|>"], vocabulary["<|endoftext|>"]])
    assert head("gpt2-json")[:2] == (count, ids)
    count, ids, vocabulary = head("marian")
    assert (count, ids) == (4, [vocabulary["<pad>"], 1, vocabulary["<pad>"], 0])


def test_a_decoder_begins_with_the_token_that_the_model_names(folders, tmp_path):
    folder = write_marian(tmp_path / "marian")
    (folder / "config.json").write_text('{"decoder_start_token_id": 0}')
    assert from_hugging_face(folder)[1][BOS] == 0
    (folder / "generation_config.json").write_text('{"decoder_start_token_id": 7}')
    tokenizer, old_id_of = from_hugging_face(folder)
    assert np.flatnonzero(old_id_of == 7).tolist()[0] == BOS
    assert tokenizer.pieces([np.flatnonzero(old_id_of == 7)[1]]) == [marian_pieces()[7]]


def test_a_beginning_of_sentence_that_no_decoder_begins_with_is_a_piece(tmp_path):
    folder = write_marian(tmp_path / "marian")
    names = [*marian_pieces(), "<s>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    assert from_hugging_face(folder)[1][BOS] == names.index("<s>")
    (folder / "config.json").write_text(json.dumps({"decoder_start_token_id": names.index("<pad>")}))
    old_id_of = from_hugging_face(folder)[1]
    assert old_id_of[[PAD, BOS]].tolist() == [names.index("<pad>")] * 2
    assert sorted(set(old_id_of)) == list(range(len(names)))


@every_format
def test_special_tokens_typed_as_text_are_text(folders, name):
    ours, _ = from_hugging_face(folders[name])
    for text in ("<pad>", "<unk>x<mask>", "[MASK]", "a <bos>", "<eos>", "<|endoftext|>", "</s>", "[CLS]"):
        assert not set(ours.encode(text)) & {PAD, BOS, EOS, MASK} - ({MASK} if ours.first_piece == MASK else set())


@every_format
def test_names_of_our_special_tokens_are_cut_like_other_text(folders, name):
    theirs = transformers.AutoTokenizer.from_pretrained(folders[name])
    ours, old_id_of = from_hugging_face(folders[name])
    for text in ("<bos>", "a <eos>", "cat<bos><eos> mat"):
        assert old_id_of[ours.encode(text)].tolist() == theirs.encode(text, add_special_tokens=False)


def test_other_added_tokens_are_still_found(folders):
    theirs = transformers.AutoTokenizer.from_pretrained(folders["unigram"])
    ours, old_id_of = from_hugging_face(folders["unigram"])
    assert theirs.get_vocab()["<speaker>"] in old_id_of[ours.encode("the <speaker> sat")]


@every_format
def test_a_loaded_tokenizer_is_the_saved_one(folders, name, tmp_path):
    ours, _ = from_hugging_face(folders[name])
    ours.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.config, loaded.digest, len(loaded)) == (ours.config, ours.digest, len(ours))
    assert loaded.encode_batch(TEXTS) == [ours.encode(text) for text in TEXTS]
    assert [loaded.decode(loaded.encode(text)) for text in TEXTS] == [ours.decode(ours.encode(text)) for text in TEXTS]


@given(text=st.text())
def test_byte_level_pieces_are_lossless(folders, text):
    ours, _ = from_hugging_face(folders["gpt2"])
    assert ours.decode(ours.encode(text)) == text
    assert all(piece.isprintable() for piece in ours.pieces(ours.encode(text)))


def test_a_text_that_goes_on_begins_as_it_is_written(folders):
    gpt2, _ = from_hugging_face(folders["gpt2"])
    for text in (" cat sat", "s sat", "."):
        assert gpt2.decode(gpt2.encode_continuation(text)) == text
    bert, _ = from_hugging_face(folders["uncased"])
    assert bert.encode_continuation(" the cat") == bert.encode("the cat")


def test_pieces_show_what_they_spell(folders):
    def pieces(name, text):
        ours, _ = from_hugging_face(folders[name])
        return ours.pieces([*ours.encode(text), EOS])

    assert pieces("gpt2", "cat cat\t☃") == ["c", "at", "▁cat", "\\t", "<0xE2>", "<0x98>", "<0x83>", "<eos>"]
    assert "".join(pieces("uncased", "played it")) == "▁played▁it<eos>"
    assert "".join(pieces("unigram", "cat sat")) == "▁cat▁sat<eos>"


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_the_pieces_of_a_word_have_its_number(folders, name):
    ours, _ = from_hugging_face(folders[name])
    ids = ours.encode("The players played in the cat mat")
    numbers = ours.word_of_piece([BOS, *ids, EOS])
    assert (numbers[0], numbers[-1]) == (0, 8)
    words = [ours.decode([i for i, n in zip([BOS, *ids], numbers, strict=False) if n == word]) for word in range(1, 8)]
    assert [word.strip().lower() for word in words] == ["the", "players", "played", "in", "the", "cat", "mat"]
    assert len(ids) >= 7


def test_punctuation_is_a_word_of_its_own(folders):
    for name in ("uncased", "gpt2"):
        ours, _ = from_hugging_face(folders[name])
        ids = ours.encode("the mat, the mat!")
        numbers = ours.word_of_piece(ids)
        assert numbers[-1] == 5
        assert ours.decode([i for i, n in zip(ids, numbers, strict=True) if n == 2]) == ","


def test_marian_has_one_vocabulary_and_two_ways_to_cut(folders):
    pair, old_id_of = pair_from_hugging_face(folders["marian"])
    assert not pair.joint
    assert pair.source.pieces(range(len(old_id_of))) == pair.target.pieces(range(len(old_id_of)))
    assert pair.source.pieces(pair.source.encode(" the  cats sit ")) == ["▁the", "▁cat", "s", "▁s", "it"]
    assert pair.target.pieces(pair.target.encode("die Äe")) == ["▁die", "▁", "Ä", "e"]
    assert pair.source.encode("the☃☃ cat").count(UNK) == 1
    assert pair.source.decode(pair.source.encode("the cats sit")) == "the cats sit"
    names = json.loads((folders["marian"] / "vocab.json").read_text())
    assert old_id_of[pair.source.encode(">>de<< the")].tolist() == [names[">>de<<"], names["▁the"]]
    assert set(MARIAN_SCORES) < set(pair.source.pieces(range(len(old_id_of))))


def test_other_folders_give_one_tokenizer_for_both_sides(folders):
    assert pair_from_hugging_face(folders["gpt2"])[0].joint


def test_words_in_a_list_keep_their_rows():
    tokenizer, old_id_of = from_words(["<blank>", "<s>", "</s>", "b", "a", "b", "é"], 8)
    assert old_id_of.tolist() == [0, 7, 1, 2, 3, 4, 6]
    assert old_id_of[tokenizer.encode("a b ☃ é")].tolist() == [4, 3, 7, 6]
    assert from_words(["<unk>", "a"], 5)[1].tolist() == [-1, 0, -1, -1, 1]
    with pytest.raises(InputError, match="2 words do not match the 1 rows"):
        from_words(["a", "b"], 1)


def test_a_foreign_tokenizer_is_not_trained():
    with pytest.raises(InputError, match=r"converted, not trained; set tokenizer\.path to its folder"):
        train_tokenizer(["the cat"], TokenizerConfig(kind="foreign"))


def change(key, value):
    return lambda content: json.dumps(json.loads(content) | {key: value})


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: content[:-9], "not JSON"),
        (lambda _: "[]", "not a JSON object"),
        (lambda _: "{}", "damaged, or not a tokenizer"),
        (change("model", {"type": "Unigram", "vocab": 7}), "damaged, or not a tokenizer"),
        (change("model", {"type": "BPE", "vocab": {"a": "b"}}), "damaged, or not a tokenizer|cannot read it"),
        (change("model", {"type": "Dictionary", "vocab": {}}), "of type 'Dictionary' cannot be imported"),
        (change("decoder", {"type": "CTC", "pad_token": "x", "word_delimiter_token": "y", "cleanup": True}), '"CTC"'),
        (change("decoder", None), '"none" cannot be imported'),
        (change("normalizer", {"type": "Unheard"}), "has a step of the unknown type 'Unheard'"),
    ],
)
def test_a_damaged_definition_is_named(folders, tmp_path, edit, message):
    content = (folders["unigram"] / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(edit(content))
    with pytest.raises(InputError, match=message) as caught:
        from_hugging_face(tmp_path)
    assert str(tmp_path) in str(caught.value) or "cannot be imported" in str(caught.value)


def test_a_second_piece_with_a_reserved_name_is_refused(tmp_path):
    folder = write_bert(tmp_path / "bert")
    with (folder / "vocab.txt").open("a") as file:
        file.write("<eos>\n")
    with pytest.raises(InputError, match=r"has a piece with the reserved name '<eos>', which is not one"):
        from_hugging_face(folder)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"copy one of these there: tokenizer\.json; vocab\.json with source\.spm"):
        from_hugging_face(tmp_path)
