"""Routes of the inspector's app: the web page and its API, which `openapi.json` beside this file describes."""

from collections.abc import Sequence
from functools import partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from heedful.inspector.page import Page
from heedful.server.engine import Engine
from heedful.server.inspector.experiments import ExperimentHandlers
from heedful.server.inspector.looks import LookHandlers
from heedful.server.inspector.models import ModelHandlers
from heedful.server.inspector.questions import LONGEST_WITH_FILE, FileHandlers, OpenedFile
from heedful.server.limits import UploadRoute

TRACE = "/api/v1/traces/{id:str}"
MODEL = "/api/v1/models/{name:path}"


def inspector_routes(
    engine: Engine, page: Page, sample: tuple[Sequence[str], Sequence[str]], opened: OpenedFile | None = None
) -> list[BaseRoute]:
    """Make the routes of the inspector's app, for `heedful.server.application.application`.

    Args:
        engine: the engine with the models, which other apps of the server may use as well.
        page: the web page to serve.
        sample: source sentences and reference translations, on which the worth of heads is measured.
        opened: a picture or sound that the page asks about first; None: it waits for a question.
    """
    models, looks = ModelHandlers(engine, sample, opened), LookHandlers(engine, page)
    experiments = ExperimentHandlers(engine, looks, sample)
    return [
        Route("/", partial(show_page, page.html, page.policy)),
        Route("/api/v1/openapi.json", describe),
        Route("/api/v1/models", models.list_models),
        Route("/api/v1/file", FileHandlers(opened).read),
        Route(f"{MODEL}/development", models.read_development),
        UploadRoute(f"{MODEL}/heads", models.measure_heads, LONGEST_WITH_FILE),
        UploadRoute("/api/v1/traces", looks.make, LONGEST_WITH_FILE),
        Route(TRACE, looks.read),
        Route(f"{TRACE}/tensors", looks.read_tensors),
        Route(f"{TRACE}/attribution", looks.read_attribution),
        Route(f"{TRACE}/neighbours", looks.read_neighbours),
        Route(f"{TRACE}/export.html", looks.export),
        Route(f"{TRACE}/without", experiments.switch_off, methods=["POST"]),
        Route("/api/v1/costs", experiments.weigh, methods=["POST"]),
        Route("/api/v1/sweeps", experiments.sweep, methods=["POST"]),
        Route("/api/v1/probes/bias", experiments.probe, methods=["POST"]),
    ]


async def show_page(html: str, policy: str, request: Request) -> Response:
    """Answer a request for the inspector's web page, as HTML that loads nothing but itself."""
    del request
    return HTMLResponse(html, headers={"Cache-Control": "no-cache", "Content-Security-Policy": policy})


async def describe(request: Request) -> Response:
    """Answer a request for the OpenAPI description of the inspector's API."""
    del request
    return Response((files("heedful.server.inspector") / "openapi.json").read_bytes(), media_type="application/json")
