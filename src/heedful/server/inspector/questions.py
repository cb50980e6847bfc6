"""Questions of the page as requests: JSON whose picture or sound, if there is one, is in base64; nothing is stored."""

import base64
import binascii
import json
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.look import Question
from heedful.server.engine import UnknownError
from heedful.server.limits import LONGEST, TooLongError
from heedful.server.requests import read_as

LARGEST = 8_000_000  # bytes of a picture or sound
LONGEST_WITH_FILE = LONGEST + 4 * (LARGEST // 3 + 1)  # bytes of a request


@dataclass(frozen=True)
class OpenedFile:
    """Picture or sound that the server was started with, for the page to ask about first.

    Attributes:
        name: the name of the file, without its folder.
        content: all bytes of the file.
    """

    name: str
    content: bytes


def question_of(values: dict[str, Any]) -> Question:
    """Make a question from JSON values, of which "file" is a file in base64.

    Raises:
        TooLongError: the question, or its file, is too long.
        InputError: a value does not fit.
    """
    encoded = values.pop("file", None)
    if len(json.dumps(values, ensure_ascii=False).encode()) > LONGEST:
        raise TooLongError(f"a question has at most {LONGEST:,} bytes beside its file; ask about less text")
    question = read_as(Question, values)
    return question if encoded is None else replace(question, file=content_of(encoded))


def content_of(encoded: object) -> bytes:
    """Decode the content of a file from base64.

    Raises:
        TooLongError: it is too large.
        InputError: it is no base64, or empty.
    """
    try:
        content = base64.b64decode(encoded.encode() if isinstance(encoded, str) else b"?", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InputError(f"file: is no base64 ({error})") from error
    if not content:
        raise InputError("the file is empty; choose another")
    if len(content) > LARGEST:
        raise TooLongError(f"the file has {len(content):,} bytes, more than {LARGEST:,}; make it smaller")
    return content


class FileHandlers:
    """Request handlers for the file that the server was started with.

    Args:
        opened: the file; None: there is none.
    """

    def __init__(self, opened: OpenedFile | None) -> None:
        self.opened = opened

    async def read(self, request: Request) -> Response:
        """Answer a request for the file that the server was started with: its name, and its content in base64."""
        del request
        if self.opened is None:
            raise UnknownError("the server was started without a file; choose one on the page")
        return JSONResponse({"name": self.opened.name, "file": base64.b64encode(self.opened.content).decode()})
