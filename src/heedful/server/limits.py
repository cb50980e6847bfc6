"""Limits of the HTTP server: connections that may be open or silent, size of requests, and time to arrive."""

from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterable
from socket import socket
from typing import Any

import uvicorn
from anyio import CancelScope, create_task_group, fail_after, sleep_forever
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.errors import InputError

MAX_CONNECTIONS = 100  # at a time; each is an open file, of which a process often may have 256 only
BACKLOG = 32  # connections that wait to be accepted, which asyncio does all at once
HEADERS = 10.0  # seconds until a request has begun and sent its headers
IDLE = 15  # seconds between two requests
READING = 30.0  # seconds in which a client has to read something of its answer
DRAINING = 3  # seconds in which answers under way have to end when the server does
MAX_REQUEST = 100_000  # bytes
PATIENCE = 30.0  # seconds in which a request has to arrive


class Server(uvicorn.Server):
    """A uvicorn server with limits on the number and the silence of connections.

    Args:
        app: the ASGI application that answers requests.
        closing: called when the server shuts down, before it waits for answers under way.
    """

    def __init__(self, app: ASGIApp, closing: Callable[[], object]) -> None:
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            backlog=BACKLOG,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=DRAINING,
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        super().__init__(config)
        self.closing = closing

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self.closing()
        # Requests of which only a part has come are not waited for.
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.receiving:
                connection.transport.abort()
        await super().shutdown(sockets)


class Connection(H11Protocol):
    """HTTP connection that is closed if its client is silent too long, or silent longest among too many connections.

    Attributes:
        headers_due: timer that closes the connection unless a request has come; None while a request is answered.
        reading_due: timer that closes the connection unless the client reads; None while nothing waits to be read.
        since: the time of the event loop, in seconds, when the client last sent something.
    """

    headers_due: TimerHandle | None = None
    reading_due: TimerHandle | None = None
    since: float

    @property
    def answering(self) -> bool:
        """True if the connection has a request that is not fully answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def receiving(self) -> bool:
        """True if the connection has a request whose body has not come to its end."""
        return self.answering and self.cycle.more_body

    def connection_made(self, transport: Transport) -> None:
        """Wait for a request on a new connection, and close the longest silent one if there are too many."""
        super().connection_made(transport)
        self.await_headers()
        if len(self.connections) > MAX_CONNECTIONS:
            others = [other for other in self.connections if isinstance(other, Connection)]
            silent = [other for other in others if other.receiving or not other.answering]
            longest = min(silent, key=lambda other: other.since)
            self.connections.discard(longest)
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.await_headers()

    def await_headers(self) -> None:
        """Start the timer that closes a connection without a request after `HEADERS` seconds; none while answering."""
        self.since = self.loop.time()
        if self.answering:
            self.headers_due = cancelled(self.headers_due)
        elif self.headers_due is None:
            self.headers_due = self.loop.call_later(HEADERS, self.give_up)

    def give_up(self) -> None:
        self.headers_due = None
        if not self.answering:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()  # the write buffer is full: does the client read?
        self.await_reader(self.transport.get_write_buffer_size() + 1)

    def await_reader(self, before: int) -> None:
        """Close the connection if the client has read nothing since `before` bytes were waiting, else check again."""
        size = self.transport.get_write_buffer_size()
        if size >= before:
            self.transport.abort()
        else:
            self.reading_due = self.loop.call_later(READING, self.await_reader, size)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.reading_due = cancelled(self.reading_due)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.headers_due, self.reading_due = cancelled(self.headers_due), cancelled(self.reading_due)


def cancelled(timer: TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class TooLongError(InputError):
    """Raised if a part of a request is longer than it may be, although the request as a whole is not."""


class UploadRoute(Route):
    """Route whose requests may be longer than others (`longest` bytes), because they bring a file."""

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
        self, app: ASGIApp, longest: int = MAX_REQUEST, patience: float = PATIENCE, routes: Iterable[BaseRoute] = ()
    ) -> None:
        self.app = app
        self.longest = longest
        self.patience = patience
        self.uploads = [route for route in routes if isinstance(route, UploadRoute)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        uploads = (route for route in self.uploads if route.matches(scope)[0] == Match.FULL)
        longest = next((route.longest for route in uploads), self.longest)
        content = await self.read(receive, longest)
        if isinstance(content, Response):
            await content(scope, receive, send)
            return
        async with create_task_group() as group:
            group.start_soon(cancel_when_gone, receive, group.cancel_scope)
            await self.app(scope, replayed(content), send)
            group.cancel_scope.cancel()

    async def read(self, receive: Receive, longest: int) -> bytes | Response:
        """Read the body of a request; return an error response if the body is too long or arrives too slowly.

        The body is shorter than announced if the client disconnects.
        """
        body, more = bytearray(), True
        try:
            with fail_after(self.patience):
                while more:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > longest:
                        error = {"error": f"a request has at most {longest:,} bytes; send less"}
                        return JSONResponse(error, 413)
                return bytes(body)
        except TimeoutError:
            error = {"error": f"the request was not there after {self.patience:g} seconds; send it faster"}
            return JSONResponse(error, 408)


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
