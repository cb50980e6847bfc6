"""Tokens of speech are found by their names."""

import json

import pytest

from foreign_folders import SPOKEN, write_whisper
from heedful.errors import InputError
from heedful.text.pipeline import BOS, EOS, PAD, UNK
from heedful.text.speech_tokens import SpeechTokens, speech_tokenizer
from heedful.text.tokenizer import Tokenizer
from toy_speech import plain_tokenizer


@pytest.fixture
def folder(tmp_path):
    names = write_whisper(tmp_path / "tokenizer", times=23)
    return tmp_path / "tokenizer", names


def test_each_has_its_id(folder, tmp_path):
    tokenizer, old_id_of = speech_tokenizer(folder[0], len(folder[1]), folder[1])
    tokens = SpeechTokens.of(tokenizer)
    names = [None if i < 0 else folder[1][i] for i in old_id_of.tolist()]
    assert names[:4] == [None, None, "<|startoftranscript|>", "<|endoftext|>"]
    assert {code: names[i] for code, i in tokens.languages.items()} == {code: f"<|{code}|>" for code in SPOKEN}
    assert names[tokens.transcribe] == "<|transcribe|>"
    assert names[tokens.without_times] == "<|notimestamps|>"
    assert names[tokens.silence] == "<|nospeech|>"
    assert [names[i] for i in tokens.times] == [f"<|{i * 0.02:.2f}|>" for i in range(23)]
    assert tokens.seconds(tokens.times[7]) == pytest.approx(0.14)
    assert tokens.text([5, tokens.times[3], 7, tokens.transcribe]) == [5, 7]
    assert {PAD, UNK, BOS, EOS}.isdisjoint(tokens.controls)
    tokenizer.save(tmp_path / "saved")
    assert SpeechTokens.of(Tokenizer.load(tmp_path / "saved")) == tokens


def test_the_name_of_silence_was_another_one_once(folder):
    file = folder[0] / "tokenizer.json"
    file.write_text(file.read_text().replace("<|nospeech|>", "<|nocaptions|>"))
    tokenizer, old_id_of = speech_tokenizer(folder[0], len(folder[1]))
    assert folder[1][old_id_of[SpeechTokens.of(tokenizer).silence]] == "<|nospeech|>"


def test_other_vocabularies_have_none():
    tokens = SpeechTokens.of(plain_tokenizer())
    assert (dict(tokens.languages), tokens.times, tokens.controls) == ({}, range(0), frozenset())
    assert tokens.transcribe is tokens.without_times is tokens.silence is None


@pytest.mark.parametrize("damage", [{"added_tokens": 5}, {"added_tokens": [{}]}, {"pre_tokenizer": {"no": "type"}}])
def test_a_damaged_definition_is_refused(folder, damage):
    file = folder[0] / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    with pytest.raises(InputError, match=r"tokenizer\.json: "):
        speech_tokenizer(folder[0], len(folder[1]))
