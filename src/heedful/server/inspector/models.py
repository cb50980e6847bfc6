"""Request handlers of the inspector for models: their facts, and their attention heads during training."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.errors import InputError
from heedful.inspector.development import read_run, run_of, snapshots
from heedful.inspector.overview import Json, facts
from heedful.server.engine import Engine, ServedModel
from heedful.server.inspector.questions import OpenedFile, question_of
from heedful.server.requests import body, streamed


class ModelHandlers:
    """Request handlers for the models of an engine: facts, training curves, attention heads at each checkpoint.

    Args:
        engine: the engine with the models.
        sample: source sentences and reference translations, on which the worth of heads is measured.
        opened: the file that the server was started with, or None.
    """

    def __init__(
        self, engine: Engine, sample: tuple[Sequence[str], Sequence[str]], opened: OpenedFile | None = None
    ) -> None:
        self.engine = engine
        self.sample = sample
        self.opened = opened

    async def list_models(self, request: Request) -> Response:
        """Answer a request for the list of models, the size of the sample, and the name of the opened file."""
        del request
        found = [page_facts(model) for model in self.engine.models.values()]
        return JSONResponse({"models": found, "sample": len(self.sample[0]), "file": self.opened and self.opened.name})

    async def read_development(self, request: Request) -> Response:
        """Answer a request for the training curves and checkpoints of a model's run; null for a model without a run."""
        folder = run_folder(self.engine.model(request.path_params["name"]))
        if folder is None:
            return JSONResponse(None)
        run = await self.engine.run(partial(read_run, folder))
        return JSONResponse({"steps": run.steps, "best": run.best, "curves": run.curves})

    async def measure_heads(self, request: Request) -> Response:
        """Answer a request for measures of attention heads at each checkpoint of a run, as server-sent events."""
        question = question_of(await body(request))
        model = self.engine.model(request.path_params["name"])
        folder = run_folder(model)
        if folder is None:
            raise InputError("that model came without its run, so its checkpoints are not there")
        check_transformer(model)
        steps = snapshots(folder, question.given, question.target, self.engine.watch)
        first = await self.engine.run(lambda: list(islice(steps, 1)))  # what does not fit is refused here
        events: Iterator[Json] = (asdict(found) for found in chain(first, steps))
        return streamed(self.engine, events)


def page_facts(model: ServedModel) -> Json:
    """Collect the facts that the page shows of a model; "trained" is true if the run of the model is there."""
    known = facts(model.name, model.loaded.recipe, model.loaded.model)
    return known | {"trained": run_folder(model) is not None}


def run_folder(model: ServedModel) -> Path | None:
    """Find the folder of the training run of a model; None if the model came without its run."""
    return run_of(model.loaded.path)


def check_transformer(model: ServedModel) -> None:
    """Check that a model has stacks of Transformer blocks, whose attention heads can be measured.

    Raises:
        InputError: the model is of another architecture.
    """
    if not model.loaded.model.named_stacks():
        raise InputError(
            f"{model.name} is no Transformer, so that it has no attention heads to measure or to switch off; look at "
            "its answers, tokens and search"
        )
