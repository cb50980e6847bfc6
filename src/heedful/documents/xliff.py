"""XLIFF 1.2 and 2 (.xlf, .xliff): the sources without a target, which is added.

A target with text stays as it is, unless its state is that of a copy of the source which waits for a translation.
Inline codes, such as <g>, <x/>, <ph> and <pc>, are tags; the content of a code is not text. Units with
translate="no" stay as they are, and a term with it is a tag that stands alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from heedful.documents.document import Place, Segment, TextDocument, decoded, with_tags
from heedful.documents.pieces import Piece, enclosed, segment
from heedful.documents.xml_events import Event, TagKind, escaped, events, inline_pieces
from heedful.errors import InputError

UNITS = ("trans-unit", "segment")  # of XLIFF 1 and 2
CODES: dict[str, TagKind] = {
    **dict.fromkeys(("ph", "it", "ut", "x", "cp"), "empty"),
    **dict.fromkeys(("bpt", "bx", "sc", "sm"), "open"),
    **dict.fromkeys(("ept", "ex", "ec", "em"), "close"),
}
UNTRANSLATED = re.compile(r"""(\sstate\s*=\s*)(["'])(?:initial|new|needs-translation)\2""")
INDENTATION = re.compile(r"(?<![ \t])[ \t]*\n[ \t]+")  # of a text that is printed on several lines


@dataclass
class Element:
    """Element: the indices of its first and last event, what it inherits, and the first child of each name."""

    first: int = 0
    last: int = 0
    is_translated: bool = True
    is_preserved: bool = False
    is_in_unit: bool = False
    children: dict[str, "Element"] = field(default_factory=dict)


def read(data: bytes, name: str) -> TextDocument:
    """Read an XLIFF file.

    Raises:
        InputError: It is not XLIFF; or it has a DOCTYPE or an encoding other than Unicode's.
    """
    content, encoding = decoded(data, name)
    parts = events(content, name)
    root = next(event for event in parts if event.kind == "start")
    if root.name != "xliff":
        raise InputError(f"{name}:1: is not an XLIFF file: its root is <{root.text}>")
    places = [place for unit in _units(parts) for place in _places(content, parts, unit)]
    return TextDocument(content, encoding, places)


def _units(parts: Sequence[Event]) -> Iterator[Element]:
    """Yield each unit with its children: sources and targets further down are those of other versions."""
    ancestors = [Element()]
    for index, event in enumerate(parts):
        if event.kind == "start":
            parent = ancestors[-1]
            translate, space = event.attributes.get("translate"), event.attributes.get("xml:space")
            element = Element(
                first=index,
                is_translated=translate == "yes" if translate else parent.is_translated,
                is_preserved=space == "preserve" if space else parent.is_preserved,
                is_in_unit=parent.is_in_unit or parts[parent.first].name in UNITS,
            )
            parent.children.setdefault(event.name, element)
            ancestors.append(element)
        elif event.kind == "end":
            element = ancestors.pop()
            element.last = index
            if event.name in UNITS and element.is_translated and not element.is_in_unit:
                yield element


def _places(content: str, parts: Sequence[Event], unit: Element) -> list[Place]:
    """Return the place of a target that is missing or has no text; it begins with the unit, which may have a state."""
    source, target = unit.children.get("source"), unit.children.get("target")
    if source is None or (target and not _is_untranslated(content, parts, unit, target)):
        return []
    pieces = inline_pieces(parts[source.first + 1 : source.last], _code_kind)
    pieces = pieces if source.is_preserved else _unindented(pieces)
    inside = enclosed(pieces)
    if not inside:
        return []
    unit_tag, source_tag = parts[unit.first], parts[source.first]
    if target:
        position, end, name = parts[target.first].begin, parts[target.last].end, parts[target.first].text
        opening = re.sub(r"\s*/>\Z", ">", content[position : parts[target.first].end])
    else:
        position = end = parts[unit.children.get("seg-source", source).last].end
        name = source_tag.text.removesuffix("source") + "target"
        before_source = content[unit_tag.end : source_tag.begin]
        opening = f"{before_source[len(before_source.rstrip()) :]}<{name}>"
    head = _as_translated(content[unit_tag.begin : unit_tag.end]) + content[unit_tag.end : position]
    before, after = (
        "".join(content[piece.begin : piece.end] for piece in some)
        for some in (pieces[: inside.start], pieces[inside.stop :])
    )
    written = partial(_written, before=head + _as_translated(opening) + before, after=f"{after}</{name}>")
    text = segment(content, pieces[inside.start : inside.stop])
    return [Place(unit_tag.begin, end, text, written, is_target=True)]


def _is_untranslated(content: str, parts: Sequence[Event], unit: Element, target: Element) -> bool:
    """Return whether a target is empty, or has the same text as the source and the state of a new unit."""
    inside = parts[target.first + 1 : target.last]
    if not any(event.kind == "start" or event.text.strip() for event in inside):
        return True
    tags = [content[parts[element.first].begin : parts[element.first].end] for element in (unit, target)]
    source_text, target_text = (
        content[parts[element.first].end : parts[element.last].begin] for element in (unit.children["source"], target)
    )
    return any(UNTRANSLATED.search(tag) for tag in tags) and source_text == target_text


def _as_translated(tag: str) -> str:
    return UNTRANSLATED.sub(r"\1\2translated\2", tag)


def _written(segment: Segment, before: str, after: str) -> str:
    return before + with_tags(segment, escaped) + after


def _code_kind(event: Event) -> TagKind | None:
    """Return how a code stands in a text, or None for an element that has text."""
    is_protected = event.attributes.get("translate") == "no" or event.attributes.get("mtype") == "protected"
    return CODES.get(event.name) or ("empty" if is_protected else None)


def _unindented(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with a space in place of each line break that is followed by an indentation."""
    runs: list[Piece] = []
    for piece in pieces:
        if runs and piece.text.isspace() and runs[-1].text.isspace():
            runs[-1] = runs[-1]._replace(end=piece.end, text=runs[-1].text + piece.text)
        else:
            runs.append(piece)
    return [piece._replace(text=INDENTATION.sub(" ", piece.text)) for piece in runs]
