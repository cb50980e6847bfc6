"""Routes of the inspector's app: the web page and its API, which `openapi.json` next to this file describes."""

import base64
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from itertools import chain, islice

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from heedful.errors import InputError
from heedful.inspector.development import read_run, run_of, snapshots
from heedful.inspector.page import Page
from heedful.server.application import body, streamed
from heedful.server.engine import Engine, NotFoundError
from heedful.server.inspector.experiment_handlers import ExperimentHandlers
from heedful.server.inspector.inspection_handlers import (
    MAX_REQUEST_WITH_FILE,
    InspectionHandlers,
    OpenedFile,
    check_transformer,
    page_facts,
    question_of,
)
from heedful.server.limits import UploadRoute

TRACE = "/api/v1/traces/{id:str}"
MODEL = "/api/v1/models/{name:path}"


def inspector_routes(
    engine: Engine, page: Page, sample: tuple[Sequence[str], Sequence[str]], opened: OpenedFile | None = None
) -> list[BaseRoute]:
    """Return the routes of the inspector's app, for `heedful.server.application.application`.

    Args:
        engine: The engine with the models, which other apps of the server may share.
        page: The web page to serve.
        sample: Source sentences and reference translations for measuring the importance of heads.
        opened: An image or audio file to inspect when the page opens; if None, the page waits for input.
    """
    models, inspections = ModelHandlers(engine, sample, opened), InspectionHandlers(engine, page)
    experiments = ExperimentHandlers(engine, inspections, sample)
    return [
        Route("/", partial(show_page, page.html, page.policy)),
        Route("/api/v1/openapi.json", describe),
        Route("/api/v1/models", models.list_models),
        Route("/api/v1/file", models.read_file),
        Route(f"{MODEL}/development", models.read_development),
        UploadRoute(f"{MODEL}/heads", models.measure_heads, MAX_REQUEST_WITH_FILE),
        UploadRoute("/api/v1/traces", inspections.make, MAX_REQUEST_WITH_FILE),
        Route(TRACE, inspections.read),
        Route(f"{TRACE}/tensors", inspections.read_tensors),
        Route(f"{TRACE}/attribution", inspections.read_attribution),
        Route(f"{TRACE}/neighbours", inspections.read_neighbours),
        Route(f"{TRACE}/export.html", inspections.export),
        Route(f"{TRACE}/without", experiments.switch_off, methods=["POST"]),
        Route("/api/v1/costs", experiments.weigh, methods=["POST"]),
        Route("/api/v1/sweeps", experiments.sweep, methods=["POST"]),
        Route("/api/v1/probes/bias", experiments.probe, methods=["POST"]),
    ]


async def show_page(html: str, policy: str, request: Request) -> Response:
    del request
    return HTMLResponse(html, headers={"Cache-Control": "no-cache", "Content-Security-Policy": policy})


async def describe(request: Request) -> Response:
    del request
    return Response((files("heedful.server.inspector") / "openapi.json").read_bytes(), media_type="application/json")


class ModelHandlers:
    """Request handlers for the models of an engine: facts, training curves, attention heads at each checkpoint.

    Args:
        engine: The engine with the models.
        sample: Source sentences and reference translations for measuring the importance of heads.
        opened: The file that the server was started with, or None.
    """

    def __init__(
        self, engine: Engine, sample: tuple[Sequence[str], Sequence[str]], opened: OpenedFile | None = None
    ) -> None:
        self.engine = engine
        self.sample = sample
        self.opened = opened

    async def list_models(self, request: Request) -> Response:
        del request
        models = [page_facts(model) for model in self.engine.models.values()]
        name = self.opened and self.opened.name
        return JSONResponse({"models": models, "sample": len(self.sample[0]), "file": name})

    async def read_file(self, request: Request) -> Response:
        del request
        if self.opened is None:
            raise NotFoundError("the server was started without a file; choose one on the page")
        return JSONResponse({"name": self.opened.name, "file": base64.b64encode(self.opened.content).decode()})

    async def read_development(self, request: Request) -> Response:
        """Return the training curves and checkpoints of a model's run; null for a model without a run."""
        folder = run_of(self.engine.model(request.path_params["name"]).loaded.path)
        if folder is None:
            return JSONResponse(None)
        run = await self.engine.run(partial(read_run, folder))
        return JSONResponse({"steps": run.steps, "best": run.best, "curves": run.curves})

    async def measure_heads(self, request: Request) -> Response:
        """Return the measures of attention heads at each checkpoint of a run, as server-sent events."""
        question = question_of(await body(request))
        model = self.engine.model(request.path_params["name"])
        folder = run_of(model.loaded.path)
        if folder is None:
            raise InputError("that model does not have a run folder with checkpoints; open a run")
        check_transformer(model)
        steps = snapshots(folder, question.input, question.target, self.engine.watch)
        # Measure the first checkpoint before the response begins, so that an invalid input gets a status, not an event.
        first = await self.engine.run(lambda: list(islice(steps, 1)))
        return streamed(self.engine, (asdict(snapshot) for snapshot in chain(first, steps)))
