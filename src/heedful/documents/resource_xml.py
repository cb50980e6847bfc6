r"""Resources of programs: strings of Android (strings.xml) and of .NET (.resx).

Of Android, these are <string> and the items of <string-array> and <plurals>, unless they have translatable="false"; its
escapes, such as \' and \n, are those of the file. <xliff:g> is a tag that stands alone. Of .resx, these are the values
of <data> without a type.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from heedful.documents.document import Place, Segment, TextDocument, decoded, whole, with_tags
from heedful.documents.pieces import Piece, enclosed, segment
from heedful.documents.xml_events import Event, TagKind, escaped, events, inline_pieces
from heedful.errors import InputError

ANDROID_TOKEN = re.compile(r"""(?:\\u[0-9A-Fa-f]{4})+|\\.|"|\s+|[^\\"\s]+|\\""")
ANDROID_ESCAPES = {"\n": "\\n", "\t": "\\t", "'": "\\'", '"': '\\"', "\\": "\\\\"}
CONTROLS = {"n": "\n", "t": "\t"}


def read(data: bytes, name: str) -> TextDocument:
    """Read a file of Android or .NET, which its root tells apart.

    Raises:
        InputError: It is neither; or it has a DOCTYPE or an encoding other than Unicode's.
    """
    content, encoding = decoded(data, name)
    parts = events(content, name)
    root = next(event for event in parts if event.kind == "start")
    if root.name not in ("resources", "root"):
        raise InputError(f"{name}:1: is neither an Android nor a .NET file of strings: its root is <{root.text}>")
    is_android = root.name == "resources"
    places = [
        place for first, last in _texts(parts, is_android) for place in _places(content, parts[first:last], is_android)
    ]
    return TextDocument(content, encoding, places)


def _texts(parts: Sequence[Event], is_android: bool) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first event of each text, and of the one after its last."""
    ancestors: list[tuple[int, Event]] = []
    for index, event in enumerate(parts):
        if event.kind == "start":
            ancestors.append((index, event))
        elif event.kind == "end":
            first, start = ancestors.pop()
            parent = ancestors[-1][1] if ancestors else None
            if parent and (_is_android_text if is_android else _is_net_text)(start, parent):
                yield first + 1, index


def _is_android_text(element: Event, parent: Event) -> bool:
    is_fixed = "false" in (element.attributes.get("translatable"), parent.attributes.get("translatable"))
    is_string = element.name == "string" and parent.name == "resources"
    return not is_fixed and (is_string or (element.name == "item" and parent.name in ("string-array", "plurals")))


def _is_net_text(element: Event, parent: Event) -> bool:
    """Return whether an element is the value of a string; those with a type are numbers, colours, images."""
    is_string = not {"type", "mimetype"} & set(parent.attributes)
    is_design = parent.attributes.get("name", "").startswith(">>")  # of the form designer: names of controls
    return element.name == "value" and parent.name == "data" and is_string and not is_design


def _places(content: str, parts: Sequence[Event], is_android: bool) -> list[Place]:
    """Return the place of a text: all between the tags of an element, if that has words."""
    pieces = inline_pieces(parts, _code_kind)
    if is_android:
        pieces = [part for piece in pieces for part in _android_pieces(piece)]
    inside = enclosed(pieces)
    if not inside:
        return []
    before, after = (
        "".join(content[piece.begin : piece.end] for piece in some)
        for some in (pieces[: inside.start], pieces[inside.stop :])
    )
    written = partial(_written, before=before, after=after, is_android=is_android)
    text = segment(content, pieces[inside.start : inside.stop])
    return [Place(parts[0].begin, parts[-1].end, text, written)]


def _code_kind(event: Event) -> TagKind | None:
    return "empty" if event.text == "xliff:g" else None  # a placeholder, with its example


def _android_pieces(piece: Piece) -> Iterator[Piece]:
    """Yield the pieces of a text of Android, whose quotation marks are tags: they keep the whitespace between them."""
    if piece.kind != "text" or piece.end - piece.begin != len(piece.text):
        yield piece
        return
    for match in ANDROID_TOKEN.finditer(piece.text):
        token, place = match[0], (piece.begin + match.start(), piece.begin + match.end())
        if token == '"':
            yield Piece(*place, "", "empty")
        elif token.startswith("\\u") and len(token) > 2:
            yield Piece(*place, whole("".join(chr(int(code, 16)) for code in token.split("\\u")[1:])))
        elif len(token) == 2 and token.startswith("\\"):
            yield Piece(*place, CONTROLS.get(token[1], token[1]))
        else:
            yield Piece(*place, token)


def _written(segment: Segment, before: str, after: str, is_android: bool) -> str:
    text = with_tags(segment, _android if is_android else escaped)
    if is_android and text[:1] in ("@", "?") and not before.strip():  # would be the name of a resource
        text = "\\" + text
    return before + text + after


def _android(text: str) -> str:
    return escaped("".join(ANDROID_ESCAPES.get(c, c) for c in text))
