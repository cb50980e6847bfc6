"""Starlette application of a server: access control, error responses, JSON request bodies, server-sent events."""

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
from heedful.server.engine import BusyError, CancelledError, Engine, NotFoundError
from heedful.server.limits import Limits, TooLongError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
POLICY = "default-src 'none'; frame-ancestors 'none'"  # for responses other than pages
STATUS = {
    HeedfulError: 500,
    InputError: 400,
    NotFoundError: 404,
    TooLongError: 413,
    BusyError: 503,
    CancelledError: 503,
}

T = TypeVar("T")


class Guard:
    """ASGI middleware that rejects requests with a wrong Host, Origin or token, and adds security headers to responses.

    A response without a Content-Security-Policy gets `POLICY`; pages set their own.

    Args:
        app: The ASGI application.
        token: The token that a visitor has to send once, as `?token=`. If None, none is needed, but the Host of a
            request must be a loopback name.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app = app
        self.token = token
        # A browser sends the cookies of a host to all of its ports, so each server has its own cookie name.
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

        await (self.rejection(scope) or self.app)(scope, receive, send_guarded)

    def rejection(self, scope: Scope) -> Response | None:
        """Return the response that rejects or redirects a request, or None to admit it.

        A foreign Origin is rejected; so is a request without the token or, if the server has no token, with a Host that
        is not a loopback name. A request with the right `?token=` is redirected, and the token becomes a cookie.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # Without a token, a page whose host name an attacker resolves to this machine could send requests (DNS
        # rebinding).
        if self.token is None and split(f"//{host}").hostname not in LOOPBACK:
            return PlainTextResponse(f"{host!a} is not a name of this server\n", 421)
        origin = headers.get("origin")
        # Browsers send the Origin of the page that makes a request; other clients may leave it out.
        if origin is not None and split(origin).netloc != host:
            return PlainTextResponse("requests from pages of other sites are not allowed\n", 403)
        if self.token is None:
            return None
        expected = self.token.encode()  # compared in constant time
        [token] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        if secrets.compare_digest(token.encode(), expected):
            # The redirect removes the token from the URL, which a browser keeps in its history. A strict cookie is
            # not sent with requests from other sites.
            response = RedirectResponse(scope["path"], 303)
            response.set_cookie(self.cookie, token, httponly=True, samesite="strict")
            return response
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        if secrets.compare_digest(cookie.encode(), expected):
            return None
        return PlainTextResponse("open the URL that heedful printed, with its token\n", 401)


def split(url: str) -> SplitResult:
    """Split a URL into its parts, which are empty if the URL is invalid."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def application(
    routes: Sequence[BaseRoute], token: str | None = None, ready: Callable[[], object] = lambda: None
) -> Starlette:
    """Return the Starlette application of a server with the routes of its apps.

    Args:
        routes: The routes of all apps; the first that matches a request handles it.
        token: The token that visitors have to send. If None, none is needed, but the Host must be a loopback name.
        ready: Called when the application has started.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        ready()
        yield

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token), Middleware(Limits, routes=routes)],
        exception_handlers=dict.fromkeys((HeedfulError, HTTPException), answer_error),
        lifespan=lifespan,
    )


async def answer_error(request: Request, error: Any) -> Response:
    """Return the message of an error as JSON; the status of a HeedfulError is in `STATUS`."""
    del request
    if isinstance(error, HTTPException):  # such as an unknown path or method
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    # The most specific class of the error decides.
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return JSONResponse({"error": str(error)}, status, {"Retry-After": "1"} if status == 503 else None)


async def body(request: Request) -> dict[str, Any]:
    """Parse the body of a request as a JSON object."""

    def reject(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")  # NaN and Infinity, which Python accepts and JSON does not

    try:
        values = json.loads(await request.body(), parse_constant=reject)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()  # 1e400 is parsed as infinity
    except UnicodeEncodeError as error:
        raise InputError("the request contains half a character (a lone surrogate)") from error
    except ValueError as error:
        raise InputError(f"the request is not valid JSON: {error}") from error
    except RecursionError as error:
        raise InputError("the request is nested too deeply") from error
    if not isinstance(values, dict):
        raise InputError("the request is not a JSON object")
    return values


def read_as(kind: type[T], values: dict[str, Any]) -> T:
    """Create a dataclass from JSON values by field name, strictly validated; the error names the invalid value."""
    names = {field.name for field in fields(cast("Any", kind))}
    if unknown := values.keys() - names:
        raise InputError(f"unknown fields: {', '.join(sorted(unknown))}; valid names are {', '.join(sorted(names))}")
    try:
        # As JSON text: strict validation of Python values would reject a list where the dataclass has a tuple.
        return TypeAdapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise InputError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def number(request: Request, name: str) -> int | None:
    """Parse a query parameter as a non-negative integer of at most 9 digits; None if the parameter is missing."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name}={text[:20]!r} is not a non-negative integer")
    return int(text)


def streamed(engine: Engine, steps: Iterator[dict[str, Any]]) -> StreamingResponse:
    """Return a response with a server-sent event per step, computed by the engine; an error becomes the last event.

    The computation stops if the client disconnects.
    """

    async def events() -> AsyncIterator[str]:
        try:
            async for values in engine.stream(steps):
                yield f"data: {json.dumps(values)}\n\n"
        # The status is already sent, so an error can only be an event.
        except HeedfulError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
