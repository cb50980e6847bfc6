"""Starlette application of a server: the routes of its apps, with access control, limits and error answers.

An app is a list of routes, or a `Mount` of routes under a prefix, whose handlers raise errors instead of answering
them. Apps are put side by side: `application([*inspector_routes(engine, page, sample), Mount("/other", routes=...)])`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from heedful.errors import HeedfulError, InputError
from heedful.serve.engine import UnknownError
from heedful.serve.guard import Guard
from heedful.serve.limits import Limits, TooLongError
from heedful.serve.worker import BusyError, CancelledError

STATUS = {HeedfulError: 500, InputError: 400, UnknownError: 404, TooLongError: 413, BusyError: 503, CancelledError: 503}


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
