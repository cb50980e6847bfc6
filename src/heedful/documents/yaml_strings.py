"""YAML: the scalars that are strings, except for keys, in all five styles.

A new text keeps the style of the old one, if that can express it: a text with ": " cannot be plain, for example, nor
can one that would be read as a number. Then it is quoted. Comments, anchors, aliases and tags stay as they are.
"""

import io
import re
from collections.abc import Iterator
from functools import partial

import yaml

from heedful.documents.document import Place, Segment, TextDocument, decoded, edges, is_identifier, whole
from heedful.errors import InputError

STRING = "tag:yaml.org,2002:str"
BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
BLOCK_HEADER = re.compile(r"[|>][-+0-9]*([^\r\n\x85\u2028\u2029]*)")

ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
NOT_IN_QUOTES = re.compile(r'["\\\u2028\u2029]|[^ -~\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffe]')
NOT_ASCII_IN_QUOTES = re.compile(r'["\\]|[^ -~]')


FOLDED_COLUMNS = 80  # lines of a folded scalar are at least as long, or as the present ones


class Loader(yaml.SafeLoader):
    """Loader that knows where each scalar begins: an event begins with the anchor and the tag of its scalar."""

    def __init__(self, stream: str):
        super().__init__(stream)
        self.begins: dict[int, int] = {}

    def get_token(self) -> yaml.Token:
        token = super().get_token()
        if isinstance(token, yaml.ScalarToken):
            self.begins[token.end_mark.index] = token.start_mark.index
        return token


class Notation:
    """Style in which a file writes strings: its escapes, its line breaks, and what its plain scalars may contain."""

    def __init__(self, content: str):
        self.dumper = yaml.SafeDumper(io.StringIO(), allow_unicode=True)
        has_escapes = re.search(r"\\[xuU][0-9A-Fa-f]{2}", content) is not None
        self.escaped = NOT_ASCII_IN_QUOTES if content.isascii() and has_escapes else NOT_IN_QUOTES
        newline = re.search(r"\r\n|\r|\n", content)
        self.newline = newline[0] if newline else "\n"

    def plain(self, text: str, is_flow: bool) -> str:
        """Return a text as a plain scalar if it can be one, inside brackets or outside, and quoted otherwise."""
        analysis = self.dumper.analyze_scalar(text)
        is_allowed = analysis.allow_flow_plain if is_flow else analysis.allow_block_plain
        is_string = self.dumper.resolve(yaml.ScalarNode, text, (True, False)) == STRING
        return text if text and is_allowed and is_string else self.double_quoted(text)

    def can_be_block(self, text: str, is_folded: bool) -> bool:
        """Return whether a text can be a literal or folded scalar without a number for its indentation."""
        is_indented = re.match(r"\n* ", text) or (is_folded and "\n " in text)
        is_regular = not is_indented and not text.endswith("\n") and not re.search("[\x85\u2028\u2029]", text)
        return bool(text) and is_regular and self.dumper.analyze_scalar(text).allow_block

    def single_quoted(self, text: str) -> str:
        analysis = self.dumper.analyze_scalar(text)
        if analysis.allow_single_quoted and not analysis.multiline:
            return "'" + text.replace("'", "''") + "'"
        return self.double_quoted(text)

    def double_quoted(self, text: str) -> str:
        return '"' + self.escaped.sub(_escape, text) + '"'


def read(data: bytes, name: str) -> TextDocument:
    """Read a YAML file, which may have several documents; strings are those of YAML 1.1, as of PyYAML's `safe_load`."""
    content, encoding = decoded(data, name)
    notation = Notation(content)
    try:
        loader = Loader(content)
        documents = []
        while loader.check_node():
            documents.append(loader.get_node())
        places = [
            place
            for node, is_flow in _values(documents)
            if node.end_mark.index in loader.begins
            for place in _places(content, loader.begins[node.end_mark.index], node, is_flow, notation)
        ]
    except yaml.YAMLError as error:
        raise InputError(
            f"{name}:{_line(error, content)}: is not valid YAML: {_problem(error)}; correct the file"
        ) from error
    except RecursionError as error:
        raise InputError(f"{name}:1: is nested too deeply; correct the file") from error
    except (ValueError, OverflowError) as error:  # of an escape such as \Uffffffff
        raise InputError(f"{name}:1: is not valid YAML: {error}; correct the file") from error
    return TextDocument(content, encoding, sorted(places))


def _line(error: yaml.YAMLError, content: str) -> int:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return error.problem_mark.line + 1
    return content.count("\n", 0, getattr(error, "position", 0)) + 1


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        return error.problem
    return f"YAML does not allow the character U+{getattr(error, 'character', 0):04X}"


def _values(documents: list[yaml.Node]) -> Iterator[tuple[yaml.ScalarNode, bool]]:
    """Yield each string that is not a key, and whether it is inside brackets; one with aliases comes once."""
    seen = set()
    stack = [(document, False) for document in documents]
    while stack:
        node, is_flow = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode) and node.tag == STRING:
            yield node, is_flow
        elif isinstance(node, yaml.CollectionNode):
            values = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
            stack += [(value, bool(node.flow_style)) for value in values]


def _places(content: str, begin: int, node: yaml.ScalarNode, is_flow: bool, notation: Notation) -> list[Place]:
    """Return the place of a scalar, unless it has no words or is an identifier."""
    leading, text, trailing = edges(whole(node.value))
    end = node.end_mark.index
    properties = content[node.start_mark.index : begin].split()
    if not text or is_identifier(text) or "!" in properties:  # PyYAML reads ! "12" as a number, too
        return []
    if node.style in ("|", ">"):
        raw = content[begin:end].rstrip()
        written = partial(_block, raw=raw, value=node.value, notation=notation)
        return [Place(begin, begin + len(raw), Segment(text), written)]
    written = partial(_flow, leading=leading, trailing=trailing, node=node, is_flow=is_flow, notation=notation)
    return [Place(begin, end, Segment(text), written)]


def _flow(
    segment: Segment, leading: str, trailing: str, node: yaml.ScalarNode, is_flow: bool, notation: Notation
) -> str:
    """Return a text in the style of a scalar that is plain or in quotes, on one line."""
    text = leading + segment.text + trailing
    if node.style == "'":
        return notation.single_quoted(text)
    return notation.double_quoted(text) if node.style else notation.plain(text, is_flow)


def _block(segment: Segment, raw: str, value: str, notation: Notation) -> str:
    """Return a text as a literal or folded scalar, indented as the present one is, or else in double quotes.

    Whitespace at the end of the scalar stays in the file.
    """
    leading, _, trailing = edges(value)
    text = leading + segment.text
    header = BLOCK_HEADER.match(raw)
    if header is None or not notation.can_be_block(text, is_folded=raw.startswith(">")):
        return notation.double_quoted(text + trailing) + (header[1] if header else "")
    lines = BREAK.split(raw)[1:]
    indentation = " " * (_indentation(lines) - _indentation(BREAK.split(value)))
    if raw.startswith(">"):
        text = _folded(text, max(FOLDED_COLUMNS, *map(len, lines)) - len(indentation))
    written = [indentation + line if line else "" for line in text.split("\n")]
    return notation.newline.join([header[0], *written])


def _indentation(lines: list[str]) -> int:
    """Return the number of spaces before the first line that has words."""
    first = next(line for line in lines if line.strip())
    return len(first) - len(first.lstrip(" "))


def _folded(text: str, width: int) -> str:
    """Return a text with line breaks in place of some spaces, and with one more where it has line breaks itself."""
    start = len(text) - len(text.lstrip("\n"))
    text, leading = re.sub("\n+", r"\g<0>\n", text[start:]), text[:start]
    return leading + "\n".join(_filled(line, width) for line in text.split("\n"))


def _filled(line: str, width: int) -> str:
    """Return a line with line breaks in place of single spaces, so that none is longer than `width` if possible."""
    lines: list[str] = []
    for words in re.split(r"(?<=\S) (?=\S)", line):
        if lines and len(lines[-1]) + 1 + len(words) <= width:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)


def _escape(match: re.Match[str]) -> str:
    c = match[0]
    code = ord(c)
    return ESCAPES.get(c) or (
        f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
    )
