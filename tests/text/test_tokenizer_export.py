"""What is written for `transformers` gives our ids there."""

import pytest

from foreign_folders import LINES, TEXTS, write_bert, write_gpt2, write_marian, write_unigram
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.text.export import to_hugging_face
from heedful.text.foreign import from_hugging_face
from heedful.text.pipeline import BOS, EOS, MASK
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


def test_what_has_no_counterpart_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no counterpart in a tokenizer\.json"):
        to_hugging_face(trained("wordpiece"), tmp_path / "new", "decoder")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        to_hugging_face(trained("byte"), tmp_path / "file", "decoder")
