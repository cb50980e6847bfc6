"""Check that sacrebleu's tokenizer suits the script of a text, as some scripts put no space between words."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

LANGUAGES = {  # language code of a script, by the first word of the Unicode names of the script's letters
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
}

MADE_FOR = {  # scripts that a tokenizer of sacrebleu is made for; other tokenizers split words at spaces
    "zh": {"CJK"},
    "ja-mecab": {"CJK", "HIRAGANA", "KATAKANA"},
    "ko-mecab": {"HANGUL"},
    "char": {"THAI", "LAO", "KHMER", "MYANMAR"},
}

KANA = 0.05  # the share of letters above which a text with Chinese characters is Japanese


def script_warning(lines: Iterable[str], tokenizer: str) -> str | None:
    """Return a warning if most letters of a text are in a script that the tokenizer of BLEU is not made for; else None.

    Args:
        lines: The text.
        tokenizer: A tokenizer by sacrebleu's name, such as "13a" or "zh".
    """
    letters = count_letters(lines)
    expected = MADE_FOR.get(tokenizer)
    if expected is None:
        unfit = {script: count for script, count in letters.items() if script in LANGUAGES}
    else:
        unfit = {script: count for script, count in letters.items() if script not in expected}
    if 2 * sum(unfit.values()) <= letters.total():
        return None
    script = max(unfit, key=lambda name: unfit[name])
    language = LANGUAGES.get(script)
    if language == "zh" and letters["HIRAGANA"] + letters["KATAKANA"] > KANA * letters.total():
        language = "ja"
    advice = f"language {language}" if language else "the language of the text"
    return f"most letters are {script}, which tok:{tokenizer} does not cut into words; set {advice}"


def count_letters(lines: Iterable[str]) -> Counter[str]:
    """Count the letters of a text by script, named by the first word of the letters' Unicode names."""
    characters = Counter(character for line in lines for character in line if character.isalpha())
    scripts: Counter[str] = Counter()
    for character, count in characters.items():
        name = unicodedata.name(character, "UNKNOWN").removeprefix("HALFWIDTH ").removeprefix("FULLWIDTH ")
        scripts[name.split()[0].split("-")[0]] += count
    return scripts
