"""Inline markup: the texts and tags of a paragraph in the order of the file, and the place and segment made of them.

Pairs of tags are nested in every segment. Markup at the edges of a paragraph remains outside its place.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from heedful.documents.document import InnerPlace, Place, Segment, Tag

BLANKS = " \t\n\r\f"
EDGES = BLANKS + "\u00a0"  # what is outside a text at its edges
_RUN = re.compile(f"[{BLANKS}]+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Item(NamedTuple):
    """Text or tag of a paragraph.

    Attributes:
        kind: The kind of the tag. An object, such as an image, is an empty tag that takes a place in the line.
        begin: The first character in the content of the file.
        end: The character after the last one.
        text: Without escapes.
        markup: The form of a tag in a segment.
        name: The name of an element; a pair of tags has the same name.
        inner: The places in the tag, each with its position in the markup.
        is_bound: True for a tag that depends on the text next to it, and so is not left at the edge.
    """

    kind: Literal["text", "open", "close", "empty", "word", "object"]
    begin: int
    end: int
    text: str = ""
    markup: str = ""
    name: str = ""
    inner: tuple[tuple[int, Place], ...] = ()
    is_bound: bool = False

    @property
    def is_text(self) -> bool:
        return self.kind == "text" and not self.is_blank

    @property
    def is_blank(self) -> bool:
        """True for a text that consists of blanks."""
        return self.kind == "text" and not self.text.strip()


class Sentence(NamedTuple):
    """Segment of a paragraph, its inner places, and the blanks at its edges."""

    segment: Segment
    inner: tuple[InnerPlace, ...]
    leading: str
    trailing: str


def places_of(items: Sequence[Item], place_of: Callable[[Sequence[Item], Sentence], Place]) -> Iterator[Place]:
    """Yield the place of a paragraph, if it has a text, and places in the markup around it.

    Args:
        items: All texts and tags of the paragraph.
        place_of: Returns the place of those that are not at the edges; their segment is the second argument.
    """
    items = paired(items)
    begin, end = _core(items)
    yield from (place for item in items[:begin] for _, place in item.inner)
    if begin < end:
        yield place_of(items[begin:end], joined(items[begin:end]))
    yield from (place for item in items[end:] for _, place in item.inner)


def collapsed(items: Sequence[Item]) -> list[Item]:
    """Make one space of each run of blanks, also across tags, and none at the beginning."""
    result, is_space = [], True
    for item in items:
        if item.kind == "text":
            text = _RUN.sub(" ", item.text)
            text = text[1:] if is_space and text.startswith(" ") else text
            is_space = text.endswith(" ") if text else is_space
            result.append(item._replace(text=text))
        else:
            is_space = is_space and item.kind not in ("word", "object")
            result.append(item)
    return result


def without_break_blanks(segment: Segment, line_breaks: Collection[str]) -> Segment:
    """Remove the blank after each line break, which stood for it in the text; `line_breaks` has their markup."""
    text, position, length = segment.text, 0, 0
    parts, tags = [], []
    words = {tag.position: number for number, tag in enumerate(segment.tags) if tag.kind == "word"}
    for number, tag in enumerate(segment.tags):
        part, position = text[position : tag.position], max(position, tag.position)
        is_before_word = words.get(tag.position, -1) > number
        position += tag.markup in line_breaks and not is_before_word and text.startswith(" ", position)
        parts.append(part)
        length += len(part)
        tags.append(tag._replace(position=length))
    return Segment("".join([*parts, text[position:]]), tuple(tags))


def printable(text: str, replacement: str = "\ufffd") -> str:
    """Replace control characters, which not all markup languages can express; half a surrogate pair becomes U+FFFD."""
    if _CONTROL.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = _CONTROL.sub(replacement, text)
    return text


def paired(items: Sequence[Item]) -> list[Item]:
    """Make a tag empty if its partner is missing, or if their pair crosses another one."""
    partners = _partners(items)
    return [
        item._replace(kind="empty") if item.kind in ("open", "close") and number not in partners else item
        for number, item in enumerate(items)
    ]


def _partners(items: Sequence[Item]) -> dict[int, int]:
    """Return the number of the other tag for each tag of a pair."""
    partners, stack = {}, []
    depths: dict[str, int] = {}  # open elements by name
    for number, item in enumerate(items):
        if item.kind == "open":
            stack.append(number)
            depths[item.name] = depths.get(item.name, 0) + 1
        elif item.kind == "close" and depths.get(item.name):
            while True:
                other = stack.pop()
                depths[items[other].name] -= 1
                if items[other].name == item.name:
                    break
            partners[number], partners[other] = other, number
    return partners


def _core(items: Sequence[Item]) -> tuple[int, int]:
    """Return the range of the items without those at the edges: it has the texts, and both tags of a pair or none."""
    if not any(item.is_text for item in items):
        return len(items), len(items)
    numbers = [number for number, item in enumerate(items) if item.is_text or item.kind == "word" or item.is_bound]
    partners = _partners(items)
    begin, end = numbers[0], numbers[-1] + 1
    queue = list(range(begin, end))
    while queue:
        partner = partners.get(queue.pop(), begin)
        if partner < begin:
            queue += range(partner, begin)
            begin = partner
        elif partner >= end:
            queue += range(end, partner + 1)
            end = partner + 1
    return begin, end


def joined(items: Sequence[Item]) -> Sentence:
    """Join texts and tags, whose pairs are nested."""
    text = "".join(item.text for item in items)
    solid = [item.kind for item in items if item.is_text or item.kind in ("word", "object")] or ["text"]
    stripped = text.lstrip(EDGES) if solid[0] == "text" else text
    leading = text[: len(text) - len(stripped)]
    stripped = stripped.rstrip(EDGES) if solid[-1] == "text" else stripped
    trailing = text[len(leading) + len(stripped) :]
    tags: list[Tag] = []
    inner: list[InnerPlace] = []
    position = -len(leading)
    for item in items:
        if item.kind == "text":
            position += len(item.text)
            continue
        inner += [InnerPlace(len(tags), offset, place) for offset, place in item.inner]
        kind = "word" if item.kind == "object" else item.kind
        tags.append(Tag(min(max(position, 0), len(stripped)), item.markup, kind))
    return Sentence(Segment(stripped, tuple(tags)), tuple(inner), leading, trailing)
