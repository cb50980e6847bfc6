"""What a request says, checked: JSON into the dataclass that is meant."""

import json
from dataclasses import fields
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from heedful.errors import InputError

LONGEST = 100_000  # bytes of a request
T = TypeVar("T")


async def body(request: Request) -> dict[str, Any]:
    """The JSON object that a request brings.

    Raises:
        InputError: it brings none, or one that is too long.
    """
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LONGEST:
            raise InputError(f"a request has at most {LONGEST:,} bytes; ask about less text")
    try:
        found = json.loads(data)
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError("the request is no JSON object")
    return found


def read_as(kind: type[T], values: dict[str, Any]) -> T:
    """A dataclass from the values of its fields.

    Raises:
        InputError: a value does not fit, is missing, or belongs to no field; the message names it.
    """
    names = {field.name for field in fields(cast("Any", kind))}
    if unknown := values.keys() - names:
        raise InputError(f"there is no {', '.join(sorted(unknown))} to give; there are {', '.join(sorted(names))}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        raise InputError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from error


def number(request: Request, name: str) -> int | None:
    """A whole number in the address.

    Raises:
        InputError: it is none.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name}={text[:20]!r} is no number from 0")
    return int(text)
