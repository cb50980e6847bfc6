"""Experiments of the inspector's API: switch attention heads off, measure their worth in BLEU, probe minimal pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.evaluate import Comparison
from heedful.inspector.capture.head_masks import Head
from heedful.inspector.experiments.ablation import cost, sweep
from heedful.inspector.experiments.bias import Shift, shifts, summaries
from heedful.inspector.experiments.contrasts import contrasts
from heedful.inspector.experiments.effect import effect
from heedful.serve.requests import body, read_as
from heedful.serve.streaming import streamed

if TYPE_CHECKING:
    from heedful.serve.inspector import Inspector

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


class Experiments:
    """Request handlers for experiments on the models of an inspector: head ablation and minimal pairs.

    Args:
        inspector: the inspector with the models, the looks, the sample, and the worker that runs all computations.
    """

    def __init__(self, inspector: "Inspector") -> None:
        self.inspector = inspector
        self._whole: dict[str, list[str]] = {}  # by model, the translations of the sample with all heads

    async def switch_off(self, request: Request) -> Response:
        """Answer a request to repeat an inspection without some attention heads, compared with all heads."""
        model, seen, _ = self.inspector.kept(request)
        wanted = read_as(Off, await body(request))
        subject = self.inspector.subjects[model]
        found = await self.inspector.worker.run(partial(effect, subject, seen, wanted.off, wanted.way))
        return JSONResponse(asdict(found))

    async def weigh(self, request: Request) -> Response:
        """Answer a request for the loss in BLEU on the sample without some attention heads."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        wanted = read_as(Off, values)
        found = await self.inspector.worker.run(partial(self.cost, model, wanted.off, wanted.way))
        return JSONResponse(asdict(found))

    async def sweep(self, request: Request) -> Response:
        """Answer a request for the loss in BLEU on the sample without each head alone, as server-sent events."""
        values = await body(request)
        model = self.translator(values.pop("model", None))
        steps = self.costs(model, read_as(Way, values).way)
        return streamed(self.inspector.worker, (asdict(head) | asdict(found) for head, found in steps))

    async def probe(self, request: Request) -> Response:
        """Answer a request to probe a model with minimal pairs; each pair is a job of its own in the queue."""
        values = await body(request)
        subject = self.inspector.subjects[self.inspector.model(values.pop("model", None))]
        wanted = read_as(Pairs, values)
        found = contrasts(wanted.lines)
        if len(found) > MOST_LINES:
            raise InputError(f"{len(found)} lines are more than the {MOST_LINES} that the page takes; ask in Python")
        steps = shifts(subject, found, wanted.head)
        results: list[Shift] = [await self.inspector.worker.run(partial(next, steps)) for _ in found]
        kinds = {kind: asdict(one) for kind, one in summaries(results).items()}
        return JSONResponse({"shifts": [asdict(one) for one in results], "summaries": kinds})

    def translator(self, name: object) -> str:
        """Check that `name` is a translator on which heads can be measured, and return the name.

        Raises:
            InputError: there is no such model, it is no translator, or there is no sample.
        """
        model = self.inspector.model(name)
        if not isinstance(self.inspector.subjects[model], Translator) or not self.inspector.sample[0]:
            raise InputError("heads are weighed on a translator and a sample: heedful inspect MODEL --data DATA")
        return model

    def cost(self, model: str, off: Sequence[Head], way: str) -> Comparison:
        """Compute the loss in BLEU on the sample without some attention heads."""
        return cost(self.inspector.subjects[model], off, *self.inspector.sample, way, **self.known(model))

    def costs(self, model: str, way: str) -> Iterator[tuple[Head, Comparison]]:
        """Compute the loss in BLEU on the sample without each attention head alone, one head after another."""
        yield from sweep(self.inspector.subjects[model], *self.inspector.sample, way, **self.known(model))

    def known(self, model: str) -> dict[str, Any]:
        """Return common arguments of ablations: translations of the sample with all heads, made once, and language."""
        if model not in self._whole:
            self._whole[model] = self.inspector.subjects[model].translate(self.inspector.sample[0])
        return {"whole": self._whole[model], "language": self.inspector.models[model].recipe.data.target_language}
