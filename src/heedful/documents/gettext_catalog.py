r"""Message catalogs of gettext (.po, .pot): the messages that lack a translation, which goes into msgstr.

A message with a translation stays as it is, and so do obsolete messages (#~), and fuzzy ones that have a translation:
it is the work of a person, and marked for review. The header stays, too, but a charset that is ASCII or that of a
template becomes UTF-8. Whitespace at the edges of msgid is that of msgstr: msgfmt demands it of newlines, so that a new
text cannot have others.
"""

import gettext
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from heedful.documents.document import Place, Segment, TextDocument, decoded, edges
from heedful.errors import InputError

LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
QUOTED = r'"(?:[^"\\]|\\.)*"'
STATEMENT = re.compile(
    rf"\s*(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\s*\[\s*(\d{{1,2}})\s*\])?)?\s*({QUOTED}(?:\s*{QUOTED})*)\s*\Z"
)
PLACEHOLDER = re.compile(r"%(?!%)|\{")

ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPES = {c: f"\\{name}" for name, c in CONTROLS.items()} | {'"': '\\"', "\\": "\\\\"}
SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')

LINE_COLUMNS = 79  # of gettext; a file with longer lines was written by a program that does not wrap them
CHARSET = re.compile(r"charset=([\w.:-]+)")
NARROW = ("ASCII", "US-ASCII", "CHARSET")  # as msginit writes it, and templates; a translation may need more
DEFAULT_PLURALS = "nplurals=2; plural=(n != 1);"


class String(NamedTuple):
    """Text of a statement; begin and end of its notation, from the first quotation mark to the last one."""

    begin: int
    end: int
    text: str


class Message:
    """Statements of a message by keyword; the keyword of a plural form ends with its number, as in msgstr1."""

    def __init__(self):
        self.strings: dict[str, String] = {}

    def add(self, statement: re.Match[str], begin: int) -> bool:
        """Add a line, which may continue the statement before it; return False if it cannot be at this place."""
        keyword, index, quoted = statement.groups()
        string = String(begin + statement.start(3), begin + statement.end(3), _unescaped(quoted))
        if keyword is None:
            if not self.strings:
                return False
            key, present = self.strings.popitem()  # the last one
            self.strings[key] = String(present.begin, string.end, present.text + string.text)
            return True
        is_form = keyword == "msgstr"
        key = f"msgstr{int(index or 0)}" if is_form else keyword
        is_possible = key not in self.strings and (is_form or not self.forms)
        is_in_order = ("msgid" in self.strings) == (keyword in ("msgid_plural", "msgstr"))
        self.strings[key] = string
        return is_possible and is_in_order

    @property
    def forms(self) -> dict[int, String]:
        """Translations by the number of the plural form; a message without plural has one."""
        return {int(key[6:]): string for key, string in self.strings.items() if key.startswith("msgstr")}

    def is_wrapped(self, content: str) -> bool:
        """Return whether no line of a string is longer than gettext's."""
        notations = [content[string.begin : string.end] for string in self.strings.values()]
        return all(len(line) <= LINE_COLUMNS for notation in notations for line in re.split("[\r\n]", notation))

    @property
    def is_header(self) -> bool:
        return not self.strings["msgid"].text and "msgctxt" not in self.strings


class Plurals(NamedTuple):
    """Plural forms of a language: how many there are, and which one each number from 1 has."""

    form_count: int
    forms: list[int]

    def is_singular(self, form: int, singular: str, plural: str) -> bool:
        """Return whether a form is a translation of msgid, or of msgid_plural.

        In some languages, 1 and 21 have the same form. A msgid without the number, as in "One file", is then not the
        source of that form.
        """
        is_shared = form in self.forms[1:]
        lacks_number = len(PLACEHOLDER.findall(singular)) < len(PLACEHOLDER.findall(plural))
        return form == self.forms[0] and not (is_shared and (lacks_number or self.form_count == 1))


@dataclass(frozen=True)
class Notation:
    """Style in which a catalog writes strings: its line ends, and whether it wraps lines."""

    newline: str
    is_wrapped: bool

    def quoted(self, text: str) -> str:
        """Return a text in quotation marks, on one line if it has one and is short."""
        parts = [SPECIAL.sub(_escape, line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
        line = "".join(parts)
        if len(parts) <= 1 and not (self.is_wrapped and len(line) > LINE_COLUMNS - len('msgstr[0] ""')):
            return f'"{line}"'
        lines = [""]
        for line in parts:
            lines += _filled(line, LINE_COLUMNS - 2) if self.is_wrapped else [line]
        return self.newline.join(f'"{line}"' for line in lines)


def read(data: bytes, name: str) -> TextDocument:
    """Read a message catalog.

    Raises:
        InputError: A line is not one of a catalog; or its encoding is not UTF-8.
    """
    content, encoding = decoded(data, name)
    messages = list(_messages(content, name))
    header = next(
        (message.forms[0] for message in messages if message.is_header and 0 in message.forms), String(0, 0, "")
    )
    charset = CHARSET.search(content, header.begin, header.end)
    if charset and charset[1].upper() not in ("UTF-8", "UTF8", *NARROW):
        raise InputError(f"{name}:1: is in {charset[1]}; convert the file with msgconv --to-code=UTF-8")
    plurals = _plurals(header.text, name)
    newline = re.search(r"\r\n|\r|\n", content)
    texts = [message for message in messages if not message.is_header]
    notation = Notation(newline[0] if newline else "\n", all(message.is_wrapped(content) for message in texts))
    places = [place for message in texts for place in _places(message, plurals, notation)]
    places.sort(key=lambda place: (place.begin, place.end))
    if charset and charset[1].upper() in NARROW and places and charset.end() <= places[0].begin:
        places[0] = _with_charset(content, charset, places[0])
    return TextDocument(content, encoding, places)


def _with_charset(content: str, charset: re.Match[str], place: Place) -> Place:
    """Return the first place of a catalog, with all before it from the charset of the header, which becomes UTF-8."""
    before = "UTF-8" + content[charset.end() : place.begin]
    return place._replace(begin=charset.start(1), written=lambda segment: before + place.written(segment))


def _messages(content: str, name: str) -> Iterator[Message]:
    """Yield the messages of a catalog, without its comments and obsolete messages."""
    message = Message()
    for number, line in enumerate(LINE.finditer(content), start=1):
        if not line[1].strip() or line[1].lstrip().startswith("#"):
            continue
        statement = STATEMENT.match(line[1])
        if statement and statement[1] in ("msgctxt", "msgid") and message.forms:
            yield message
            message = Message()
        if statement is None or not message.add(statement, line.start()):
            raise InputError(
                f"{name}:{number}: a message catalog cannot have this line at this place; correct the file"
            )
    if message.forms:
        yield message
    elif message.strings:
        raise InputError(f"{name}:{content.count(chr(10)) + 1}: the last message has no msgstr; add it")


def _plurals(header: str, name: str) -> Plurals:
    """Return the plural forms that the header of a catalog defines; that of a template only says where they go."""
    line = re.search(r"Plural-Forms:(.*)", header)
    definition = line[1].strip() if line and "INTEGER" not in line[1] else DEFAULT_PLURALS
    match = re.match(r"nplurals\s*=\s*([1-9]\d?)\s*;\s*plural\s*=([^;]+)", definition)
    try:
        count, expression = match.groups() if match else ("", "")
        form_of = gettext.c2py(expression)
        return Plurals(int(count), [form_of(n) for n in range(1, 200)])
    except (ValueError, ZeroDivisionError) as error:
        remedy = "write for example nplurals=2; plural=(n != 1);"
        raise InputError(f"{name}:1: Plural-Forms cannot be read: {definition[:60]}; {remedy}") from error


def _places(message: Message, plurals: Plurals, notation: Notation) -> Iterator[Place]:
    """Yield the places of the translations that a message lacks; a plural form that is not in the file is added."""
    singular, plural = message.strings["msgid"].text, message.strings.get("msgid_plural")
    last = max(message.forms.values())
    for index in sorted({*(range(plurals.form_count) if plural else ()), *message.forms}):
        is_plural = plural is not None and not plurals.is_singular(index, singular, plural.text)
        leading, text, trailing = edges(plural.text if plural and is_plural else singular)
        form = message.forms.get(index)
        if text and not (form and form.text):
            begin, end = (form.begin, form.end) if form else (last.end, last.end)
            keyword = "" if form else f"{notation.newline}msgstr[{index}] "
            written = partial(_written, keyword=keyword, leading=leading, trailing=trailing, notation=notation)
            yield Place(begin, end, Segment(text), written, is_target=True)


def _written(segment: Segment, keyword: str, leading: str, trailing: str, notation: Notation) -> str:
    return keyword + notation.quoted(leading + segment.text.strip("\n") + trailing)


def _unescaped(quoted: str) -> str:
    """Return the text of one or several strings in quotation marks."""

    def character(match: re.Match[str]) -> str:
        octal, hexadecimal, c = match.groups()
        if c:
            return CONTROLS.get(c, c)
        return chr(int(octal, 8) & 0xFF) if octal else chr(int(hexadecimal, 16))

    return "".join(ESCAPE.sub(character, string[1:-1]) for string in re.findall(QUOTED, quoted))


def _escape(match: re.Match[str]) -> str:
    return ESCAPES.get(match[0]) or f"\\{ord(match[0]):03o}"


def _filled(line: str, width: int) -> list[str]:
    """Return the lines of an escaped text, none longer than `width` if possible; spaces are at their ends."""
    lines: list[str] = []
    for word in re.findall(r"\S*\s+|\S+", line):
        if lines and len(lines[-1]) + len(word) <= width:
            lines[-1] += word
        else:
            lines.append(word)
    return lines
