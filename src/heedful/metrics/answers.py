"""Metrics of extractive question answering: exact match and token F1 (Rajpurkar et al. 2016, section 6.1).

English is normalised as in the SQuAD script: lower case, no ASCII punctuation, no articles. Chinese is split as in the
MLQA script (Lewis et al. 2020, "mixed segmentation"): a Chinese character is a token, other characters form words, and
punctuation of any script is ignored. (The CMRC 2018 script splits in the same way, but its F1 requires common tokens to
be adjacent.) Scores are from 0 to 1.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.errors import InputError
from heedful.metrics.classes import F1Counts
from heedful.metrics.metric import Outputs, per_example
from heedful.text.languages import CHINESE, base_language

HAN = re.compile("([\u4e00-\u9fa5])")
ARTICLES = re.compile(r"\b(a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match(prediction: str, references: Sequence[str], language: str = "en") -> float:
    """Return 1 if a predicted answer has the same tokens as one of the references, else 0.

    A question without an answer has no references, and its correct prediction is "" (Rajpurkar et al. 2018).
    """
    tokens = _tokenizer(language)
    return max(float(tokens(prediction) == tokens(reference)) for reference in references or [""])


def answer_f1(prediction: str, references: Sequence[str], language: str = "en") -> float:
    """Return the token F1, over bags of tokens, of a predicted answer and the most similar reference.

    If one side has no token, the F1 is 1 if the other side has no token either, else 0. For questions without an
    answer, see `exact_match`.
    """
    tokens = _tokenizer(language)
    predicted, best = tokens(prediction), 0.0
    for expected in map(tokens, references or [""]):
        common = Counter(predicted) & Counter(expected)
        f1 = F1Counts(common.total(), len(predicted), len(expected)).f1
        best = max(best, f1 if predicted and expected else float(predicted == expected))
    return best


def _tokenizer(language: str) -> Callable[[str], list[str]]:
    if language not in TOKENS:
        raise InputError(f'answers in "{language}" cannot be compared; known languages: {", ".join(TOKENS)}')
    return TOKENS[language]


def _english(text: str) -> list[str]:
    # Punctuation first, as in the SQuAD script: "a-frame" becomes "aframe", and keeps its first letter.
    return ARTICLES.sub(" ", text.lower().translate(WITHOUT_PUNCTUATION)).split()


def _chinese(text: str) -> list[str]:
    characters = (c for c in text.lower() if c not in string.punctuation and unicodedata.category(c)[0] != "P")
    return HAN.sub(r" \1 ", "".join(characters)).split()


TOKENS = {"en": _english, "zh": _chinese}


def answer_language(code: str) -> str:
    """Return the rules that apply to answers in a language: "zh" for Chinese, otherwise "en"."""
    return "zh" if base_language(code) in CHINESE else "en"


@dataclass(frozen=True)
class Answers(Outputs):
    """Predicted answers, the accepted answers of each question, and the language whose rules compare them."""

    kind = "answers"
    columns = ("predicted", "accepted")

    predicted: Sequence[str]
    accepted: Sequence[Sequence[str]]
    language: str = "en"

    def scored(self, score: Callable[[str, Sequence[str], str], float]) -> list[float]:
        return [score(*pair, self.language) for pair in zip(self.predicted, self.accepted, strict=True)]


F1 = per_example(lambda answers: answers.scored(answer_f1))
EXACT_MATCH = per_example(lambda answers: answers.scored(exact_match))
