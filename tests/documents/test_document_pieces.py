"""Pieces: tags around a whole text are outside of its segment, and those without a counterpart stand alone."""

import re

import pytest

from heedful.documents.pieces import Piece, enclosed, segment, text_pieces


def pieces(content: str) -> list[Piece]:
    """Pieces of a text with tags such as <a>, </a> and <x/>."""
    parts: list[Piece] = []
    for match in re.finditer(r"<(/?)(\w)(/?)>|[^<]+", content):
        if match[2]:
            kind = "close" if match[1] else "empty" if match[3] else "open"
            parts.append(Piece(match.start(), match.end(), "", kind, match[2]))
        else:
            parts += text_pieces(match.start(), match[0])
    return parts


@pytest.mark.parametrize(
    ("content", "inside", "kinds"),
    [
        ("one two", "one two", []),
        (" <a> one two </a> ", "one two", []),
        ("<x/><a><b>one</b> two</a><x/>", "<b>one</b> two", ["open", "close"]),
        ("<a>one</a> <b>two</b>", "<a>one</a> <b>two</b>", ["open", "close", "open", "close"]),
        ("<a>one <b>two</a> three</b>", "<a>one <b>two</a> three", ["open", "empty", "close"]),
        ("<a>one</b>", "one", []),
        ("one </a>two<x/> <b>three", "one </a>two<x/> <b>three", ["empty", "empty", "empty"]),
        ("<a>one <a>two</a></a> three", "<a>one <a>two</a></a> three", ["open", "open", "close", "close"]),
        ("<a> </a><x/>", "", []),
    ],
)
def test_the_segment_has_the_tags_between_its_words(content, inside, kinds):
    parts = pieces(content)
    words = parts[enclosed(parts).start : enclosed(parts).stop]
    assert content[words[0].begin : words[-1].end] == inside if words else not inside
    text, tags = segment(content, words)
    assert text == re.sub(r"<[^>]*>", "", inside)
    assert [tag.kind for tag in tags] == kinds
