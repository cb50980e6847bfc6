"""Request handlers of the inspector for experiments: head ablation, its effect on BLEU, minimal pairs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.capture.recorder import Head
from heedful.inspector.experiments.ablation import cost, effect, sweep
from heedful.inspector.experiments.minimal_pairs import contrasts, shifts, summaries
from heedful.metrics import Comparison
from heedful.predictors.translator import Translator
from heedful.server.application import body, read_as, streamed
from heedful.server.engine import Engine, ServedModel
from heedful.server.inspector.inspection_handlers import InspectionHandlers, check_transformer

MAX_LINES = 300  # in a list of minimal pairs


@dataclass(frozen=True)
class AblationMethod:
    """Request body: the way in which attention heads are switched off, such as "silent"."""

    way: str = "silent"


@dataclass(frozen=True)
class AblatedHeads(AblationMethod):
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
        engine: The engine with the models.
        inspections: The inspection handlers, whose cached inspections are repeated without some attention heads.
        sample: Source sentences and reference translations, on which the importance of heads is measured.
    """

    def __init__(
        self, engine: Engine, inspections: InspectionHandlers, sample: tuple[Sequence[str], Sequence[str]]
    ) -> None:
        self.engine = engine
        self.inspections = inspections
        self.sample = sample
        self._whole: dict[str, list[str]] = {}  # translations of the sample with all heads, by model

    async def switch_off(self, request: Request) -> Response:
        """Repeat an inspection without some attention heads, and return how the result changes."""
        name, inspection, _ = self.inspections.cached(request)
        heads = read_as(AblatedHeads, await body(request))
        model = self.transformer(name)
        difference = await self.engine.run(partial(effect, model.predictor, inspection, heads.off, heads.way))
        return JSONResponse(asdict(difference))

    async def weigh(self, request: Request) -> Response:
        """Return how BLEU on the sample changes if some attention heads are switched off."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        heads = read_as(AblatedHeads, values)

        def compare() -> Comparison:
            return cost(model.predictor, heads.off, *self.sample, heads.way, **self.known(model))

        return JSONResponse(asdict(await self.engine.run(compare)))

    async def sweep(self, request: Request) -> Response:
        """Return how BLEU on the sample changes if each head in turn is switched off, as server-sent events."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        way = read_as(AblationMethod, values).way

        # A generator, so that the sample is translated in the first job of the stream and not in the event loop.
        def steps() -> Any:
            for head, comparison in sweep(model.predictor, *self.sample, way, **self.known(model)):
                yield asdict(head) | asdict(comparison)

        return streamed(self.engine, steps())

    async def probe(self, request: Request) -> Response:
        """Probe a model with minimal pairs; each pair is a separate job in the queue."""
        values = await body(request)
        model = self.transformer(values.pop("model", None))
        probe = read_as(Pairs, values)
        pairs = contrasts(probe.lines)
        if len(pairs) > MAX_LINES:
            raise InputError(
                f"the page allows at most {MAX_LINES} lines, but there are {len(pairs)}; use Python instead"
            )
        steps = shifts(model.predictor, pairs, probe.head)
        results = [shift async for shift in self.engine.stream(steps)]
        kinds = {kind: asdict(summary) for kind, summary in summaries(results).items()}
        return JSONResponse({"shifts": [asdict(shift) for shift in results], "summaries": kinds})

    def transformer(self, name: object) -> ServedModel:
        model = self.engine.model(name)
        check_transformer(model)
        return model

    def translator(self, name: object) -> ServedModel:
        model = self.transformer(name)
        if not isinstance(model.predictor, Translator) or not self.sample[0]:
            raise InputError(
                "this needs a translator and a sample; start the server with: heedful inspect MODEL --data DATA"
            )
        return model

    def known(self, model: ServedModel) -> dict[str, Any]:
        """Return the common arguments of ablations: translations of the sample with all heads, and the language."""
        if model.name not in self._whole:
            self._whole[model.name] = model.predictor.translate(self.sample[0])
        return {"whole": self._whole[model.name], "language": model.loaded.recipe.data.target_language}
