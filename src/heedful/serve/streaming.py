"""Server-sent events for results that are computed step by step."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.responses import StreamingResponse

from heedful.errors import HeedfulError
from heedful.serve.engine import Engine


def streamed(engine: Engine, steps: Iterator[dict[str, Any]]) -> StreamingResponse:
    """Make a response with a server-sent event per step, computed by the engine; an error is sent as the last event.

    The computation ends if the client disconnects.
    """

    async def events() -> AsyncIterator[str]:
        try:
            async for found in engine.stream(steps):
                yield f"data: {json.dumps(found)}\n\n"
        except HeedfulError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
