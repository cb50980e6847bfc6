"""Request handlers of the inspector for experiments: head ablation, the worth of heads in BLEU, minimal pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.capture.head_masks import Head
from heedful.inspector.experiments.ablation import cost, effect, sweep
from heedful.inspector.experiments.minimal_pairs import contrasts, shifts, summaries
from heedful.metrics import Comparison
from heedful.server.engine import Engine, ServedModel
from heedful.server.inspector.looks import LookHandlers
from heedful.server.inspector.models import check_transformer
from heedful.server.requests import body, read_as, streamed

MOST_LINES = 300  # of a request's list of minimal pairs


@dataclass(frozen=True)
class Way:
    """Request body: the way in which attention heads are switched off, such as "silent"."""

    way: str = "silent"


@dataclass(frozen=True)
class Off(Way):
    """Request body: attention heads to switch off, and the way in which they are switched off."""

    off: tuple[Head, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Request body: minimal pairs, and the head whose attention is measured, or None for the mean over all heads."""

    lines: tuple[str, ...]
    head: Head | None = None


class ExperimentHandlers:
    """Request handlers for experiments on the models of an engine: head ablation and minimal pairs.

    Args:
        engine: the engine with the models.
        looks: the handlers of looks, of which one is repeated without some attention heads.
        sample: source sentences and reference translations, on which the worth of heads is measured.
    """

    def __init__(self, engine: Engine, looks: LookHandlers, sample: tuple[Sequence[str], Sequence[str]]) -> None:
        self.engine = engine
        self.looks = looks
        self.sample = sample
        self._whole: dict[str, list[str]] = {}  # by model, the translations of the sample with all heads

    async def switch_off(self, request: Request) -> Response:
        """Answer a request to repeat a look (a recorded inspection) without some attention heads, beside all heads."""
        name, seen, _ = self.looks.cached(request)
        wanted = read_as(Off, await body(request))
        model = self.transformer(name)
        found = await self.engine.run(partial(effect, model.predictor, seen, wanted.off, wanted.way))
        return JSONResponse(asdict(found))

    async def weigh(self, request: Request) -> Response:
        """Answer a request for the loss in BLEU on the sample without some attention heads."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        wanted = read_as(Off, values)
        found = await self.engine.run(partial(self.cost, model, wanted.off, wanted.way))
        return JSONResponse(asdict(found))

    async def sweep(self, request: Request) -> Response:
        """Answer a request for the loss in BLEU on the sample without each head alone, as server-sent events."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        steps = self.costs(model, read_as(Way, values).way)
        return streamed(self.engine, (asdict(head) | asdict(found) for head, found in steps))

    async def probe(self, request: Request) -> Response:
        """Answer a request to probe a model with minimal pairs; each pair is a job of its own in the queue."""
        values = await body(request)
        model = self.transformer(values.pop("model", None))
        wanted = read_as(Pairs, values)
        found = contrasts(wanted.lines)
        if len(found) > MOST_LINES:
            raise InputError(f"{len(found)} lines are more than the {MOST_LINES} that the page takes; ask in Python")
        steps = shifts(model.predictor, found, wanted.head)
        results = [one async for one in self.engine.stream(steps)]
        kinds = {kind: asdict(one) for kind, one in summaries(results).items()}
        return JSONResponse({"shifts": [asdict(one) for one in results], "summaries": kinds})

    def transformer(self, name: object) -> ServedModel:
        """Return the model that a client names, if experiments can be made on its attention heads.

        Raises:
            InputError: there is no such model, or it is no Transformer.
        """
        model = self.engine.model(name)
        check_transformer(model)
        return model

    def translator(self, name: object) -> ServedModel:
        """Return the model that a client names, if the worth of its attention heads can be measured in BLEU.

        Raises:
            InputError: there is no such model, it is no Transformer or no translator, or there is no sample.
        """
        model = self.transformer(name)
        if not model.translates or not self.sample[0]:
            raise InputError("heads are weighed on a translator and a sample: heedful inspect MODEL --data DATA")
        return model

    def cost(self, model: ServedModel, off: Sequence[Head], way: str) -> Comparison:
        """Compute the loss in BLEU on the sample without some attention heads."""
        return cost(model.predictor, off, *self.sample, way, **self.known(model))

    def costs(self, model: ServedModel, way: str) -> Iterator[tuple[Head, Comparison]]:
        """Compute the loss in BLEU on the sample without each attention head alone, one head after another."""
        yield from sweep(model.predictor, *self.sample, way, **self.known(model))

    def known(self, model: ServedModel) -> dict[str, Any]:
        """Return common arguments of ablations: translations of the sample with all heads, made once, and language."""
        if model.name not in self._whole:
            self._whole[model.name] = model.predictor.translate(self.sample[0])
        return {"whole": self._whole[model.name], "language": model.loaded.recipe.data.target_language}
