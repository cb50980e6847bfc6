"""Limits on HTTP requests: size, time to arrive, and cancellation when the client disconnects."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from anyio import CancelScope, create_task_group, fail_after, sleep_forever
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import InputError

LONGEST = 100_000  # bytes of a request
PATIENCE = 30.0  # seconds in which a request has to arrive


class TooLongError(InputError):
    """Raised if a part of a request is longer than it may be, although the request as a whole is not."""


class UploadRoute(Route):
    """Route whose requests may be longer than others, because they bring a file.

    Attributes:
        longest: the most bytes of a request's body.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], longest: int) -> None:
        super().__init__(path, endpoint, methods=["POST"])
        self.longest = longest


class Limits:
    """Middleware that reads a request, hands it on as a whole, and cancels the answer when the client disconnects.

    Args:
        app: the ASGI application that answers requests.
        longest: the most bytes of a request's body, except on an `UploadRoute`.
        patience: the seconds in which a request's body has to arrive.
        routes: the routes of the application, of which some may be an `UploadRoute`.
    """

    def __init__(
        self, app: ASGIApp, longest: int = LONGEST, patience: float = PATIENCE, routes: Iterable[BaseRoute] = ()
    ) -> None:
        self.app = app
        self.longest = longest
        self.patience = patience
        self.uploads = [route for route in routes if isinstance(route, UploadRoute)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request within the limits and pass it on to the application; cancel that if the client disconnects."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = await self.read(receive, self.limit(scope))
        if isinstance(found, Response):
            await found(scope, receive, send)
            return
        async with create_task_group() as group:
            group.start_soon(cancel_when_gone, receive, group.cancel_scope)
            await self.app(scope, replayed(found), send)
            group.cancel_scope.cancel()

    def limit(self, scope: Scope) -> int:
        """Return the most bytes that the body of a request may have."""
        taking = (route for route in self.uploads if route.matches(scope)[0] == Match.FULL)
        return next((route.longest for route in taking), self.longest)

    async def read(self, receive: Receive, longest: int) -> bytes | Response:
        """Read the body of a request; return an error response if the body is too long or arrives too slowly."""
        body = bytearray()
        try:
            with fail_after(self.patience):
                async for part in parts(receive):
                    body += part
                    if len(body) > longest:
                        return refused(f"a request has at most {longest:,} bytes; send less", 413)
                return bytes(body)
        except TimeoutError:
            return refused(f"the request was not there after {self.patience:g} seconds; send it faster", 408)


async def parts(receive: Receive) -> AsyncIterator[bytes]:
    """Iterate over the parts of a request's body as they arrive; ends early if the client disconnects."""
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)


def refused(words: str, status: int) -> Response:
    """Make an error response of the API: a JSON object with the message."""
    return JSONResponse({"error": words}, status)


def replayed(body: bytes) -> Receive:
    """Make an ASGI `receive` callable that gives a request body read before, and then waits forever."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await sleep_forever()
        return messages.pop()

    return receive


async def cancel_when_gone(receive: Receive, scope: CancelScope) -> None:
    """Wait until a client has disconnected, or has its answer, and cancel what is left to do for it."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
