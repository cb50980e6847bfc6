"""Starlette application of a server: access control, error answers, JSON bodies of requests, server-sent events."""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from hashlib import sha256
from typing import Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import HeedfulError, InputError
from heedful.server.engine import BusyError, CancelledError, Engine, UnknownError
from heedful.server.limits import Limits, TooLongError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
POLICY = "default-src 'none'; frame-ancestors 'none'"  # of answers that are not pages
STATUS = {HeedfulError: 500, InputError: 400, UnknownError: 404, TooLongError: 413, BusyError: 503, CancelledError: 503}

T = TypeVar("T")


class Guard:
    """ASGI middleware that refuses requests of wrong Host, Origin or token, and adds security headers to answers.

    Args:
        app: the ASGI application that answers requests that are let in; an answer that is a page has the
            Content-Security-Policy that the page needs, and all others get `POLICY`.
        token: the token that a visitor has to send once, as `?token=`; None: no token, but the Host of a request has
            to be a loopback name.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app = app
        self.token = token
        # A browser sends the cookies of a host to all of its ports: each server has a cookie with another name.
        self.cookie = f"heedful-{sha256((token or '').encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Content-Security-Policy", POLICY)
            await send(message)

        answer = self.refusal(scope) or self.entrance(scope)
        await (answer or self.app)(scope, receive, send_guarded)

    def refusal(self, scope: Scope) -> Response | None:
        """Refuse a request with a wrong Host (DNS rebinding) or a foreign Origin; None if both are right."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and split(f"//{host}").hostname not in LOOPBACK:
            return PlainTextResponse(f"this server is not called {host!a}\n", 421)
        origin = headers.get("origin")
        if origin is not None and split(origin).netloc != host:
            return PlainTextResponse("a page of another server may not ask this one\n", 403)
        return None

    def entrance(self, scope: Scope) -> Response | None:
        """Check the token: turn `?token=` into a cookie, refuse requests with neither; None lets the request in."""
        if self.token is None:
            return None
        [token] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        if self.is_token(token):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(self.cookie, token, httponly=True, samesite="strict")
            return answer
        cookies = cookie_parser(Headers(scope=scope).get("cookie", ""))
        if self.is_token(cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse("open the address that heedful printed, with its token\n", 401)

    def is_token(self, text: str) -> bool:
        """True if the text is the server's token; compares in constant time."""
        return self.token is not None and secrets.compare_digest(text.encode(), self.token.encode())


def split(address: str) -> SplitResult:
    """Split a URL into its parts, which are empty if the URL is invalid."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def application(
    routes: Sequence[BaseRoute], token: str | None = None, ready: Callable[[], object] = lambda: None
) -> Starlette:
    """Make the Starlette application of a server from the routes of its apps.

    Args:
        routes: the routes of all apps; of two routes that fit a request, the first answers.
        token: the token that visitors have to send; None: no token, and the Host has to be a loopback name.
        ready: called when the application has started.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        ready()
        yield

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token), Middleware(Limits, routes=routes)],
        exception_handlers={HeedfulError: answer_error, HTTPException: answer_http_error},
        lifespan=lifespan,
    )


async def answer_error(request: Request, error: Any) -> Response:
    """Answer a request whose handler raised an error of heedful: its message as JSON, with the status in `STATUS`."""
    del request
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return JSONResponse({"error": str(error)}, status, {"Retry-After": "1"} if status == 503 else None)


async def answer_http_error(request: Request, error: Any) -> Response:
    """Answer a request that no route takes, such as one of an unknown path or method: the reason as JSON."""
    del request
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def body(request: Request) -> dict[str, Any]:
    """Parse the body of a request as a JSON object.

    Raises:
        InputError: the body is not a JSON object, or has numbers or characters that JSON does not have.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")  # NaN and Infinity, which Python reads although JSON has neither

    try:
        values = json.loads(await request.body(), parse_constant=refuse)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()  # 1e400 is read as infinity
    except UnicodeEncodeError as error:
        raise InputError("the request holds half a character (a lone surrogate)") from error
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from error
    except RecursionError as error:
        raise InputError("the request is nested too deep") from error
    if not isinstance(values, dict):
        raise InputError("the request is no JSON object")
    return values


def read_as(kind: type[T], values: dict[str, Any]) -> T:
    """Make a dataclass from JSON values by field name, strictly validated; the error names the value that is wrong."""
    names = {field.name for field in fields(cast("Any", kind))}
    if unknown := values.keys() - names:
        raise InputError(f"there is no {', '.join(sorted(unknown))} to give; there are {', '.join(sorted(names))}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        raise InputError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from error


def number(request: Request, name: str) -> int | None:
    """Parse a query parameter of a request as a whole number from 0; None if the parameter is missing."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name}={text[:20]!r} is no number from 0")
    return int(text)


def streamed(engine: Engine, steps: Iterator[dict[str, Any]]) -> StreamingResponse:
    """Make a response with a server-sent event per step, computed by the engine; an error is sent as the last event.

    The computation ends if the client disconnects.
    """

    async def events() -> AsyncIterator[str]:
        try:
            async for values in engine.stream(steps):
                yield f"data: {json.dumps(values)}\n\n"
        except HeedfulError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
