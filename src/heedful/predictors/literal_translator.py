"""Translates lines with literals: addresses, tags, long numbers and other parts that are not language are kept."""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple, get_args

from heedful.predictors.predictor import Done
from heedful.predictors.translator import WINDOW, Alternative, Translation, Translator
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import UNK

# In its sentence a literal is like a name, or a number; or it is around words (a tag), or apart from the sentence.
Kind = Literal["name", "number", "tag", "apart"]

_HAN = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef"  # no space separates an address from these
_IN_ADDRESS = rf"[^\s<>\"“”„«»{_HAN}]"
_ADDRESS = (
    rf"(?:https?|ftp|file|mailto|ssh|git)://?{_IN_ADDRESS}+|www\.{_IN_ADDRESS}+"
    r"|[A-Za-z0-9_.+-]+@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+"
)
_PATH = r"(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*[\w/]|\b[A-Za-z]:\\[\w\\.-]+"
_PLACEHOLDER = (
    r"\$?\{\{?[^{}\n]{1,60}\}?\}|%\([\w.]+\)[a-z]|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifgxXu@](?!\w)|%%\w+%%|%[A-Z_]{2,}%"
    r"|\$[A-Za-z_]\w*|\[\[[^\[\]]+\]\]|<\d+>|`[^`\n]+`|(?<!\w)[@#][A-Za-z_][\w.-]*\w|\b\w+_\w+\b|\b[a-z]+(?:[A-Z]\w*)+\(\)"
)
_NUMBER = (
    r"(?<![A-Za-z0-9_.,])(?:[$€£¥]\s?\d[\d.,]*(?<![.,])|\d[\d.,]*(?<![.,])\s?[$€£¥])(?![A-Za-z0-9_])"
    r"|(?<![A-Za-z0-9_.,])\+?\(?\d(?:\d|[ ()/.,-]{1,2}(?=[\d(]))*(?![A-Za-z0-9_])"
)
_CODE = r"\b[A-Z]{1,5}-?\d{2,}[\w-]*(?:[ ]\d{2,4}\b)*"
_BREAK = (
    r"</?(?:br|hr|p|div|li|ul|ol|td|tr|th|h[1-6]|title|body|html|table|blockquote)\b[^<>\n]*>|<!--.*?-->"
    r"|&(?:[A-Za-z]{2,8}|#\d{2,6}|#x[0-9A-Fa-f]{2,5});"
)
_TAG = r"</?[A-Za-z][^<>\n]*>|\]\([^()\s]+\)|!?\[(?=[^\[\]]+\]\()"
_PICTURE = (
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2190-\u21ff\u2300-\u23ff\u25a0-\u25ff\u00a9\u00ae\u2122]"
    "[\ufe0f\u200d\u20e3\U0001f000-\U0001faff\u2600-\u27bf]*"
    r"|(?<!\S)(?:[:;=8][-'^o]?[()\[\]DPpO/|\\*]|<3|\^_*\^)(?!\w)"
)
_REPEATED = re.compile(r"\W*(\w+)(?:[\s,]+\1\b){3,}\W*", re.IGNORECASE)
_LITERAL = re.compile(
    f"(?P<apart>{_BREAK}|{_PICTURE})|(?P<tag>{_TAG})|(?P<name>{_ADDRESS}|{_PLACEHOLDER}|{_PATH}|{_CODE})"
    f"|(?P<number>{_NUMBER})"
)
_BULLET = re.compile(r"(?:(?:[-–—*•·‣▪◦●○■□➢➤✓✔>]+|#{1,6}|\[[ xX]\]|\(?\d{1,3}[.)]|\(?[A-Za-z]\))[ \t]+)+")
_BLANKS = " \t\u00a0\u2007\u202f\u3000\ufeff"
_CLOSING = {"(": ")", "[": "]", "*": "*", "_": "_", "~": "~", "=": "="}
_DIGITS = 5  # of a long number; a shorter one counts as one if it has several parts or a currency


class Span(NamedTuple):
    """Literal in a text: where it begins and ends, and its role in its sentence."""

    begin: int
    end: int
    kind: Kind


def literals(text: str) -> list[Span]:
    """Find the literals of a text, from left to right."""
    spans = []
    for match in _LITERAL.finditer(text):
        begin, end = match.span()
        kind = next(kind for kind in get_args(Kind) if match[kind])
        if kind == "name":
            end = begin + len(_without_stop(match[0]))
        if kind == "number":
            parts = re.findall(r"\d+", match[0])
            has_currency = not (match[0][0].isdigit() and match[0][-1].isdigit())
            if len(parts) == 1 and len(parts[0]) < _DIGITS and not has_currency:
                continue
        spans.append(Span(begin, end, kind))
    return spans


def edges(text: str) -> tuple[str, str, str]:
    """Cut blanks, bullets, tags and what is apart off both ends of a text; the three parts joined are the text."""
    begin, end = len(text) - len(text.lstrip(_BLANKS)), len(text.rstrip(_BLANKS))
    if bullet := _BULLET.match(text, begin, end):
        begin = bullet.end()
    spans = [span for span in literals(text) if span.kind in ("tag", "apart")]
    for span in spans:
        if span.begin >= begin and not text[begin : span.begin].strip(_BLANKS):
            begin = max(begin, span.end)
    for span in reversed(spans):
        if begin <= span.begin and not text[span.end : end].strip(_BLANKS):
            end = span.begin
    core = text[begin:end] if begin < end else ""
    begin += len(core) - len(core.lstrip(_BLANKS))
    core = core.strip(_BLANKS)
    inner = _unwrapped(core)
    begin += core.find(inner)
    return text[:begin], inner, text[begin + len(inner) :]


def _unwrapped(text: str) -> str:
    """Take off brackets around a whole text, and signs such as those of Markdown."""
    while len(text) > 2 and _CLOSING.get(text[0]) == text[-1] and _is_balanced(text[1:-1], text[0], text[-1]):
        text = text[1:-1]
    return text.rstrip("-=*_~").rstrip(_BLANKS) if text.endswith(("--", "==", "**", "__", "~~")) else text


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return opening not in text.strip(opening)
    depth = 0
    for character in text:
        depth += (character == opening) - (character == closing)
        if depth < 0:
            return False
    return depth == 0


def has_language(text: str) -> bool:
    """True if a text has a letter outside its literals, and is more than a word that is repeated."""
    has_letter = any(map(str.isalpha, "".join(outside(text, literals(text)))))
    return has_letter and not _REPEATED.fullmatch(text)


def outside(text: str, spans: Sequence[Span]) -> list[str]:
    """The parts of a text between some of its literals, one more than there are literals."""
    begins, ends = [0, *(span.end for span in spans)], [*(span.begin for span in spans), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _without_stop(literal: str) -> str:
    """Take the punctuation of the sentence off the end of an address or the like."""
    core = literal.rstrip(".,;:!?'’")
    while core.endswith((")", "]")) and core.count("(") + core.count("[") < core.count(")") + core.count("]"):
        core = core[:-1].rstrip(".,;:!?'’")
    return core or literal


NAMES = ("Tom", "Boston", "Ken", "Bob", "Paris", "Jim")  # models of many languages leave them as they are
NUMBERS = ("37", "58", "64", "85", "92", "43")
TRIES = 3  # of different names
CLOSING = ("</", "]")  # tags that follow a word
SHORT = 2  # words of a line that may lack the full stop with which models learn it
ENDS = tuple(".!?…:;,。！？：；，、؟।\"'”’)]»")
NUMBER = re.compile(r"\d[\d.,'’\u00a0\u202f ]*")
NOTATION = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+|\d+[.,]\d{1,2}")  # thousands and decimals vary by language
LOOP = re.compile(r"\b(\w+(?:\W+\w+){0,4}?)(?:\W+\1\b){3,}", re.IGNORECASE)
UNTRANSLATED = Hypothesis([], 0.0, [0.0])  # of a line of literals

Asking = Generator[list[str], list[Translation], Translation]  # asks for translations of texts, and is sent them


@dataclass
class LiteralTranslator:
    """Translator that leaves literals as they are. The translation of a line never depends on other lines."""

    translator: Translator

    def translate_lines(
        self, lines: Iterable[str], window: int = WINDOW, done: Done = lambda _: None
    ) -> Iterator[Translation]:
        """Translate lines as `Translator.translate_lines` does; the hypothesis of a line is that of its first part."""
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            yield from self._together([self._line(line) for line in chunk], done)

    @cached_property
    def _knows_full_stop(self) -> bool:
        """True if the vocabulary has the full stop, so that the model may have learned that sentences end with it."""
        tokenizer = self.translator.tokenizers.source
        return not {UNK, *tokenizer.byte_ids} & set(tokenizer.encode("."))

    def _together(self, askings: list[Asking], done: Done) -> list[Translation]:
        """Answer what several lines ask for in common batches, until all are translated."""
        translations: dict[int, Translation] = {}
        requests = {number: next(asking) for number, asking in enumerate(askings)}
        left = len(askings)

        def advance(count: int) -> None:  # a line may ask for several texts, and counts once
            nonlocal left
            done(min(count, left))
            left -= min(count, left)

        while requests:
            texts = [text for request in requests.values() for text in request]
            answers = iter(self.translator.translate_lines(texts, max(len(texts), 1), advance))
            following: dict[int, list[str]] = {}
            for number, request in requests.items():
                try:
                    following[number] = askings[number].send(list(islice(answers, len(request))))
                except StopIteration as end:
                    translations[number] = end.value
            requests = following
        done(left)
        return [translations[number] for number in range(len(askings))]

    def _line(self, line: str) -> Asking:
        """Translate a line between the literals at its ends."""
        if "\n" in line or "\r" in line:  # more than a sentence: what a model makes of it depends on its training
            [translation] = yield [line]
            return translation
        before, core, after = edges(line)
        if not line.strip():
            yield []
            return Translation([], truncated=False)
        if not (has_language(line) and has_language(core)):
            yield []
            return Translation([Alternative(line, UNTRANSLATED)], truncated=False)
        translation = yield from self._capitals(core)
        return _with_text(translation, f"{before}{translation.text}{after}")

    def _capitals(self, core: str) -> Asking:
        """Translate a text in capitals as if it were not, and give its translation in capitals."""
        spans = literals(core)
        parts = outside(core, spans)
        letters = "".join(parts)
        if letters == letters.lower() or letters != letters.upper() or not re.search(r"[^\W\d_]{2}", letters):
            return (yield from self._sentence(core))
        lower = [_in_sentence_case(part, first=not number) for number, part in enumerate(parts)]
        translation = yield from self._sentence(_joined(lower, _texts(core, spans)))
        spans = literals(translation.text)
        upper = [part.upper() for part in outside(translation.text, spans)]
        return _with_text(translation, _joined(upper, _texts(translation.text, spans)))

    def _sentence(self, text: str) -> Asking:
        """Translate a text with literals: tags around the words of it, and stand-ins in the places of the others."""
        spans = literals(text)
        if not spans:
            return (yield from self._plain(text))
        if apart := [span for span in spans if span.kind == "apart"]:
            return (yield from self._parts(text, apart))
        if tags := [span for span in spans if span.kind == "tag"]:
            return (yield from self._tagged(text, tags))
        translation = yield from self._plain(text)
        if all(_is_kept(text[span.begin : span.end], span, text, translation.text) for span in spans):
            return translation
        for stand_ins in _stand_ins(text, spans):
            translation = yield from self._plain(_joined(outside(text, spans), stand_ins))
            pattern = re.compile("|".join(rf"(?<![A-Za-z0-9_]){each}(?![A-Za-z0-9_])" for each in stand_ins))
            if sorted(pattern.findall(translation.text)) == sorted(stand_ins):
                originals = dict(zip(stand_ins, _texts(text, spans), strict=True))
                restored = pattern.sub(lambda match, texts=originals: texts[match[0]], translation.text)
                return _with_text(translation, restored)
        return (yield from self._parts(text, spans))

    def _parts(self, text: str, spans: Sequence[Span]) -> Asking:
        """Translate what is between literals, each part by itself."""
        translations: list[str] = []
        parts: list[Translation] = []
        for part in outside(text, spans):
            core = re.sub(r"^[\W_]+", "", part).rstrip()
            if not has_language(core):
                translations.append(part)
                continue
            translation = yield from self._sentence(core)
            before, after = part.split(core, 1)
            translations.append(f"{before}{translation.text}{after}")
            parts.append(translation)
        if not parts:
            yield []
            return Translation([Alternative(text, UNTRANSLATED)], truncated=False)
        first = next((part for part in parts if not part.complete), parts[0])
        whole = _joined(translations, _texts(text, spans))
        return _with_text(Translation(first.alternatives, any(part.truncated for part in parts)), whole)

    def _tagged(self, text: str, tags: Sequence[Span]) -> Asking:
        """Translate a text without its tags, and put these where as large a share of the words is before them."""
        parts = outside(text, tags)
        source = "".join(parts).split()
        translation = yield from self._sentence(" ".join(source))
        words = translation.text.split(" ")
        before = [len("".join(parts[: number + 1]).split()) for number in range(len(tags))]
        places = [round(count / max(len(source), 1) * len(words)) for count in before]
        for tag, place, part in reversed(list(zip(_texts(text, tags), places, parts, strict=False))):
            if place and (place == len(words) or (not part.endswith((" ", "\t")) and tag.startswith(CLOSING))):
                word = words[place - 1]
                core = word.rstrip(".,;:!?")  # the tag goes before the punctuation
                words[place - 1] = f"{core}{tag}{word[len(core) :]}"
            else:
                words[place] = f"{tag}{words[place]}"
        return _with_text(translation, " ".join(words))

    def _plain(self, text: str) -> Asking:
        """Translate a text as it is; a few words without a full stop also with one, if that is more probable."""
        words = text.split()
        if len(words) > SHORT or text.endswith(ENDS) or not self._knows_full_stop:
            [translation] = yield [text]
            return _without_loop(text, translation)
        plain, sentence = yield [text, f"{text[0].upper()}{text[1:]}."]
        best = max(plain, sentence, key=_mean_log_prob)
        return _without_loop(text, _with_text(best, re.sub(r"(?<=\w)[.!]$", "", best.text)))


def _in_sentence_case(part: str, *, first: bool) -> str:
    """Lower-case a text but for the beginnings of sentences and the word "I"."""
    lower = re.sub(r"\bi\b", "I", part.lower())
    begin = r"(^\W*|[.!?]\s+)(\w)" if first else r"([.!?]\s+)(\w)"
    return re.sub(begin, lambda match: match[1] + match[2].upper(), lower)


def _is_kept(literal: str, span: Span, text: str, translation: str) -> bool:
    """True if a literal of a text comes out as it is, or as the other language writes such a number."""
    if translation.count(literal) >= text.count(literal):
        return True
    if span.kind != "number" or not NOTATION.fullmatch(literal):
        return False
    numbers = (re.sub(r"\D", "", number) for number in NUMBER.findall(translation))
    return re.sub(r"\D", "", literal) in numbers


def _stand_ins(text: str, spans: Sequence[Span]) -> Iterator[list[str]]:
    """Yield stand-ins for literals to try: numbers for numbers and names for all else, then names for all."""
    count = len(spans)
    names, numbers = ([each for each in pool if each not in text] for pool in (NAMES, NUMBERS))
    if min(len(names), len(numbers)) < count:
        return
    if any(span.kind == "number" for span in spans):
        yield [numbers[i] if span.kind == "number" else names[i] for i, span in enumerate(spans)]
    for begin in range(min(TRIES, len(names) - count + 1)):
        yield names[begin : begin + count]


def _mean_log_prob(translation: Translation) -> float:
    scores = translation.alternatives[0].hypothesis.token_scores if translation.alternatives else []
    return sum(scores) / len(scores) if scores else float("-inf")


def _without_loop(text: str, translation: Translation) -> Translation:
    """Write words once that a translation repeats, more than three times in a row, and its source does not."""
    return translation if LOOP.search(text) else _with_text(translation, LOOP.sub(r"\1", translation.text))


def _with_text(translation: Translation, text: str) -> Translation:
    if not translation.alternatives or translation.text == text:
        return translation
    return Translation([Alternative(text, translation.alternatives[0].hypothesis)], translation.truncated)


def _texts(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[span.begin : span.end] for span in spans]


def _joined(parts: Sequence[str], between: Sequence[str]) -> str:
    """Join parts of a text by what is between them, of which there is one less."""
    return "".join(each for pair in zip(parts, [*between, ""], strict=True) for each in pair)
