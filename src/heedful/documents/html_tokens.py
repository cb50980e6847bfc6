"""Tokens of HTML and XHTML, with their places, after chapter 13.2.5 of the HTML standard: any text is a document.

A tag that is not complete at the end of the file is the rest of the file, as in a browser.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from heedful.documents.inline import BLANKS

# Elements whose content is text, whatever it looks like; character references count in <title> and <textarea>.
RAW_ELEMENTS = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})

MAX_TEMPLATE = 1000  # characters of a tag of a template, such as ERB's <%= name %>

_NAME = re.compile(f"[a-zA-Z][^{BLANKS}/>]*")
_ATTRIBUTE = re.compile(f"[{BLANKS}/]*+([^{BLANKS}/>][^{BLANKS}/>=]*+)(?:[{BLANKS}]*+(=)[{BLANKS}]*+)?")
_TAG_END = re.compile(f"[{BLANKS}/]*+>")
_UNQUOTED = re.compile(f"[^{BLANKS}>]*+")


class Attribute(NamedTuple):
    """Attribute of a start tag, with the place of its value, in quotes or not."""

    name: str
    begin: int
    end: int
    quote: str


class Token(NamedTuple):
    """Part of a document; what is between comments and tags is text, or raw in a script and the like."""

    kind: Literal["text", "raw", "start", "end", "comment"]
    begin: int
    end: int
    name: str = ""
    attributes: tuple[Attribute, ...] = ()
    is_empty: bool = False  # ends in "/>"


def tokens(content: str, *, is_xml: bool) -> Iterator[Token]:
    """Yield the tokens of a document, in order and without gaps."""
    position = text = 0
    unclosed: set[str] = set()  # raw elements without another end tag
    while (position := content.find("<", position)) >= 0:
        token = _markup_at(content, position, is_xml=is_xml)
        if token is None:
            position += 1
            continue
        if text < position:
            yield Token("text", text, position)
        yield token
        position = text = token.end
        if token.kind == "start" and token.name in RAW_ELEMENTS - unclosed and not (is_xml and token.is_empty):
            match = re.compile(f"</{token.name}(?=[{BLANKS}/>])", re.IGNORECASE).search(content, position)
            if match is None:
                unclosed.add(token.name)
            elif position < match.start():
                yield Token("text" if token.name == "title" else "raw", position, match.start())
                position = text = match.start()
    if text < len(content):
        yield Token("text", text, len(content))


def _markup_at(content: str, begin: int, *, is_xml: bool) -> Token | None:
    """Return the tag or comment that begins with the "<" at a position, if any."""
    following = content[begin + 1 : begin + 2]
    if following.isalpha() and following.isascii():
        return _tag(content, begin, begin + 1, "start")
    if following == "/":
        if _NAME.match(content, begin + 2):
            return _tag(content, begin, begin + 2, "end")
        return Token("comment", begin, _end(content, ">", begin + 2)) if begin + 2 < len(content) else None
    if following == "?":
        is_program = is_xml or content.startswith(("<?php", "<?="), begin)
        end = _end(content, "?>" if is_program else ">", begin + 2)
    elif following == "!":
        end = _declaration_end(content, begin, is_xml=is_xml)
    elif following == "%" and (mark := content.find("%>", begin + 2, begin + MAX_TEMPLATE)) >= 0:
        end = mark + 2
    else:
        return None
    return Token("comment", begin, end)


def _declaration_end(content: str, begin: int, *, is_xml: bool) -> int:
    """Return the end of a comment, a document type or a CDATA section."""
    if content.startswith("<!--", begin):
        match = re.compile(r"(?<=<!--)-?>|--!?>").search(content, begin + 4)
        return match.end() if match else len(content)
    if is_xml and content.startswith("<![CDATA[", begin):
        return _end(content, "]]>", begin + 9)
    end = _end(content, ">", begin + 2)
    if is_xml and "[" in content[begin:end] and content[begin : begin + 9].upper() == "<!DOCTYPE":
        match = re.compile(f"\\][{BLANKS}]*>").search(content, begin)
        return match.end() if match else len(content)
    return end


def _tag(content: str, begin: int, name_begin: int, kind: Literal["start", "end"]) -> Token:
    match = _NAME.match(content, name_begin)
    name, position = (match[0].lower(), match.end()) if match else ("", name_begin)
    attributes = []
    while match := _ATTRIBUTE.match(content, position):
        value_begin = position = match.end()
        value_end, quote = value_begin, ""
        if match[2]:
            quote = content[position : position + 1]
            if quote in ('"', "'"):
                value_begin += 1
                value_end = _end(content, quote, value_begin) - 1
                position = value_end + 1
            else:
                quote = ""
                unquoted = _UNQUOTED.match(content, position)
                value_end = position = unquoted.end() if unquoted else position
            attributes.append(Attribute(match[1].lower(), value_begin, value_end, quote))
        if position >= len(content):
            return Token("comment", begin, len(content))
    end = _TAG_END.match(content, position)
    if end is None:
        return Token("comment", begin, len(content))
    return Token(kind, begin, end.end(), name, tuple(attributes), content[end.end() - 2] == "/")


def _end(content: str, mark: str, position: int) -> int:
    """Return the position after the next mark, or the end of the content."""
    end = content.find(mark, position)
    return end + len(mark) if end >= 0 else len(content)
