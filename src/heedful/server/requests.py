"""HTTP requests and answers: JSON bodies into dataclasses, numbers of the query string, server-sent events."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import StreamingResponse

from heedful.errors import HeedfulError, InputError
from heedful.server.engine import Engine


def streamed(engine: Engine, steps: Iterator[dict[str, Any]]) -> StreamingResponse:
    """Make a response with a server-sent event per step, computed by the engine; an error is sent as the last event.

    The computation ends if the client disconnects.
    """

    async def events() -> AsyncIterator[str]:
        try:
            async for found in engine.stream(steps):
                yield f"data: {json.dumps(found)}\n\n"
        except HeedfulError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


T = TypeVar("T")


async def body(request: Request) -> dict[str, Any]:
    """Parse the body of a request as a JSON object.

    Raises:
        InputError: the body is no JSON object, or has numbers or characters that JSON does not have.
    """
    try:
        found = json.loads(await request.body(), parse_constant=refuse)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # 1e400 is read as infinity
    except UnicodeEncodeError as error:
        raise InputError("the request holds half a character (a lone surrogate)") from error
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from error
    except RecursionError as error:
        raise InputError("the request is nested too deep") from error
    if not isinstance(found, dict):
        raise InputError("the request is no JSON object")
    return found


def refuse(constant: str) -> None:
    """Raise a ValueError for NaN and Infinity, which Python reads although they are no JSON."""
    raise ValueError(f"{constant} is no number")


def read_as(kind: type[T], values: dict[str, Any]) -> T:
    """Make a dataclass from JSON values by field name, strictly validated.

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
    """Parse a query parameter of a request as a whole number from 0; None if the parameter is missing.

    Raises:
        InputError: the parameter is no such number.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name}={text[:20]!r} is no number from 0")
    return int(text)
