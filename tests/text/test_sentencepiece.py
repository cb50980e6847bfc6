import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreign_folders import MARIAN_SCORES, inner, piece, sentencepiece, write_marian
from heedful.errors import InputError
from heedful.text.hugging_face import from_hugging_face
from heedful.text.sentencepiece import fields, read_sentencepiece

MODEL = sentencepiece(MARIAN_SCORES)


def read(content, tmp_path):
    (tmp_path / "source.spm").write_bytes(content)
    return read_sentencepiece(tmp_path / "source.spm")


def test_pieces_and_their_scores_are_read_without_the_controls(tmp_path):
    model = read(MODEL, tmp_path)
    assert model.scores == pytest.approx(MARIAN_SCORES)
    assert (model.characters, model.first_space, model.remove_extra_spaces) == (b"", True, True)


def test_the_normalisation_is_read(tmp_path):
    normalizer = inner(3, inner(2, b"table") + b"\x18\x00\x20\x00")
    model = read(inner(1, piece("a", -1.5)) + normalizer, tmp_path)
    assert (model.characters, model.first_space, model.remove_extra_spaces) == (b"table", False, False)
    assert [step["type"] for step in model.normalizer()["normalizers"]] == ["Precompiled"]


def test_large_numbers_take_several_bytes():
    assert list(fields(b"\x08\xac\x02" + inner(300, b"x" * 200))) == [(1, 300), (300, b"x" * 200)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MODEL[:-1], "damaged, or not a SentencePiece model"),
        (b"\xff" * 23, "an unterminated number"),
        (b"\x0b", "wire type 3"),
        (inner(1, b"\x15\0\0\0\0"), "damaged"),
        (inner(1, piece("a", float("nan"))), "not finite"),
        (inner(1, inner(1, b"\xff")), "damaged"),
        (b"", "contains no unigram model"),
        (sentencepiece(MARIAN_SCORES, model_type=2), "contains no unigram model"),
    ],
)
def test_a_damaged_or_other_model_is_named(content, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        read(content, tmp_path)
    assert "source.spm" in str(caught.value)


@given(data=st.data())
def test_a_damaged_model_is_read_or_refused(tmp_path_factory, data):
    place = data.draw(st.integers(0, len(MODEL) - 1))
    content = MODEL[:place] + bytes([data.draw(st.integers(0, 255))]) + MODEL[place + 1 :]
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    with suppress(InputError):
        assert read(content, tmp_path_factory.getbasetemp()).scores


def test_ids_with_gaps_are_refused(tmp_path):
    folder = write_marian(tmp_path / "marian")
    for ids in ({"<unk>": 0, "a": 2}, {"a": 0}):
        (folder / "vocab.json").write_text(json.dumps(ids))
        with pytest.raises(InputError, match=r"vocab\.json: does not number its pieces, <unk> included, from 0"):
            from_hugging_face(folder)
