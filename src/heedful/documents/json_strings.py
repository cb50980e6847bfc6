r"""JSON: the strings that are values, at any depth, but neither keys nor identifiers.

A new text is written as the file writes its texts: with \u00fc or ü, and with \/ or /.
"""

import json
import re
from functools import partial

from heedful.documents.document import Place, Segment, TextDocument, decoded, edges, is_identifier, whole
from heedful.errors import InputError

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
KEY_END = re.compile(r"[ \t\r\n]*:")
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
HALF_PAIR = r"\ud800-\udfff"


def read(data: bytes, name: str) -> TextDocument:
    """Read a JSON file."""
    content, encoding = decoded(data, name)
    try:
        json.loads(content, parse_int=str)  # Python limits the digits of an integer, and JSON does not
    except json.JSONDecodeError as error:
        message = f"{name}:{error.lineno}: is not valid JSON: {error.msg}; correct the file"
        raise InputError(message) from error
    except RecursionError as error:
        raise InputError(f"{name}:1: is nested too deeply; correct the file") from error
    written = partial(_written, **_notation(content))
    places = []
    for match in STRING.finditer(content):  # outside of strings, valid JSON has no quotation marks
        leading, text, trailing = edges(whole(json.loads(match[0])))
        if text and not is_identifier(text) and not KEY_END.match(content, match.end()):
            written_here = partial(written, leading=leading, trailing=trailing)
            places.append(Place(match.start(), match.end(), Segment(text), written_here))
    return TextDocument(content, encoding, places)


def _notation(content: str) -> dict[str, bool | re.Pattern[str]]:
    """Return which characters the file writes as escapes, although it need not: HTML's, or all that are not ASCII."""
    escapes = ESCAPE.findall(content)
    codes = {chr(int(code, 16)) for code, _ in escapes if code}
    marks = "".join(re.escape(c) for c in sorted(codes) if c.isprintable() and not c.isalnum() and c not in '"\\')
    return {
        "is_ascii": content.isascii() and any(not c.isascii() for c in codes),
        "is_slash_escaped": any(c == "/" for _, c in escapes),
        "escaped": re.compile(f"[{HALF_PAIR}{marks}]"),
    }


def _written(
    segment: Segment, leading: str, trailing: str, is_ascii: bool, is_slash_escaped: bool, escaped: re.Pattern[str]
) -> str:
    text = json.dumps(leading + segment.text + trailing, ensure_ascii=is_ascii)
    text = escaped.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.replace("/", r"\/") if is_slash_escaped else text
