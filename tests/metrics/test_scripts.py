"""A text that its tokenizer cannot cut into words is told, and no other."""

import pytest

from heedful.metrics import Scoring
from heedful.metrics.translation import count_letters, script_warning

TEXTS = {
    "zh": "我们在河边吃鱼，两只小狗在跑。",
    "ja": "東京都知事選挙の投票率は前回を上回る。",
    "ko": "우리는 강가에서 생선을 먹는다.",
    "th": "เรากินปลาริมแม่น้ำ",
    "de": "Wir essen am Ufer Fisch, 3 × 5 Stück.",
    "ru": "Мы едим рыбу на берегу.",
}


@pytest.mark.parametrize("language", ["zh", "ja", "ko", "th"])
def test_text_without_spaces_needs_its_own_tokenizer(language):
    told = script_warning([TEXTS[language]], "13a")
    assert told is not None
    assert told.endswith(f"which tok:13a does not cut into words; set language {language}")
    assert Scoring(language=language).warning([[TEXTS[language]]]) is None


@pytest.mark.parametrize("language", ["de", "ru"])
def test_words_between_spaces_need_none(language):
    assert script_warning([TEXTS[language]], "13a") is None


@pytest.mark.parametrize(("language", "text"), [("zh", "de"), ("ja", "ko"), ("ko", "zh"), ("th", "ru")])
def test_a_tokenizer_is_made_for_its_script(language, text):
    told = Scoring(language=language).warning([[TEXTS[text]]])
    assert told is not None
    assert "does not cut into words" in told


def test_some_foreign_words_do_not_matter():
    assert script_warning([TEXTS["zh"], "BLEU"], "zh") is None
    assert script_warning([TEXTS["de"], "河边"], "13a") is None


@pytest.mark.parametrize("lines", [[], [""], ["123 !?"]])
@pytest.mark.parametrize("tokenizer", ["13a", "zh"])
def test_text_without_letters_is_in_no_script(lines, tokenizer):
    assert script_warning(lines, tokenizer) is None


def test_letters_of_half_width_are_letters():
    assert count_letters(["ｶﾅ Ａb 漢1"]) == {"KATAKANA": 2, "LATIN": 2, "CJK": 1}
