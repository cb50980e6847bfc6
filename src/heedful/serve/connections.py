"""Limits on connections that uvicorn lacks: how long a connection may be silent, and how many there may be."""

from asyncio import TimerHandle, Transport
from collections.abc import Callable
from socket import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 100  # connections at a time; each is an open file, of which a process often may have 256 only
BACKLOG = 32  # connections that wait to be accepted, which asyncio does all at once
HEADERS = 10.0  # seconds until a request has begun and said its headers
IDLE = 15  # seconds between two requests
READING = 30.0  # seconds in which a client has to read something of its answer
DRAINING = 3  # seconds in which answers under way have to end when the server does


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
        """Shut the server down, after the callback `closing` has told running computations to stop.

        Requests of which only a part has come are not waited for.
        """
        self.closing()
        for one in list(self.server_state.connections):
            if isinstance(one, Connection) and one.receiving:
                one.transport.abort()
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
        """Begin to wait for a request on a new connection, and close the longest silent one if there are too many."""
        super().connection_made(transport)
        self.await_headers()
        if len(self.connections) > MOST:
            mine = [one for one in self.connections if isinstance(one, Connection)]
            silent = [one for one in mine if one.receiving or not one.answering]
            longest = min(silent, key=lambda one: one.since)
            self.connections.discard(longest)
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Process bytes from the client, and wait for the rest of the request's headers."""
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
        """Close the connection if no request has come in time."""
        self.headers_due = None
        if not self.answering:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Start to watch whether the client reads its answer, as the write buffer is full."""
        super().pause_writing()
        self.await_reader(self.transport.get_write_buffer_size() + 1)

    def await_reader(self, before: int) -> None:
        """Close the connection if the client has read nothing since `before` bytes were left, else check again."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self.reading_due = self.loop.call_later(READING, self.await_reader, left)

    def resume_writing(self) -> None:
        """Stop watching whether the client reads, as the write buffer has drained."""
        super().resume_writing()
        self.reading_due = cancelled(self.reading_due)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of a connection that is closed."""
        super().connection_lost(exc)
        self.headers_due, self.reading_due = cancelled(self.headers_due), cancelled(self.reading_due)


def cancelled(timer: TimerHandle | None) -> None:
    """Cancel a timer of the event loop, unless it is None."""
    if timer is not None:
        timer.cancel()
