"""Limits of the HTTP server: number and idle time of connections, and size and arrival time of requests."""

from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterable
from socket import socket
from typing import Any

import uvicorn
from anyio import create_task_group, fail_after, sleep_forever
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.errors import InputError

MAX_CONNECTIONS = 100  # at a time; each is an open file, often limited to 256 per process
BACKLOG = 32  # connections waiting to be accepted; asyncio may accept all of them in one step
HEADERS = 10.0  # seconds within which the headers of a request must arrive
IDLE = 15  # seconds that a connection may be idle between two requests
READING = 30.0  # seconds within which a client must read some of its response
DRAINING = 3  # seconds for running responses when the server shuts down
MAX_REQUEST = 100_000  # bytes of a request's body
PATIENCE = 30.0  # seconds within which the body of a request must arrive


class Server(uvicorn.Server):
    """A uvicorn server with limits on the number and the idle time of connections.

    Args:
        app: The ASGI application.
        closing: Called when the server shuts down, before it waits for running responses.
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
        # First stop the running job, so that its response ends before the time for running responses is over.
        self.closing()
        # uvicorn would wait for the rest of an incomplete request.
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.receiving:
                connection.transport.abort()
        await super().shutdown(sockets)


class Connection(H11Protocol):
    """HTTP connection that is closed if request headers do not arrive in time, or if the client stops reading.

    If there are too many connections, the one that has been idle longest is closed.

    Attributes:
        headers_due: Timer that closes the connection unless a request arrives; None during a response.
        reading_due: Timer that closes the connection unless the client reads; None while nothing waits to be read.
        since: Event loop time, in seconds, at which the client last sent something.
    """

    headers_due: TimerHandle | None = None
    reading_due: TimerHandle | None = None
    since: float

    @property
    def answering(self) -> bool:
        """True if the response to a request on this connection is incomplete."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def receiving(self) -> bool:
        """True if the body of a request on this connection is incomplete."""
        return self.answering and self.cycle.more_body

    def connection_made(self, transport: Transport) -> None:
        """Wait for a request on a new connection; if there are too many, close the one that has been idle longest."""
        super().connection_made(transport)
        self.await_headers()
        if len(self.connections) > MAX_CONNECTIONS:
            others = [other for other in self.connections if isinstance(other, Connection)]
            # Connections with a response in progress stay open.
            idle = [other for other in others if other.receiving or not other.answering]
            longest_idle = min(idle, key=lambda other: other.since)
            # The event loop calls `connection_lost` later, and the next new connection must not count this one.
            self.connections.discard(longest_idle)
            longest_idle.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.await_headers()

    def await_headers(self) -> None:
        """Start the timer that closes a connection after `HEADERS` seconds without a request.

        The timer is stopped during a response.
        """
        self.since = self.loop.time()
        if self.answering:
            self.headers_due = cancel(self.headers_due)
        # A running timer is not restarted, so that headers that arrive byte by byte also time out.
        elif self.headers_due is None:
            self.headers_due = self.loop.call_later(HEADERS, self.give_up)

    def give_up(self) -> None:
        self.headers_due = None
        if not self.answering:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()  # the write buffer is full: check that the client reads
        self.await_reader(self.transport.get_write_buffer_size() + 1)  # + 1: this call only starts the timer

    def await_reader(self, before: int) -> None:
        """Close the connection if none of the `before` buffered bytes were read; else check again after `READING`."""
        size = self.transport.get_write_buffer_size()
        if size >= before:
            self.transport.abort()
        else:
            self.reading_due = self.loop.call_later(READING, self.await_reader, size)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.reading_due = cancel(self.reading_due)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.headers_due, self.reading_due = cancel(self.headers_due), cancel(self.reading_due)


def cancel(timer: TimerHandle | None) -> None:
    """Cancel a timer, if there is one; return None, to be stored in its place."""
    if timer is not None:
        timer.cancel()


class TooLongError(InputError):
    """Raised if a part of a request exceeds its limit, although the whole request does not."""


class UploadRoute(Route):
    """Route for requests with a file, which have a higher limit of `longest` bytes."""

    def __init__(self, path: str, endpoint: Callable[..., Any], longest: int) -> None:
        super().__init__(path, endpoint, methods=["POST"])
        self.longest = longest


class Limits:
    """Middleware that reads a whole request before it is handled, and cancels the response if the client disconnects.

    Args:
        app: The ASGI application.
        longest: Maximum number of bytes of a request's body, except on an `UploadRoute`.
        patience: Seconds within which a request's body must arrive.
        routes: The routes of the application, which may include `UploadRoute`s.
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
        messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

        # The application waits for a disconnect after the body. `cancel_when_gone` reads that message instead.
        async def replay() -> Message:
            if not messages:
                await sleep_forever()
            return messages.pop()

        async with create_task_group() as group:

            async def cancel_when_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(cancel_when_gone)
            await self.app(scope, replay, send)
            group.cancel_scope.cancel()

    async def read(self, receive: Receive, longest: int) -> bytes | Response:
        """Read the body of a request; return an error response if it is too long or arrives too slowly.

        The body is shorter than announced if the client disconnects.
        """
        body, more = bytearray(), True
        try:
            with fail_after(self.patience):
                while more:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    # Counted as it arrives, because Content-Length may be missing or wrong.
                    if len(body) > longest:
                        error = {"error": f"a request may have at most {longest:,} bytes; send less"}
                        return JSONResponse(error, 413)
                return bytes(body)
        except TimeoutError:
            problem = f"the request did not arrive within {self.patience:g} seconds"
            error = {"error": f"{problem}; send less, or use a faster connection"}
            return JSONResponse(error, 408)
