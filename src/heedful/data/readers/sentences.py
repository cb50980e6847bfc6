"""Sentence splitter with rules for English and Chinese: a sentence ends at a mark that something new follows.

The rules know the marks, the quotes and brackets that close behind them, numbers, initials and common abbreviations.
They do not know grammar: `"Seven!" I answered.` becomes two sentences, because what follows the mark has a capital.
"""

import re

CLOSING = "\"'”’»)\\]」』）》】〉"
OPENING = "\"'“‘«(\\[「『（《【〈¿¡*_—–-"

# A Western mark ends a sentence before a space only; a Chinese one anywhere.
MARK = re.compile(
    rf"(?<![.!?…])(?P<western>[.!?…]+)[{CLOSING}]*(?=\s)"
    r"|[。！？；][。！？；.!?…]*[”’」』）》】〉)\]]*"
)
NEXT = re.compile(rf"[\s{OPENING}]*(.?)", re.DOTALL)  # the first character of what comes, quotes and dashes left out
NO_BEGINNING = ".,;:!?…&)]}，、：；。！？"

CHINESE = "\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff5e"  # letters and marks, which need no space at a line end
CHINESE_BREAK = re.compile(rf"(?<=[{CHINESE}])\n(?=[{CHINESE}])")
BLANK_LINE = re.compile(r"\n\s*\n")

ENUMERATOR = re.compile(rf"\s*[{OPENING}]*(?:\d+(?:\.\w+)*|[IVXLC]+)")  # "1.", "1.B." or "IV." at the head of a section
INITIAL = re.compile(r"[A-HJ-Z]|(?:[A-Za-z]\.)*[A-Z]\.[A-Z]")  # "J. Smith", "U.S. Army"; "It was I." ends
ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|st|mt|prof|rev|hon|gen|col|capt|lt|sgt|maj|gov|sen|rep|messrs|mme|mlle|jr|sr"
    r"|co|corp|inc|ltd|bros|etc|i\.e|e\.g|cf|viz|vs|ca|approx|jan|feb|aug|sept|oct|nov|dec",
    re.IGNORECASE,
)
BEFORE_NUMBERS = re.compile(r"nos?|vol|ch|chap|pp?|figs?|art|sec|ver", re.IGNORECASE)  # "No. 7", but "No. He did not."


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences, in order; together they hold each character of the text that is no space.

    A blank line always ends a sentence. A single line break is a space, or nothing between two Chinese characters, so
    that hard-wrapped books read like others.
    """
    return [sentence for paragraph in BLANK_LINE.split(text) for sentence in _sentences(_unwrapped(paragraph))]


def _unwrapped(paragraph: str) -> str:
    lines = "\n".join(line.strip() for line in paragraph.strip().split("\n"))
    return CHINESE_BREAK.sub("", lines).replace("\n", " ")


def _sentences(paragraph: str) -> list[str]:
    sentences, begin = [], 0
    for mark in MARK.finditer(paragraph):
        if mark["western"] is None or _ends(paragraph, begin, mark):
            end = mark.end() + _closes(paragraph, begin, mark.end())
            sentences.append(paragraph[begin:end].strip())
            begin = end
    rest = paragraph[begin:].strip()
    return [*sentences, rest] if rest else sentences


def _closes(paragraph: str, begin: int, end: int) -> bool:
    """True if an ASCII quote at `end` closes one of this sentence; behind a Chinese mark it could open the next one."""
    return paragraph.startswith('"', end) and paragraph.count('"', begin, end) % 2 == 1


def _ends(paragraph: str, begin: int, mark: re.Match[str]) -> bool:
    """True if a Western mark ends the sentence that begins at `begin`."""
    following = NEXT.match(paragraph, mark.end())
    first = following[1] if following else ""
    if first.islower() or first in NO_BEGINNING:
        return False
    if mark["western"] != "." or mark.end() > mark.end("western"):
        return True
    word_begin = max(begin, paragraph.rfind(" ", begin, mark.start()) + 1)
    word = paragraph[word_begin : mark.start()].lstrip(OPENING)
    if ENUMERATOR.fullmatch(paragraph, begin, mark.start()):
        return False
    if BEFORE_NUMBERS.fullmatch(word):
        return not first.isdecimal()
    return not (ABBREVIATION.fullmatch(word) or INITIAL.fullmatch(word))
