"""Inline markup: pieces of marked-up text, and the segment that they contain.

Tags that enclose a whole text, such as the italics of a subtitle, need no place in its translation: they are not part
of the segment. A tag that has no counterpart in its text stands alone.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from heedful.documents.document import Segment, Tag


class Piece(NamedTuple):
    """Piece of marked-up text: a tag, or characters that are all whitespace or have none.

    Attributes:
        begin: The first character of the piece in the file.
        end: The character after its last one.
        text: Its text; empty if it is a tag.
        kind: What it is.
        name: What a closing tag has in common with the opening one.
    """

    begin: int
    end: int
    text: str
    kind: Literal["text", "open", "close", "empty"] = "text"
    name: str = ""


def text_pieces(begin: int, text: str) -> list[Piece]:
    """Return the pieces of text that has neither tags nor escapes, and begins at a character of the file."""
    runs = re.finditer(r"\s+|\S+", text)
    return [Piece(begin + run.start(), begin + run.end(), run[0]) for run in runs]


def enclosed(pieces: Sequence[Piece]) -> range:
    """Return the indices of the pieces from the first word to the last, with the tags that are paired among them."""
    partner = _partners(pieces)
    first, last = 0, len(pieces) - 1
    while first <= last:
        if _is_edge(pieces[first]) and first not in partner:
            first += 1
        elif _is_edge(pieces[last]) and last not in partner:
            last -= 1
        elif partner.get(first) == last:
            first, last = first + 1, last - 1
        else:
            break
    return range(first, last + 1)


def segment(content: str, pieces: Sequence[Piece]) -> Segment:
    """Return the text of pieces, and their tags as the content of the file has them."""
    partner = _partners(pieces)
    parts, tags, position = [], [], 0
    for index, piece in enumerate(pieces):
        if piece.kind == "text":
            parts.append(piece.text)
            position += len(piece.text)
        else:
            kind = piece.kind if index in partner else "empty"
            tags.append(Tag(position, content[piece.begin : piece.end], kind))
    return Segment("".join(parts), tuple(tags))


def _is_edge(piece: Piece) -> bool:
    return not piece.text.strip()


def _partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Return the index of the closing tag for that of each opening tag, and conversely; tags that overlap have none."""
    partner, openings = {}, []
    depths = Counter[str]()  # open tags by name
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            openings.append(index)
            depths[piece.name] += 1
        elif piece.kind == "close" and depths[piece.name]:
            while True:
                opening = openings.pop()
                depths[pieces[opening].name] -= 1
                if pieces[opening].name == piece.name:
                    break
            partner |= {opening: index, index: opening}
    return partner
