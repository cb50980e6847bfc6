"""Request handlers that inspect models; the latest inspections are cached in memory, and none is stored on disk."""

import base64
import binascii
import hashlib
import json
import secrets
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.development import run_of
from heedful.inspector.look import Inspection, Question, look
from heedful.inspector.measures.embeddings import neighbours, row
from heedful.inspector.measures.logits import attribute
from heedful.inspector.overview import Json, facts, overview
from heedful.inspector.page import Page
from heedful.server.application import body, number, read_as
from heedful.server.engine import Engine, NotFoundError, ServedModel
from heedful.server.limits import MAX_REQUEST, TooLongError

MAX_FILE = 8_000_000  # bytes of an image or audio file
MAX_REQUEST_WITH_FILE = MAX_REQUEST + 4 * (MAX_FILE // 3 + 1)  # bytes: the file is in base64
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


@dataclass(frozen=True)
class OpenedFile:
    """Image or audio file that the server was started with; the page inspects it first."""

    name: str  # of the file, without its folder
    content: bytes


def question_of(values: dict[str, Any]) -> Question:
    """Create a question from JSON values, in which "file" is a file in base64."""
    encoded = values.pop("file", None)
    # The route allows long requests only for files, so the rest of a question keeps the usual limit.
    if len(json.dumps(values, ensure_ascii=False).encode()) > MAX_REQUEST:
        raise TooLongError(f"a question may have at most {MAX_REQUEST:,} bytes without its file; send less text")
    question = read_as(Question, values)
    if encoded is None:
        return question
    try:
        content = base64.b64decode(encoded.encode() if isinstance(encoded, str) else b"?", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InputError(f"file: is not valid base64 ({error})") from error
    if not content:
        raise InputError("the file is empty; choose another")
    if len(content) > MAX_FILE:
        raise TooLongError(f"the file has {len(content):,} bytes, but the limit is {MAX_FILE:,}; make it smaller")
    return replace(question, file=content)


def page_facts(model: ServedModel) -> Json:
    """Return the facts about a model for the page; "trained" is true if the model's run exists."""
    trained = run_of(model.loaded.path) is not None
    return facts(model.name, model.loaded.recipe, model.loaded.model) | {"trained": trained}


def check_transformer(model: ServedModel) -> None:
    """Reject a model without Transformer blocks, which does not have attention heads to measure."""
    if not model.loaded.model.named_stacks():
        raise InputError(
            f"{model.name} is not a Transformer, so it has no attention heads to measure or to switch off; inspect its "
            "answers, tokens and search"
        )


def inspection_id(server: str, model: str, question: Question) -> str:
    """Return a hash of server, model and question: equal questions have equal ids.

    `server` identifies this server process, because earlier ones may have had other weights under the same name.
    """
    digest = hashlib.sha256(json.dumps([server, model, question.as_json()], sort_keys=True).encode())
    digest.update(question.file or b"")
    return digest.hexdigest()[:16]


class CachedInspection(NamedTuple):
    """Cache entry: the model name, the forward pass and its tensors, and the overview as JSON."""

    model: str
    inspection: Inspection
    json: bytes

    @classmethod
    def of(cls, model: str, inspection: Inspection, values: Json) -> "CachedInspection":
        # A beam search takes ten times less memory as JSON than as objects.
        only_pass = replace(inspection, answers=[], lens=None, log=None, reference=None)
        return cls(model, only_pass, json.dumps(values, ensure_ascii=False, allow_nan=False).encode())


class InspectionCache:
    """Cache of the most recently used inspections.

    Args:
        limit: Maximum total size in bytes; the newest inspection is always kept.
    """

    def __init__(self, limit: int = 256_000_000) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, CachedInspection] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def get(self, name: str) -> CachedInspection | None:
        if name in self._entries:
            self._entries.move_to_end(name)
        return self._entries.get(name)

    def add(self, name: str, entry: CachedInspection) -> None:
        """Add an inspection, and drop the least recently used ones above the memory limit."""
        self._entries[name] = entry
        self._entries.move_to_end(name)
        self._sizes[name] = size(entry)
        while self.bytes > self._limit and len(self._entries) > 1:
            oldest, _ = self._entries.popitem(last=False)
            del self._sizes[oldest]

    @property
    def bytes(self) -> int:
        return sum(self._sizes.values())


def size(value: Any) -> int:
    """Estimate the memory of a value in bytes: arrays, strings, numbers and containers; 0 for models and tokenizers."""
    if isinstance(value, np.ndarray):
        # getsizeof counts the data of an array, but not of a view, so the data is added to the header of an empty view.
        return value.nbytes + sys.getsizeof(value[:0])
    if is_dataclass(value):
        return sum(size(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(size(name) + size(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return sys.getsizeof(value) + sum(map(size, value))
    return sys.getsizeof(value) if isinstance(value, str | bytes | int | float) else 0


class InspectionHandlers:
    """Request handlers that inspect models, and return parts of earlier inspections.

    Args:
        engine: The engine with the models.
        page: The web page, copies of which are exported.
    """

    def __init__(self, engine: Engine, page: Page) -> None:
        self.engine = engine
        self.page = page
        self.cache = InspectionCache()
        self.server = secrets.token_hex(8)  # browsers cache responses for longer than a server runs

    async def make(self, request: Request) -> Response:
        """Inspect a model on a text or file; the result of a repeated question comes from the cache."""
        values = await body(request)
        model = self.engine.model(values.pop("model", None))
        question = question_of(values)
        name = inspection_id(self.server, model.name, question)

        def inspect() -> CachedInspection:
            inspection = look(model.predictor, question)
            # Stop here if the client has disconnected: the overview converts many numbers to JSON.
            self.engine.check()
            contents = {"id": name, "model": page_facts(model), **overview(inspection)}
            return CachedInspection.of(model.name, inspection, contents)

        # Adding a repeated question again makes it the most recent one in the cache.
        entry = self.cache.get(name) or await self.engine.run(inspect)
        self.cache.add(name, entry)
        return Response(entry.json, 201, {"Location": f"/api/v1/traces/{name}"}, media_type="application/json")

    async def read(self, request: Request) -> Response:
        return Response(self.cached(request).json, 200, FOREVER, media_type="application/json")

    async def read_tensors(self, request: Request) -> Response:
        """Return recorded tensors of a forward pass, of all heads or of one, as a safetensors file."""
        trace = self.cached(request).inspection.trace
        names = request.query_params.get("names", "*").split(",")
        part = trace.only(names, number(request, "head"))
        way = request.query_params.get("stored", "f32")
        content = b"".join(part.encoded(dict.fromkeys(part, way)))
        return Response(content, media_type="application/octet-stream", headers=FOREVER)

    async def read_attribution(self, request: Request) -> Response:
        inspection = self.cached(request).inspection
        place, token = number(request, "place"), number(request, "token")
        if place is None or token is None:
            raise InputError("give the logit as place=0&token=7, both counted from 0")
        model = inspection.forward.model
        attribution = await self.engine.run(partial(attribute, model, inspection.trace, place, token))
        return JSONResponse(asdict(attribution), headers=FOREVER)

    async def read_neighbours(self, request: Request) -> Response:
        """Return the embedding of a token of an inspected text, and tokens with similar embeddings."""
        name, inspection, _ = self.cached(request)
        lines = inspection.trace.lines
        line, place = request.query_params.get("line", ""), number(request, "place") or 0
        if line not in lines or place >= len(lines[line].read.ids):
            raise InputError(f"token {place} of {line[:20]!r} does not exist in that inspection")
        loaded, token = self.engine.model(name).loaded, lines[line].read.ids[place]
        tokenizer = loaded.tokenizers.source if line == "src" else loaded.tokenizers.target
        count = min(number(request, "count") or 10, 100)
        nearest = await self.engine.run(partial(neighbours, loaded.model, tokenizer, line, token, count))
        embedding = asdict(row(loaded.model, line, token))
        return JSONResponse(embedding | {"neighbours": [asdict(near) for near in nearest]}, headers=FOREVER)

    async def export(self, request: Request) -> Response:
        entry = self.cached(request)
        contents = json.loads(entry.json)
        # By default, show the first head of the last block; a model without attention has no blocks.
        block, head = request.query_params.get("block"), number(request, "head") or 0
        blocks = contents["blocks"]
        shown_head = (block or blocks[-1]["name"], head) if blocks else None
        html = await self.engine.run(partial(self.page.holding, contents, entry.inspection.trace, shown_head))
        return HTMLResponse(html, headers={"Content-Disposition": "attachment; filename=inspector.html"})

    def cached(self, request: Request) -> CachedInspection:
        entry = self.cache.get(request.path_params["id"])
        if entry is None:
            raise NotFoundError("that inspection is no longer in the cache; repeat it")
        return entry
