"""Overview of an inspection as JSON for the inspector page: all data that the page shows before it loads tensors."""

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch

from heedful.architectures import Model
from heedful.architectures.transformer.layers import PostNorm
from heedful.config.schema import Recipe
from heedful.inspector.capture.sources import MediaInput
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import SCHEMA, Trace
from heedful.inspector.look import MAX_BEAM, Inspection
from heedful.inspector.measures.attention import MEASURES, distance
from heedful.inspector.measures.beam_search import BeamLog, Fate
from heedful.inspector.measures.logits import Lens
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer

Json = dict[str, Any]

SHAPE = {  # shown for a Transformer: attribute of its configuration, and the value for other models
    "heads": ("heads", 0),
    "d_k": ("head_size", 0),
    "d_ff": ("d_ff", 0),
    "norm": ("norm", ""),
    "positions": ("positions", ""),
}


def facts(name: str, recipe: Recipe, model: Model) -> Json:
    """Return a model's name, task, dimensions and search settings as JSON for the inspector page."""
    shape = recipe.model
    return {
        "name": name,
        "task": recipe.task,
        "command": find_task(recipe.task).spec.command,
        "modality": recipe.data.modality,
        "languages": [recipe.data.source_language, recipe.data.target_language],
        "stacks": [
            {"name": side.name, "sequence": side.sequence, "layers": len(side.stack.blocks)}
            for side in model.named_stacks()
        ],
        "d_model": shape.d_model,
        **{key: getattr(shape, attribute, default) for key, (attribute, default) in SHAPE.items()},
        "parameters": sum(p.numel() for p in model.parameters()),
        "beam": recipe.decode.beam,
        "alpha": recipe.decode.alpha,
    }


def overview(inspection: Inspection) -> Json:
    """Return an inspection as JSON for the inspector page, without the values of the tensors."""
    trace, forward = inspection.trace, inspection.forward
    lens = log = reference = None
    if (tokenizer := forward.tokenizer) is not None:
        lens = inspection.lens and lens_json(inspection.lens, tokenizer)
        log = inspection.log and search_json(inspection.log, tokenizer)
        path = inspection.reference
        reference = path and asdict(path) | {"pieces": tokenizer.pieces(path.tokens)}
    return {
        "schema": SCHEMA,
        "question": inspection.question.as_json(),
        "media": forward.media and forward.media.described(),
        "lines": {name: asdict(line) for name, line in trace.lines.items()},
        "blocks": blocks(trace),
        "tensors": {name: {"axes": trace.axes[name], "shape": trace.tensors[name].shape} for name in trace},
        "heads": measures(trace, forward.media),
        "stream": stream(trace, forward.model),
        "answers": [asdict(answer) for answer in inspection.answers],
        "lens": lens,
        "search": log,
        "ghost": reference,
        "checks": trace.checks,
        "unknown": inspection.unknown,
    }


def blocks(trace: Trace) -> list[Json]:
    """List the attention sublayers of a trace as JSON: name, number of heads, query tokens and key tokens."""
    sublayers = []
    for name in trace:
        if name.endswith(".attn"):
            _, queries, keys = trace.axes[name]
            block, heads = name.removesuffix(".attn"), len(trace.tensors[name])
            sublayers.append({"name": block, "heads": heads, "queries": queries.line, "keys": keys.line})
    return sublayers


def measures(trace: Trace, media: MediaInput | None = None) -> Json:
    """Compute the measures of all attention heads in a trace as JSON, by attention sublayer and measure.

    For an image or audio, they include the distance if its patches or frames attend to each other.
    """
    of_blocks = {}
    for name, values in trace.tensors.items():
        if name.endswith(".attn"):
            block, weights = name.removesuffix(".attn"), torch.from_numpy(values)
            kinds = MEASURES[block.rpartition(".")[2]]
            _, queries, keys = trace.axes[name]
            # Only between positions of the source: a target token has no position in an image or audio.
            if media is not None and {queries.line, keys.line} <= {"src.said", "src.read"}:
                kinds = kinds | {"distance": partial(distance, places=torch.from_numpy(media.places))}
            of_blocks[block] = {kind: numbers(measure(weights).numpy()) for kind, measure in kinds.items()}
    return of_blocks


def stream(trace: Trace, model: Model) -> Json:
    """Compute statistics of the residual stream as JSON, for each sublayer and token.

    These are the Euclidean norms of the stream before the sublayer, of the sublayer output, of the stream after it and
    of the normalised stream, and the mean and standard deviation of the input to the norm.
    """
    of_sublayers = {}
    parts = {"before": "in", "added": "out", "after": "resid", "normalised": "norm"}
    model_taps = taps(model)
    for name in trace:
        sublayer, _, suffix = name.rpartition(".")
        if suffix == "resid":
            tensors = {kind: trace.tensors[f"{sublayer}.{tap}"] for kind, tap in parts.items()}
            # A post-norm normalises the result of the residual connection, a pre-norm the input of the sublayer.
            residual = model_taps[f"{sublayer}.in"].module
            normed = tensors["before"]
            if isinstance(residual, PostNorm):
                normed = normed + tensors["added"] if residual.adds else tensors["added"]
            lengths = {kind: numbers(np.linalg.norm(values, axis=-1)) for kind, values in tensors.items()}
            moments = {"mean": numbers(normed.mean(-1)), "deviation": numbers(normed.std(-1))}
            of_sublayers[sublayer] = lengths | moments
    return of_sublayers


def lens_json(lens: Lens, tokenizer: Tokenizer) -> Json:
    ids = sorted({int(token) for token in lens.tokens.flatten()})
    return {
        "tokens": lens.tokens.tolist(),
        "log_probs": numbers(lens.log_probs),
        "entropy": numbers(lens.entropy),
        "rank": lens.rank.tolist(),
        "last_log_probs": numbers(lens.last_log_probs),
        "pieces": dict(zip(map(str, ids), tokenizer.pieces(ids), strict=True)),
    }


def search_json(log: BeamLog, tokenizer: Tokenizer) -> Json:
    """Convert the log of a beam search to JSON: settings, and one list per attribute of the candidates."""
    nodes = log.nodes
    last = max((node.step for node in nodes), default=0)
    return {
        "beam": log.config.beam,
        "widest": MAX_BEAM,
        "n_best": log.config.n_best,
        "alpha": log.config.alpha,
        "penalty": log.config.penalty,
        "fates": [fate.value for fate in Fate],
        "step": [node.step for node in nodes],
        "parent": [node.parent for node in nodes],
        "token": [node.token for node in nodes],
        "piece": tokenizer.pieces([node.token for node in nodes]),
        "log_prob": finite([node.log_prob for node in nodes]),
        "total": finite([node.total for node in nodes]),
        "score": finite([node.score for node in nodes]),
        "rank": [node.rank for node in nodes],
        "end": [node.end for node in nodes],
        "fate": [list(Fate).index(node.fate) for node in nodes],
        "threshold": finite([log.threshold(step) for step in range(1, last + 1)]),
    }


def numbers(x: np.ndarray) -> list[Any]:
    """Convert a float32 array to nested lists for JSON, with the nine significant digits that identify a float32."""
    return np.vectorize(lambda value: float(f"{value:.9g}"), otypes=[float])(x).tolist() if x.size else x.tolist()


def finite(x: list[float]) -> list[float | None]:
    """Replace infinite values and NaN with None, since JSON has neither."""
    return [value if np.isfinite(value) else None for value in x]
