"""Language codes are known by a list; a name that is no code is answered with the code."""

import pytest

from heedful.errors import InputError
from heedful.text.languages import (
    NAMES,
    SLIPS,
    THREE_LETTERS,
    base_language,
    check_language,
    is_language,
    language_called,
)


@pytest.mark.parametrize("code", ["zh", "zh-Hans", "ZH_tw", "de", "no", "deu", "ger", "cmn", "gsw"])
def test_codes_of_languages_are_known(code):
    assert is_language(code)
    check_language(code, "--language")


@pytest.mark.parametrize("code", ["", "xx", "tgt", "english", "e", "zhx-Hans", "und", "mul", "en-../x", "en-", "de de"])
def test_other_words_are_not(code):
    assert not is_language(code)


@pytest.mark.parametrize(
    ("word", "code"),
    [("Chinese", "zh"), ("german", "de"), ("Portugese", "pt"), ("Deutsch", "de"), ("中文", "zh"), ("jp", "ja")],
)
def test_a_name_is_answered_with_the_code(word, code):
    with pytest.raises(
        InputError, match=f'--language: "{word}" is not an ISO 639 language code; did you mean "{code}"?'
    ):
        check_language(word, "--language")


def test_a_word_that_is_like_no_name_gets_examples():
    with pytest.raises(
        InputError,
        match=r'data\.target_language: "xx" is not an ISO 639 language code; give one such as en, de or zh',
    ):
        check_language("xx", "data.target_language")


def test_a_slip_is_no_code_and_stands_for_one():
    assert not any(map(is_language, SLIPS))
    assert all(map(is_language, SLIPS.values()))


def test_the_list_is_whole():
    assert len(NAMES) == 184
    assert {len(code) for code in NAMES} == {2}
    assert {len(code) for code in THREE_LETTERS} == {3}
    assert base_language("pt-BR") == "pt"


@pytest.mark.parametrize(("name", "code"), [("German", "de"), (" deutsch", "de"), ("中文", "zh"), ("text", None)])
def test_languages_are_known_by_their_names(name, code):
    assert language_called(name) == code
