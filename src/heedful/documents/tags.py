"""Inline markup in a translation: each tag is placed around the translation of the words that it was placed around."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from heedful.documents.document import Segment, Tag

Range = tuple[int, int]  # the first character, and the one after the last

_BEFORE_WORD, _AFTER_WORD = re.compile(r"[\s(\[\"'“„«]"), re.compile(r"[\s)\]\"'”“».,;:!?]")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|\w+|[^\w\s]")


class Link(NamedTuple):
    """Part of a text and its translation."""

    source: Range
    target: Range


class Sentence(NamedTuple):
    """Sentence of a text and its translation, with the links between their words.

    `solid` has the ranges in the translation into which no tag is placed, in order, such as those of placeholders.
    """

    source: Range
    target: Range
    words: Sequence[Link] = ()
    solid: Sequence[Range] = ()


@dataclass
class Element:
    """Tags that move together, and what is between them: a pair of tags, or a single one, which is not closed."""

    begin: int  # in the source text
    opening: str
    end: int = 0
    closing: str = ""
    children: list["Element"] = field(default_factory=list)


def project_tags(source: Segment, text: str, sentences: Sequence[Sentence]) -> Segment:
    """Place the tags of a segment in its translation `text`.

    Tags around whole sentences stay around their translations. Within a sentence, a pair of tags goes around the words
    that are linked to those between them. Without links, it goes around the same share of the words. The result is
    nested as the source is; two pairs of tags side by side may change their order.

    Args:
        source: The segment.
        text: Its translation.
        sentences: The sentences of the segment, in order.
    """
    projection = Projection(source.text, text, sentences)
    tags = _placed(_elements(source.tags), (0, len(text)), projection)
    return Segment(text, tuple(tags))


def with_stand_ins(segment: Segment) -> tuple[Segment, dict[str, Tag]]:
    """Replace the tags that are words of the text with placeholders; return the tag of each placeholder as well.

    A single tag with a blank before it and a blank or punctuation after it is also in the place of a word.
    """
    numbers = (number for number in count(1) if f"{{{number}}}" not in segment.text)
    words: dict[str, Tag] = {}
    tags, parts, position, shift = [], [], 0, 0
    for tag in segment.tags:
        before = segment.text[max(tag.position - 1, 0) : tag.position]
        is_between = _BEFORE_WORD.match(before) and _AFTER_WORD.match(segment.text, tag.position)
        if tag.kind == "word" or (tag.kind == "empty" and is_between):
            placeholder = f"{{{next(numbers)}}}"
            words[placeholder] = tag
            parts += [segment.text[position : tag.position], placeholder]
            position, shift = tag.position, shift + len(placeholder)
        else:
            tags.append(tag._replace(position=tag.position + shift))
    return Segment("".join([*parts, segment.text[position:]]), tuple(tags)), words


def without_stand_ins(segment: Segment, words: Mapping[str, Tag]) -> Segment:
    """Replace placeholders in a text with the tags that they represent."""
    if not words:
        return segment
    pattern = re.compile("|".join(map(re.escape, words)))
    matches = list(pattern.finditer(segment.text))
    restored = {words[match[0]]._replace(position=match.start()) for match in matches}
    # A tag at the beginning of a placeholder precedes it.
    tags = sorted([*segment.tags, *restored], key=lambda tag: (tag.position, tag in restored))

    def position(before: int) -> int:
        return before - sum(min(before, match.end()) - match.start() for match in matches if match.start() < before)

    return Segment(pattern.sub("", segment.text), tuple(tag._replace(position=position(tag.position)) for tag in tags))


def _elements(tags: Sequence[Tag]) -> list[Element]:
    """Build the tree of the tags of a text; a tag whose partner is missing is single."""
    root = Element(0, "")
    open_elements = [root]
    for tag in tags:
        element = Element(tag.position, tag.markup, tag.position)
        if tag.kind == "close" and len(open_elements) > 1:
            element = open_elements.pop()
            element.end, element.closing = tag.position, tag.markup
            continue
        open_elements[-1].children.append(element)
        if tag.kind == "open":
            open_elements.append(element)
    while len(open_elements) > 1:  # the closing tag is missing: what seemed to be in the element follows it
        element = open_elements.pop()
        open_elements[-1].children += element.children
        element.children = []
        element.end = element.begin
    return root.children


def _placed(elements: Sequence[Element], limits: Range, projection: "Projection") -> Iterator[Tag]:
    """Yield the tags of sibling elements, in the order of their places within the limits."""
    ranges = [projection.range_of((element.begin, element.end)) for element in elements]
    position, end = limits
    for number in sorted(range(len(elements)), key=lambda number: ranges[number]):
        element = elements[number]
        begin = min(max(ranges[number][0], position), end)
        position = min(max(ranges[number][1], begin), end)
        if not element.closing:
            yield Tag(begin, element.opening, "empty")
            continue
        yield Tag(begin, element.opening, "open")
        yield from _placed(element.children, (begin, position), projection)
        yield Tag(position, element.closing, "close")


@dataclass(frozen=True)
class Projection:
    """Map from ranges of a source text to ranges of its translation."""

    source: str
    target: str
    sentences: Sequence[Sentence]

    def range_of(self, source: Range) -> Range:
        begin, end = source
        first = bisect_right(self.sentences, begin, key=lambda sentence: sentence.source[1])
        last = bisect_left(self.sentences, end, key=lambda sentence: sentence.source[0])
        ranges = [
            self._range_in(sentence, (max(begin, sentence.source[0]), min(end, sentence.source[1])))
            for sentence in self.sentences[first:last]
        ]
        if begin == end or not ranges:  # without words
            position = self.position_of(begin)
            return position, position
        return min(ranges)[0], max(end for _, end in ranges)

    def position_of(self, position: int) -> int:
        """Return the position in the translation that corresponds to a position between two characters."""
        if position == 0:
            return 0
        # The first sentence that does not end before the position.
        number = bisect_left(self.sentences, position, key=lambda sentence: sentence.source[1])
        if number == len(self.sentences):
            return len(self.target)
        sentence = self.sentences[number]
        begin, end = sentence.source
        if position <= begin:
            return sentence.target[0]
        return sentence.target[1] if position == end else self._range_in(sentence, (begin, position))[1]

    def _range_in(self, sentence: Sentence, source: Range) -> Range:
        """Return the range of a part of a sentence in the translation of the sentence."""
        begin, end = self._linked_range(sentence, source)
        for solid_begin, solid_end in sentence.solid:
            begin = solid_begin if solid_begin < begin < solid_end else begin
            end = solid_end if solid_begin < end < solid_end else end
        return begin, end

    def _linked_range(self, sentence: Sentence, source: Range) -> Range:
        if source == sentence.source:
            return sentence.target
        begin, end = source
        links = [link.target for link in sentence.words if begin < link.source[1] and link.source[0] < end]
        if links:
            return min(links)[0], max(end for _, end in links)
        # The same share of the words, and at least one word.
        words = [_WORD.finditer(self.source, *sentence.source), _WORD.finditer(self.target, *sentence.target)]
        source_words, target_words = ([match.span() for match in each] for each in words)
        inside = [number for number, (start, stop) in enumerate(source_words) if begin < stop and start < end]
        if not inside or not target_words:
            return sentence.target
        ratio = len(target_words) / len(source_words)
        first = min(round(inside[0] * ratio), len(target_words) - 1)
        last = max(round((inside[-1] + 1) * ratio) - 1, first)
        return target_words[first][0], target_words[last][1]
