"""Literals of a text: parts that are not language, such as addresses, tags and long numbers, and are not translated."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

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


@dataclass(frozen=True)
class Span:
    """Literal in a text: where it begins and ends, and how it stands in its sentence."""

    begin: int
    end: int
    kind: Kind


def literals(text: str) -> list[Span]:
    """Find the literals of a text, from left to right."""
    spans = []
    for found in _LITERAL.finditer(text):
        begin, end = found.span()
        kind = next(kind for kind in get_args(Kind) if found[kind])
        if kind == "name":
            end = begin + len(_without_stop(found[0]))
        if kind != "number" or _is_long(found[0]):
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
    letters = any(map(str.isalpha, "".join(outside(text, literals(text)))))
    return letters and not _REPEATED.fullmatch(text)


def outside(text: str, spans: Sequence[Span]) -> list[str]:
    """The parts of a text between some of its literals, one more than there are literals."""
    begins, ends = [0, *(span.end for span in spans)], [*(span.begin for span in spans), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _without_stop(literal: str) -> str:
    """Take the punctuation of the sentence off the end of an address or the like."""
    closed = literal.rstrip(".,;:!?'’")
    while closed.endswith((")", "]")) and closed.count("(") + closed.count("[") < closed.count(")") + closed.count("]"):
        closed = closed[:-1].rstrip(".,;:!?'’")
    return closed or literal


def _is_long(number: str) -> bool:
    parts = re.findall(r"\d+", number)
    return len(parts) > 1 or sum(map(len, parts)) >= _DIGITS or not number[0].isdigit() or not number[-1].isdigit()
