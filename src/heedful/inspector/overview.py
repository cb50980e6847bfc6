"""What a page shows of a look before it asks for any tensor, in numbers that JSON holds.

T tokens, L blocks, K likeliest tokens.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from heedful.config.schema import Recipe
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import SCHEMA, Trace
from heedful.inspector.look import WIDEST, Look
from heedful.inspector.measures.beam_search import BeamLog, Fate
from heedful.inspector.measures.heads import MEASURES
from heedful.inspector.measures.logit_lens import Lens
from heedful.models import Model
from heedful.nn.residual import PostNorm
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer

Json = dict[str, Any]


def facts(name: str, recipe: Recipe, model: Model) -> Json:
    """Who a model is."""
    shape = recipe.model
    return {
        "name": name,
        "task": recipe.task,
        "command": find_task(recipe.task).command,
        "languages": [recipe.data.source_language, recipe.data.target_language],
        "stacks": [
            {"name": side.name, "sequence": side.sequence, "layers": len(side.stack.blocks)}
            for side in model.named_stacks()
        ],
        "heads": shape.heads,
        "d_model": shape.d_model,
        "d_k": shape.d_k or shape.d_model // shape.heads,
        "d_ff": shape.d_ff,
        "norm": shape.norm,
        "positions": shape.positions,
        "parameters": sum(p.numel() for p in model.parameters()),
        "beam": recipe.decode.beam,
        "alpha": recipe.decode.alpha,
    }


def overview(seen: Look) -> Json:
    """Everything but the tensors themselves."""
    trace = seen.trace
    return {
        "schema": SCHEMA,
        "question": asdict(seen.question),
        "lines": {name: asdict(line) for name, line in trace.lines.items()},
        "blocks": list(blocks(trace)),
        "tensors": {name: {"axes": trace.axes[name], "shape": trace.tensors[name].shape} for name in trace},
        "heads": measures(trace),
        "stream": stream(trace, seen.reading.model),
        "answers": [asdict(answer) for answer in seen.answers],
        "lens": seen.lens and through(seen.lens, seen.reading.tokenizer),
        "search": seen.log and search(seen.log, seen.reading.tokenizer),
        "ghost": seen.ghost and asdict(seen.ghost) | {"pieces": seen.reading.tokenizer.pieces(seen.ghost.tokens)},
        "checks": trace.checks,
        "unknown": seen.unknown,
    }


def blocks(trace: Trace) -> Iterator[Json]:
    """Where attention is paid, and by which tokens to which."""
    for name in trace:
        if name.endswith(".attn"):
            _, queries, keys = trace.axes[name]
            block = name.removesuffix(".attn")
            yield {"name": block, "heads": len(trace.tensors[name]), "queries": queries.line, "keys": keys.line}


def measures(trace: Trace) -> Json:
    """What each head does, by block and measure."""
    found = {}
    for name, values in trace.tensors.items():
        if name.endswith(".attn"):
            block, weights = name.removesuffix(".attn"), torch.from_numpy(values)
            kinds = MEASURES[block.rpartition(".")[2]]
            found[block] = {kind: numbers(measure(weights).numpy()) for kind, measure in kinds.items()}
    return found


def stream(trace: Trace, model: Model) -> Json:
    """How the residual stream grows, for each sublayer and token.

    Its length before, what is added, after, and normalised; then mean and standard deviation of what enters the norm.
    """
    found = {}
    parts = {"before": "in", "added": "out", "after": "resid", "normalised": "norm"}
    there = taps(model)
    for name in trace:
        sublayer, _, place = name.rpartition(".")
        if place == "resid":
            tensors = {kind: trace.tensors[f"{sublayer}.{tap}"] for kind, tap in parts.items()}
            post = isinstance(there[f"{sublayer}.in"].module, PostNorm)
            entered = tensors["before"] + tensors["added"] if post else tensors["before"]
            lengths = {kind: numbers(np.linalg.norm(values, axis=-1)) for kind, values in tensors.items()}
            moments = {"mean": numbers(entered.mean(-1)), "deviation": numbers(entered.std(-1))}
            found[sublayer] = lengths | moments
    return found


def through(seen: Lens, tokenizer: Tokenizer) -> Json:
    """The lens, with what its tokens are called."""
    ids = sorted({int(token) for token in seen.tokens.flatten()})
    return {
        "tokens": seen.tokens.tolist(),
        "log_probs": numbers(seen.log_probs),
        "entropy": numbers(seen.entropy),
        "rank": seen.rank.tolist(),
        "last_log_probs": numbers(seen.last_log_probs),
        "pieces": dict(zip(map(str, ids), tokenizer.pieces(ids), strict=True)),
    }


def search(log: BeamLog, tokenizer: Tokenizer) -> Json:
    """A search, a column for each thing that is known of its candidates."""
    nodes = log.nodes
    last = max((node.step for node in nodes), default=0)
    return {
        "beam": log.config.beam,
        "widest": WIDEST,
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
    """Float32 as JSON, in the nine digits that tell it from every other."""
    return np.vectorize(lambda value: float(f"{value:.9g}"), otypes=[float])(x).tolist() if x.size else x.tolist()


def finite(x: list[float]) -> list[float | None]:
    """JSON has no infinity."""
    return [value if np.isfinite(value) else None for value in x]
