"""HTTP API of the inspector's page under `/api/v1`, described in `openapi.json` beside this file."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial, wraps
from importlib.resources import files
from itertools import chain, islice
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from heedful.checkpoint import LoadedModel
from heedful.errors import HeedfulError, InputError
from heedful.inspector.capture.forward_inputs import model_of
from heedful.inspector.development import read_run, run_of, snapshots
from heedful.inspector.look import Question, look
from heedful.inspector.measures.attribution import attribute
from heedful.inspector.measures.embeddings import neighbours, row
from heedful.inspector.overview import facts, overview
from heedful.inspector.page import Page
from heedful.nn.stack import stacks
from heedful.serve.experiments import Experiments
from heedful.serve.guard import Guard
from heedful.serve.limits import Limits
from heedful.serve.looks import Kept, Looks, key
from heedful.serve.requests import body, number, read_as
from heedful.serve.streaming import streamed
from heedful.serve.worker import BusyError, CancelledError, Worker

Handler = Callable[[Request], Awaitable[Response]]
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


class UnknownError(InputError):
    """Raised if a request names a model or an inspection that is not there; the answer has status 404."""


class Inspector:
    """Request handlers of the inspector, with its models and the looks (recorded inspections) made of them.

    Args:
        models: the models by the names that the page shows.
        page: the web page to serve.
        sample: source sentences and reference translations, on which the worth of heads is measured.
    """

    def __init__(
        self, models: Mapping[str, LoadedModel], page: Page, sample: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        self.facts = {
            name: facts(name, model.recipe, model.model) | {"trained": run_of(model.path) is not None}
            for name, model in models.items()
        }
        self.subjects: dict[str, Any] = {name: model.use() for name, model in models.items()}
        self.models = dict(models)
        self.page = page
        self.sample = sample
        self.looks = Looks()
        self.worker = Worker()
        for subject in self.subjects.values():
            for block in (block for stack in stacks(model_of(subject)) for block in stack.blocks):
                block.register_forward_pre_hook(self.worker.check)

    async def show(self, request: Request) -> Response:
        """Answer a request for the inspector's web page, as HTML."""
        del request
        return HTMLResponse(self.page.html, headers={"Cache-Control": "no-cache"})

    async def describe(self, request: Request) -> Response:
        """Answer a request for the OpenAPI description of the inspector's API."""
        del request
        return Response((files("heedful.serve") / "openapi.json").read_bytes(), media_type="application/json")

    async def list_models(self, request: Request) -> Response:
        """Answer a request for the list of models, and the number of sentences in the sample."""
        del request
        return JSONResponse({"models": list(self.facts.values()), "sample": len(self.sample[0])})

    async def make_trace(self, request: Request) -> Response:
        """Answer a request to inspect a model on a text; a repeated question is answered from the cache."""
        values = await body(request)
        model = self.model(values.pop("model", None))
        question = read_as(Question, values)
        name = key(model, question)
        kept = self.looks.get(name) or await self.worker.run(partial(self.look, name, model, question))
        self.looks.add(name, kept)
        return json_bytes(kept.shown, 201, {"Location": f"/api/v1/traces/{name}"})

    async def read_trace(self, request: Request) -> Response:
        """Answer a request for a look (a recorded inspection of a model) that was made before, as JSON."""
        return json_bytes(self.kept(request).shown, 200, FOREVER)

    async def read_tensors(self, request: Request) -> Response:
        """Answer a request for recorded tensors of a forward pass, of all heads or of one, as a safetensors file."""
        seen = self.kept(request).look
        names = request.query_params.get("names", "*").split(",")
        chosen = seen.trace.only(names, number(request, "head"))
        way = request.query_params.get("stored", "f32")
        content = b"".join(chosen.encoded(dict.fromkeys(chosen, way)))
        return Response(content, media_type="application/octet-stream", headers=FOREVER)

    async def read_attribution(self, request: Request) -> Response:
        """Answer a request for the attribution of one logit to the parts of the model."""
        seen = self.kept(request).look
        place, token = number(request, "place"), number(request, "token")
        if place is None or token is None:
            raise InputError("say which logit: place=0&token=7, both counted from 0")
        found = await self.worker.run(partial(attribute, seen.reading.model, seen.trace, place, token))
        return JSONResponse(asdict(found), headers=FOREVER)

    async def export(self, request: Request) -> Response:
        """Answer a request to export a recorded inspection of a model as one HTML file that needs no server."""
        kept = self.kept(request)
        shown = kept.overview
        head = request.query_params.get("block") or shown["blocks"][-1]["name"], number(request, "head") or 0
        html = await self.worker.run(partial(self.page.holding, shown, kept.look.trace, head))
        return HTMLResponse(html, headers={"Content-Disposition": "attachment; filename=inspector.html"})

    async def read_neighbours(self, request: Request) -> Response:
        """Answer a request for the embedding of a token of an inspected text, and tokens with similar embeddings."""
        name, seen, _ = self.kept(request)
        line, place = request.query_params.get("line", ""), number(request, "place") or 0
        if line not in seen.trace.lines or place >= len(seen.trace.lines[line].read.ids):
            raise InputError(f"there is no token {place} of {line[:20]!r} in that look")
        loaded, token = self.models[name], seen.trace.lines[line].read.ids[place]
        tokenizer = loaded.tokenizers.source if line == "src" else loaded.tokenizers.target
        count = min(number(request, "count") or 10, 100)
        near = await self.worker.run(partial(neighbours, loaded.model, tokenizer, line, token, count))
        found = asdict(row(loaded.model, line, token)) | {"neighbours": [asdict(one) for one in near]}
        return JSONResponse(found, headers=FOREVER)

    async def read_development(self, request: Request) -> Response:
        """Answer a request for the training curves and checkpoints of a model's run; null for a model without a run."""
        folder = run_of(self.models[self.model(request.path_params["name"])].path)
        if folder is None:
            return JSONResponse(None)
        run = await self.worker.run(partial(read_run, folder))
        return JSONResponse({"steps": run.steps, "best": run.best, "curves": run.curves})

    async def measure_heads(self, request: Request) -> Response:
        """Answer a request for measures of attention heads at each checkpoint of a run, as server-sent events."""
        question = read_as(Question, await body(request))
        folder = run_of(self.models[self.model(request.path_params["name"])].path)
        if folder is None:
            raise InputError("that model came without its run, so its checkpoints are not there")
        steps = snapshots(folder, question.text, question.target)
        first = await self.worker.run(lambda: list(islice(steps, 1)))  # what does not fit is refused here
        return streamed(self.worker, (asdict(found) for found in chain(first, steps)))

    def model(self, name: Any) -> str:
        """Check that a client's model name is one of the models served, and return it; paths are never accepted.

        Raises:
            UnknownError: there is no such model.
        """
        if not isinstance(name, str) or name not in self.subjects:
            raise UnknownError(f"there is no model {str(name)[:100]!r}; there are {', '.join(self.subjects)}")
        return name

    def look(self, name: str, model: str, question: Question) -> Kept:
        """Inspect a model on a question, and return the result in the form that is cached and sent to the page."""
        found = look(self.subjects[model], question)
        self.worker.check()
        return Kept.of(model, found, {"id": name, "model": self.facts[model], **overview(found)})

    def kept(self, request: Request) -> Kept:
        """Return the cached look (a recorded inspection of a model) whose id is in the path of a request.

        Raises:
            UnknownError: there is no such look, or it was dropped to save memory.
        """
        found = self.looks.get(request.path_params["id"])
        if found is None:
            raise UnknownError("that look was forgotten, to make room for others; look again")
        return found


def json_bytes(content: bytes, status: int, headers: Mapping[str, str]) -> Response:
    """Make an HTTP response of bytes that are JSON already."""
    return Response(content, status, headers, media_type="application/json")


def answering(handler: Handler) -> Handler:
    """Wrap a request handler, so that an error that a user can act on becomes a JSON answer with a fitting status."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except HeedfulError as error:
            kinds = {UnknownError: 404, InputError: 400, BusyError: 503, CancelledError: 503}
            status = next((code for kind, code in kinds.items() if isinstance(error, kind)), 500)
            headers = {"Retry-After": "1"} if status == 503 else None
            return JSONResponse({"error": str(error)}, status, headers)

    return answer


def application(
    inspector: Inspector, token: str | None = None, ready: Callable[[], object] = lambda: None
) -> Starlette:
    """Make the Starlette application of the inspector: its routes, access control and limits.

    Args:
        inspector: the inspector that answers requests.
        token: the token that visitors have to send; None: no token, and the Host has to be a loopback name.
        ready: called when the application has started.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        ready()
        yield

    one, trying = "/api/v1/traces/{id:str}", Experiments(inspector)
    routes = [
        Route("/", inspector.show),
        Route("/api/v1/openapi.json", inspector.describe),
        Route("/api/v1/models", answering(inspector.list_models)),
        Route("/api/v1/traces", answering(inspector.make_trace), methods=["POST"]),
        Route(f"{one}/tensors", answering(inspector.read_tensors)),
        Route(f"{one}/attribution", answering(inspector.read_attribution)),
        Route(f"{one}/export.html", answering(inspector.export)),
        Route(f"{one}/neighbours", answering(inspector.read_neighbours)),
        Route("/api/v1/models/{name:path}/development", answering(inspector.read_development)),
        Route("/api/v1/models/{name:path}/heads", answering(inspector.measure_heads), methods=["POST"]),
        Route(one, answering(inspector.read_trace)),
        Route(f"{one}/without", answering(trying.switch_off), methods=["POST"]),
        Route("/api/v1/costs", answering(trying.weigh), methods=["POST"]),
        Route("/api/v1/sweeps", answering(trying.sweep), methods=["POST"]),
        Route("/api/v1/probes/bias", answering(trying.probe), methods=["POST"]),
    ]
    middleware = [Middleware(Guard, policy=inspector.page.policy, token=token), Middleware(Limits)]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)
