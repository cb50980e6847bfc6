"""Limits on HTTP requests: size, time to arrive, and cancellation when the client disconnects."""

from collections.abc import AsyncIterator

from anyio import CancelScope, create_task_group, fail_after, sleep_forever
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST = 100_000  # bytes of a request
PATIENCE = 30.0  # seconds in which a request has to arrive


class Limits:
    """Middleware that reads a request, hands it on as a whole, and cancels the answer when the client disconnects.

    Args:
        app: the ASGI application that answers requests.
        longest: the most bytes of a request's body.
        patience: the seconds in which a request's body has to arrive.
    """

    def __init__(self, app: ASGIApp, longest: int = LONGEST, patience: float = PATIENCE) -> None:
        self.app = app
        self.longest = longest
        self.patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request within the limits and pass it on to the application; cancel that if the client disconnects."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = await self.read(receive)
        if isinstance(found, Response):
            await found(scope, receive, send)
            return
        async with create_task_group() as group:
            group.start_soon(cancel_when_gone, receive, group.cancel_scope)
            await self.app(scope, replayed(found), send)
            group.cancel_scope.cancel()

    async def read(self, receive: Receive) -> bytes | Response:
        """Read the body of a request; return an error response if the body is too long or arrives too slowly."""
        body = b""
        try:
            with fail_after(self.patience):
                async for part in parts(receive):
                    body += part
                    if len(body) > self.longest:
                        return refused(f"a request has at most {self.longest:,} bytes; ask about less text", 413)
                return body
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
