"""Markdown: paragraphs, headings, list items and table cells are the texts, and inline marks in them are tags.

Code, formulas, HTML blocks, front matter, the targets of links and what defines them remain as they are. A text that
changes is written on one line, with as few escapes as it takes for it to be read again as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from markdown_it.token import Token

from heedful.documents.document import Place, Segment, Tag, TextDocument, decoded, with_tags
from heedful.documents.inline import (
    Item,
    Sentence,
    collapsed,
    joined,
    paired,
    places_of,
    printable,
    without_break_blanks,
)
from heedful.documents.markdown_inline import inline_items, parser

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
_FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}
_DIRECTIVE = re.compile(r"[ \t]*(?::{3,}|(?:!!!|\?\?\?\+?)[ \t])")  # a line of an extension, such as ::: note
_BLANK = re.compile(r"[\t\n\r\f\v]")

# Characters that get a backslash: in a table cell, and then more and more, until a text is read as it is.
ESCAPES = ("", r"\\`*_\[\]<>&~$|{", r"!-/:-@\[-`{-~")
EMPHASIS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


def read(data: bytes, name: str) -> TextDocument:
    """Find the texts of a file."""
    content, encoding = decoded(data, name)
    return TextDocument(content, encoding, list(_Reader(content).places()))


class Line(NamedTuple):
    """Line at character `begin` of a file, without its end."""

    begin: int
    text: str


class Block(NamedTuple):
    """Content of a paragraph, heading or table cell.

    Attributes:
        content: The lines, without what marks the block and those around it.
        prefix: What marks the block where it begins.
        is_cell: True for a cell of a table.
        origins: The first character of each line, in the content and in the file.
    """

    content: str
    prefix: str
    is_cell: bool
    origins: Sequence[tuple[int, int]]

    def place(self, position: int) -> int:
        """Return the place in the file of a position in the content."""
        line = bisect_right(self.origins, position, key=lambda origin: origin[0]) - 1
        begin, place = self.origins[line]
        return place + position - begin


class Context(NamedTuple):
    """Markup around a text in its block.

    Attributes:
        prefix: What marks the block where it begins.
        is_cell: True in a cell of a table.
        sources: What precedes and follows the text.
        items: The items of `sources`.
    """

    prefix: str
    is_cell: bool
    sources: tuple[str, str]
    items: tuple[Sequence[Item], Sequence[Item]]


@dataclass
class _Reader:
    content: str
    references: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.markdown = parser()

    def places(self) -> Iterator[Place]:
        lines = [Line(match.start(), match[1]) for match in _LINE.finditer(self.content)]
        environment: dict[str, Any] = {}
        tokens = self.markdown.parse("\n".join(_without_directives([line.text for line in lines])), environment)
        self.references = environment.get("references", {})
        row = cell_end = -1
        for opening, token in pairwise(tokens):
            if token.type != "inline" or not token.map or not token.content:
                continue
            if opening.type in ("td_open", "th_open"):
                cell_end = cell_end if token.map[0] == row else 0
                row = token.map[0]
                block = _cell(token, lines[row], cell_end)
                cell_end = block.place(len(block.content)) - lines[row].begin if block else cell_end
            else:
                block = _block(opening, token, lines)
            if block is not None:
                yield from self._block_places(block)

    def _block_places(self, block: Block) -> Iterator[Place]:
        items = []
        for item in inline_items(self.markdown, block.content, self.references):
            if item.name == "hardbreak":  # with what marks the next line
                source = self.content[block.place(item.begin) : block.place(item.end)]
                items.append(item._replace(markup=source))
            elif item.kind == "object":
                items.append(item._replace(inner=tuple(self._label(item, block))))
            else:
                items.append(item)
        items = paired(collapsed(items))
        yield from places_of(items, partial(self._place, block, items))

    def _label(self, image: Item, block: Block) -> Iterator[tuple[int, Place]]:
        """Yield the place of an image's description, if it is plain text and not the name of the target as well."""
        label = image.name
        is_name = image.markup.endswith(("![" + label + "]", "][]"))
        if label.strip() and not is_name and not re.search(r"[\\\[\]`*_<>&\n]", label):
            begin = block.place(image.begin + 2)
            yield 2, Place(begin, begin + len(label), Segment(label), _written_label)

    def _place(self, block: Block, all_items: Sequence[Item], items: Sequence[Item], sentence: Sentence) -> Place:
        begin, end = items[0].begin, items[-1].end
        source = block.content[begin:end]
        begin += len(source) - len(source.lstrip()) if items[0].kind == "text" else 0
        end -= len(source) - len(source.rstrip()) if items[-1].kind == "text" else 0
        first = next(number for number, item in enumerate(all_items) if item is items[0])
        context = Context(
            block.prefix,
            block.is_cell,
            (block.content[:begin], block.content[end:]),
            (all_items[:first], all_items[first + len(items) :]),
        )
        written = partial(self._written, context)
        return Place(block.place(begin), block.place(end - 1) + 1, sentence.segment, written, inner=sentence.inner)

    def _written(self, context: Context, segment: Segment) -> str:
        """Return the text with its tags, and as many escapes as are needed to read it again."""
        segment = _settled(segment._replace(text=_BLANK.sub(" ", segment.text)))
        line_breaks = {tag.markup for tag in segment.tags if _is_line_break(tag)}
        source = ""
        for tags in (segment.tags, _in_html(segment.tags)):
            expected = _normal([*context.items[0], *_items(segment.text, tags), *context.items[1]])
            for characters in ESCAPES:
                escaped = partial(_escaped, f"{characters}|" if context.is_cell else characters)
                source = with_tags(without_break_blanks(Segment(segment.text, tags), line_breaks), escaped)
                if self._segment(context, source) == expected:
                    return source
        return source

    def _segment(self, context: Context, source: str) -> Segment | None:
        """Read a text with its context; return None if it would not be a single paragraph or heading."""
        before, after = context.sources
        source = re.sub(r"(?:\r\n|\r|\n)[^\S\n]*(?:>[ \t]?)*", "\n", source)
        if any(_DIRECTIVE.match(line) or line.strip() in _FRONT_MATTER for line in source.split("\n")):
            return None
        tokens = self.markdown.parse(f"{context.prefix}{before}{source}{after}", {"references": dict(self.references)})
        if [token.type for token in tokens[1:]] != ["inline", "heading_close" if context.prefix else "paragraph_close"]:
            return None
        return _normal(inline_items(self.markdown, tokens[1].content, self.references))


def _without_directives(lines: list[str]) -> list[str]:
    """Return lines with blank ones in place of front matter and of lines that belong to extensions."""
    ends = _FRONT_MATTER.get(lines[0].rstrip(), ())
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ends), -1)
    return ["" if number <= end or _DIRECTIVE.match(line) else line for number, line in enumerate(lines)]


def _block(opening: Token, token: Token, lines: Sequence[Line]) -> Block | None:
    """Find the lines of a paragraph or heading in the file; return None if they differ because of tabs."""
    begin, _ = token.map or (0, 0)
    origins, position = [], 0
    is_heading = opening.type == "heading_open" and opening.markup.startswith("#")
    for text, line in zip(token.content.split("\n"), lines[begin:], strict=False):
        source = line.text.replace("\0", "\ufffd")
        if is_heading:
            start = source.find(text, source.find("#") + len(opening.markup))
        else:
            source = source if source.endswith(text) else source.rstrip()
            start = len(source) - len(text) if source.endswith(text) else -1
        if start < 0:
            return None
        origins.append((position, line.begin + start))
        position += len(text) + 1
    return Block(token.content, f"{opening.markup} " if is_heading else "", False, origins)


def _cell(token: Token, line: Line, begin: int) -> Block | None:
    """Find the content of a table cell in its row, after the cells before it."""
    text = token.content.replace("|", "\\|")  # as it is in the file
    source = line.text.replace("\0", "\ufffd")
    match = re.compile(f"{re.escape(text)}(?=[ \t]*(?:\\||$))").search(source, begin)
    return Block(text, "", True, [(0, line.begin + match.start())]) if match else None


def _items(text: str, tags: Sequence[Tag]) -> Iterator[Item]:
    """Yield a text and its tags as items."""
    position = 0
    names: list[str] = []
    for number, tag in enumerate(tags):
        yield Item("text", 0, 0, printable(text[position : tag.position]))
        position = tag.position
        if tag.kind == "open":
            names.append(str(number))
        name = names.pop() if tag.kind == "close" and names else str(number)
        yield Item(tag.kind, 0, 0, "", tag.markup, name)
        if _is_line_break(tag):
            yield Item("text", 0, 0, " ")
    yield Item("text", 0, 0, printable(text[position:]))


def _normal(items: Sequence[Item]) -> Segment:
    """Return the segment of a whole block, in which all line breaks are alike."""
    segment = joined(paired(collapsed(items))).segment
    tags = (tag._replace(markup="\n") if _is_line_break(tag) else tag for tag in segment.tags)
    return Segment(segment.text, tuple(tags))


def _settled(segment: Segment) -> Segment:
    """Remove blanks at the edges, and move them out of emphasis, which they would undo, and after line breaks."""
    words = [tag.position for tag in segment.tags if tag.kind == "word"]
    leading = min([len(segment.text) - len(segment.text.lstrip(" ")), *words])
    text = segment.text[leading : max([len(segment.text.rstrip(" ")), *words])]
    tags = [tag._replace(position=min(max(tag.position - leading, 0), len(text))) for tag in segment.tags]
    for number in reversed(range(len(tags))):
        limit = tags[number + 1].position if number + 1 < len(tags) else len(text)
        while tags[number].kind == "open" and tags[number].position < limit and text[tags[number].position] == " ":
            tags[number] = tags[number]._replace(position=tags[number].position + 1)
    for number, tag in enumerate(tags):
        limit = tags[number - 1].position if number else 0
        position = tag.position
        if tag.kind == "close" or _is_line_break(tag):
            while position > limit and text[position - 1] == " ":
                position -= 1
        tags[number] = tag._replace(position=position)
    return Segment(text, tuple(tags))


def _in_html(tags: Sequence[Tag]) -> tuple[Tag, ...]:
    """Return tags with emphasis in HTML, which can be next to any character."""
    result = []
    for tag in tags:
        name = EMPHASIS.get(tag.markup)
        result.append(tag._replace(markup=f"<{'/' * (tag.kind == 'close')}{name}>") if name else tag)
    return tuple(result)


def _is_line_break(tag: Tag) -> bool:
    return "\n" in tag.markup or "\r" in tag.markup


def _escaped(characters: str, text: str) -> str:
    text = printable(text)
    return re.sub(f"[{characters}]", r"\\\g<0>", text) if characters else text


def _written_label(segment: Segment) -> str:
    return re.sub(r"[\\\[\]`*_<>&!$~{]", r"\\\g<0>", _BLANK.sub(" ", printable(segment.text)))
