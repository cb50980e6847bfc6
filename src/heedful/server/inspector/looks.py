"""Request handlers of the inspector for looks, the recorded inspections of models, and a cache of the last ones."""

import hashlib
import json
import secrets
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.look import Look, Question, look
from heedful.inspector.measures.attribution import attribute
from heedful.inspector.measures.embeddings import neighbours, row
from heedful.inspector.overview import Json, overview
from heedful.inspector.page import Page
from heedful.server.engine import Engine, ServedModel, UnknownError
from heedful.server.inspector.models import page_facts
from heedful.server.inspector.questions import question_of
from heedful.server.requests import body, number


def look_id(server: str, model: str, question: Question) -> str:
    """Compute the id of an inspection, a hash of server, model and question; equal questions get equal ids.

    Args:
        server: what tells this start of the server from others, which may have had other weights under the same name.
        model: the name of the model.
        question: the question.
    """
    found = hashlib.sha256(json.dumps([server, model, question.told()], sort_keys=True).encode())
    found.update(question.file or b"")
    return found.hexdigest()[:16]


class CachedLook(NamedTuple):
    """Cache entry of a look, a recorded inspection of a model on a text.

    Attributes:
        model: the name of the model that was inspected.
        look: the forward pass and its tensors, without the results that are in `shown`.
        shown: the overview of the look, which the page shows first, as JSON.
    """

    model: str
    look: Look
    shown: bytes

    @classmethod
    def of(cls, model: str, look: Look, shown: Json) -> "CachedLook":
        """Make a cache entry of a look; its beam search is stored as JSON, in a tenth of the memory of its objects."""
        pass_alone = replace(look, answers=[], lens=None, log=None, ghost=None)
        return cls(model, pass_alone, json.dumps(shown, ensure_ascii=False, allow_nan=False).encode())

    @property
    def overview(self) -> Json:
        """Overview of a recorded inspection, which the page shows first, as JSON values."""
        return json.loads(self.shown)


class LookCache:
    """Cache of the last used looks, the recorded inspections of models.

    Args:
        most: the most bytes of all looks in the cache; the newest look stays in any case.
    """

    def __init__(self, most: int = 256_000_000) -> None:
        self._most = most
        self._looks: OrderedDict[str, CachedLook] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def get(self, name: str) -> CachedLook | None:
        """Return the cached look (a recorded inspection) with an id, or None if it is not in the cache."""
        if name in self._looks:
            self._looks.move_to_end(name)
        return self._looks.get(name)

    def add(self, name: str, made: CachedLook) -> None:
        """Add a recorded inspection to the cache, and drop the least recently used ones above the memory limit."""
        self._looks[name] = made
        self._looks.move_to_end(name)
        self._sizes[name] = size(made)
        while self.bytes > self._most and len(self._looks) > 1:
            oldest, _ = self._looks.popitem(last=False)
            del self._sizes[oldest]

    @property
    def bytes(self) -> int:
        """Memory of all looks in the cache, in bytes."""
        return sum(self._sizes.values())


def size(held: Any) -> int:
    """Estimate the memory of a value in bytes: arrays, texts, numbers and containers; models and tokenizers count 0."""
    if isinstance(held, np.ndarray):
        return held.nbytes + sys.getsizeof(held[:0])
    if is_dataclass(held):
        return sum(size(getattr(held, field.name)) for field in fields(held))
    if isinstance(held, Mapping):
        return sys.getsizeof(held) + sum(size(name) + size(value) for name, value in held.items())
    if isinstance(held, list | tuple):
        return sys.getsizeof(held) + sum(map(size, held))
    return sys.getsizeof(held) if isinstance(held, str | bytes | int | float) else 0


FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


class LookHandlers:
    """Request handlers that make looks (recorded inspections of models), and answer with parts of looks made before.

    Args:
        engine: the engine with the models.
        page: the web page, of which an export is a copy.
    """

    def __init__(self, engine: Engine, page: Page) -> None:
        self.engine = engine
        self.page = page
        self.cache = LookCache()
        self.server = secrets.token_hex(8)  # browsers keep what they were sent for longer than a server runs

    async def make(self, request: Request) -> Response:
        """Answer a request to inspect a model on a text or file; a repeated question is answered from the cache."""
        values = await body(request)
        model = self.engine.model(values.pop("model", None))
        question = question_of(values)
        name = look_id(self.server, model.name, question)
        made = self.cache.get(name) or await self.engine.run(partial(self.look, name, model, question))
        self.cache.add(name, made)
        return json_bytes(made.shown, 201, {"Location": f"/api/v1/traces/{name}"})

    async def read(self, request: Request) -> Response:
        """Answer a request for a look that was made before, as JSON."""
        return json_bytes(self.cached(request).shown, 200, FOREVER)

    async def read_tensors(self, request: Request) -> Response:
        """Answer a request for recorded tensors of a forward pass, of all heads or of one, as a safetensors file."""
        seen = self.cached(request).look
        names = request.query_params.get("names", "*").split(",")
        chosen = seen.trace.only(names, number(request, "head"))
        way = request.query_params.get("stored", "f32")
        content = b"".join(chosen.encoded(dict.fromkeys(chosen, way)))
        return Response(content, media_type="application/octet-stream", headers=FOREVER)

    async def read_attribution(self, request: Request) -> Response:
        """Answer a request for the attribution of one logit to the parts of the model."""
        seen = self.cached(request).look
        place, token = number(request, "place"), number(request, "token")
        if place is None or token is None:
            raise InputError("say which logit: place=0&token=7, both counted from 0")
        found = await self.engine.run(partial(attribute, seen.reading.model, seen.trace, place, token))
        return JSONResponse(asdict(found), headers=FOREVER)

    async def read_neighbours(self, request: Request) -> Response:
        """Answer a request for the embedding of a token of an inspected text, and tokens with similar embeddings."""
        name, seen, _ = self.cached(request)
        line, place = request.query_params.get("line", ""), number(request, "place") or 0
        if line not in seen.trace.lines or place >= len(seen.trace.lines[line].read.ids):
            raise InputError(f"there is no token {place} of {line[:20]!r} in that look")
        loaded, token = self.engine.model(name).loaded, seen.trace.lines[line].read.ids[place]
        tokenizer = loaded.tokenizers.source if line == "src" else loaded.tokenizers.target
        count = min(number(request, "count") or 10, 100)
        near = await self.engine.run(partial(neighbours, loaded.model, tokenizer, line, token, count))
        found = asdict(row(loaded.model, line, token)) | {"neighbours": [asdict(one) for one in near]}
        return JSONResponse(found, headers=FOREVER)

    async def export(self, request: Request) -> Response:
        """Answer a request to export a look as one HTML file that needs no server."""
        made = self.cached(request)
        shown = made.overview
        head = chosen_head(request, shown)
        html = await self.engine.run(partial(self.page.holding, shown, made.look.trace, head))
        return HTMLResponse(html, headers={"Content-Disposition": "attachment; filename=inspector.html"})

    def look(self, name: str, model: ServedModel, question: Question) -> CachedLook:
        """Inspect a model on a question, and return the result in the form that is cached and sent to the page."""
        found = look(model.predictor, question)
        self.engine.check()
        return CachedLook.of(model.name, found, {"id": name, "model": page_facts(model), **overview(found)})

    def cached(self, request: Request) -> CachedLook:
        """Return the cached look whose id is in the path of a request.

        Raises:
            UnknownError: there is no such look, or it was dropped to save memory.
        """
        found = self.cache.get(request.path_params["id"])
        if found is None:
            raise UnknownError("that look was forgotten, to make room for others; look again")
        return found


def chosen_head(request: Request, shown: Json) -> tuple[str, int] | None:
    """Return the attention head that a request names by `block` and `head`; None for a model without attention heads.

    A request without a block gets the last one, a request without a head gets head 0.
    """
    block, head = request.query_params.get("block"), number(request, "head") or 0
    if not shown["blocks"]:
        return None
    return block or shown["blocks"][-1]["name"], head


def json_bytes(content: bytes, status: int, headers: Mapping[str, str]) -> Response:
    """Make an HTTP response of bytes that are JSON already."""
    return Response(content, status, headers, media_type="application/json")
