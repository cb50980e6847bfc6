"""What is written for `transformers` gives our ids there."""

import pytest

from foreign_folders import LINES, TEXTS, write_bert, write_gpt2, write_marian, write_unigram
from heedful.architectures import MaskedLanguageModel
from heedful.config.schema import ModelConfig, TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.predictors.filler import Filler
from heedful.text.hugging_face import from_hugging_face, to_hugging_face
from heedful.text.pipeline import BOS, EOS, MASK, PAD, UNK
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

KINDS = [(kind, fallback) for kind in ("word", "character", "bpe", "unigram") for fallback in (True, False)]
FOREIGN = {"bert": write_bert, "gpt2": write_gpt2, "unigram": write_unigram, "marian": write_marian}


def trained(kind, byte_fallback=True, **settings):
    return train_tokenizer(LINES, TokenizerConfig(kind=kind, vocab_size=401, byte_fallback=byte_fallback, **settings))


def given_back(tokenizer, folder, family="decoder"):
    to_hugging_face(tokenizer, folder, family)
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(("kind", "fallback"), [*KINDS, ("byte", True), ("wordpiece", False)])
def test_every_kind_gives_its_ids_in_transformers(kind, fallback, tmp_path):
    ours = trained(kind, fallback, lowercase=kind == "bpe", mask=kind == "unigram")
    theirs = given_back(ours, tmp_path)
    for text in TEXTS:
        ids = ours.encode(text)
        assert theirs.encode(text) == ids
        assert theirs.decode([BOS, *ids, EOS], skip_special_tokens=True) == ours.decode(ids).replace("<unk>", "") or (
            not fallback
        )
    assert sum(len(ours.encode(text)) for text in TEXTS) > 59


@pytest.mark.parametrize("name", FOREIGN)
def test_what_was_taken_over_comes_back_as_it_is(name, tmp_path):
    ours, _ = from_hugging_face(FOREIGN[name](tmp_path / "theirs"))
    theirs = given_back(ours, tmp_path / "ours", "encoder")
    for text in TEXTS:
        assert theirs.encode(text, add_special_tokens=False) == ours.encode(text)
    again, old_id_of = from_hugging_face(tmp_path / "ours")
    assert old_id_of.tolist() == list(range(len(ours)))
    assert again.digest == ours.digest


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_our_own_can_be_taken_over_too(kind, tmp_path):
    ours = trained(kind)
    to_hugging_face(ours, tmp_path, "decoder")
    again, old_id_of = from_hugging_face(tmp_path)
    assert old_id_of.tolist() == list(range(len(ours)))
    for text in TEXTS:
        assert again.encode(text) == ours.encode(text)
        assert again.decode(again.encode(text)) == text
        assert again.word_of_piece(ours.encode(text)) == ours.word_of_piece(ours.encode(text))


def test_each_family_has_its_frame(tmp_path):
    ours = trained("bpe", mask=True)
    a, b = ours.encode("the cat"), ours.encode("the mat")
    encoder, pair, decoder = (
        given_back(ours, tmp_path / family, family) for family in ("encoder", "encoder_decoder", "decoder")
    )
    both = encoder("the cat", "the mat")
    assert both["input_ids"] == [BOS, *a, EOS, *b, EOS]
    assert both["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    assert encoder("the cat")["input_ids"] == [BOS, *a, EOS]
    assert (encoder.cls_token_id, encoder.sep_token_id, encoder.mask_token_id) == (BOS, EOS, MASK)
    assert pair("the cat")["input_ids"] == [*a, EOS]
    assert decoder("the cat")["input_ids"] == a
    assert (decoder.pad_token_id, decoder.unk_token_id, decoder.bos_token_id, decoder.eos_token_id) == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "wordpiece", "bert", "unigram"])
def test_a_gap_in_a_text_is_the_mask_of_an_encoder(kind, tmp_path):
    own = FOREIGN.get(kind)
    ours = from_hugging_face(own(tmp_path / "theirs"))[0] if own else trained(kind, kind != "wordpiece", mask=True)
    theirs = given_back(ours, tmp_path / "ours", "encoder")
    assert (theirs.mask_token, theirs.mask_token_id, theirs.cls_token) == ("[MASK]", MASK, "[CLS]")
    filler = Filler(MaskedLanguageModel(ModelConfig(family="encoder"), len(ours), pairs=False), ours, 97)
    for text in ("The cat [MASK] on the mat.", "[MASK] cat sits", "the cat sat on the [MASK].", "[MASK] [MASK] plays"):
        assert theirs.encode(text) == filler.encode(text)


def test_a_vocabulary_with_a_piece_of_such_a_name_keeps_its_own_names(tmp_path):
    config = TokenizerConfig(kind="bpe", vocab_size=401, mask=True, pretokenized=True)
    ours = train_tokenizer(["ax[MASK] ay[MASK] bz[MASK]"] * 5, config)
    assert "[MASK]" in ours.pieces(range(len(ours)))
    theirs = given_back(ours, tmp_path, "encoder")
    assert (theirs.mask_token, theirs.mask_token_id) == ("<mask>", MASK)
    assert theirs.encode("ax[MASK]") == [BOS, *ours.encode("ax[MASK]"), EOS]


def test_special_tokens_can_be_left_out(tmp_path):
    ours, _ = from_hugging_face(write_gpt2(tmp_path / "theirs"))
    to_hugging_face(ours, tmp_path / "ours", "decoder", absent=(PAD, UNK, BOS))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token) == (0, 0, None)
    original = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    two = "cat<|endoftext|>The"
    assert theirs.eos_token == original.eos_token
    assert theirs.decode(theirs.encode(two)) == original.decode(original.encode(two)) == two
    assert theirs.encode(two)[1:-1].count(0) == original.encode(two).count(original.eos_token_id) == 1
    for text in TEXTS:
        assert theirs.encode(text) == [i - EOS for i in ours.encode(text)]
    again, old_id_of = from_hugging_face(tmp_path / "ours")
    assert again.digest == ours.digest
    assert old_id_of.tolist() == [-1, -1, 0, 0, *range(1, len(ours) - 3)]


def test_ids_after_special_tokens_that_are_left_out_move_up_in_a_unigram_vocabulary(tmp_path):
    ours = trained("unigram", byte_fallback=False)
    to_hugging_face(ours, tmp_path / "ours", "decoder", absent=(PAD, BOS))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert len(theirs) == len(ours) - 2
    for text in TEXTS:
        assert theirs.encode(text) == [i - (1 if i < BOS else 2) for i in ours.encode(text)]


def test_what_has_no_counterpart_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json, which cannot represent"):
        to_hugging_face(trained("wordpiece"), tmp_path / "new", "decoder")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        to_hugging_face(trained("byte"), tmp_path / "file", "decoder")
