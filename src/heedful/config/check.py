"""Checks of recipe values that have the right types but cannot work: ranges here, combinations in `config.rules`.

All checks are tables and look at the recipe only: missing files or a missing GPU are found by
`heedful.train.preflight`.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from heedful.config.rules import REMARKS, RULES_OF
from heedful.config.schema import Recipe


@dataclass(frozen=True)
class Problem:
    """Problem found in a recipe: the dotted key at which to fix it, and a message."""

    key: str
    text: str


AT_LEAST = {
    "data.max_length": 8,
    "data.filters.max_characters": 1,
    "data.filters.max_tokens": 2,
    "data.filters.max_ratio": 1,
    "tokenizer.vocab_size": 5,
    "image.size": 1,
    "image.patch": 1,
    "image.max_pixels": 1,
    "image.shift": 0,
    "image.mixup": 0,
    "video.frames": 1,
    "video.tubelet": 1,
    "video.max_frames": 1,
    "audio.rate": 1,
    "audio.channel": 1,
    "audio.window": 2,
    "audio.hop": 1,
    "audio.mels": 1,
    "audio.pad_seconds": 0,
    "audio.time_masks": 0,
    "audio.frequency_masks": 0,
    "model.d_model": 1,
    "model.d_ff": 1,
    "model.heads": 1,
    "model.kv_heads": 1,
    "model.d_k": 1,
    "model.d_v": 1,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.layers": 1,
    "model.text_d_model": 1,
    "model.text_d_ff": 1,
    "model.text_heads": 1,
    "model.text_layers": 1,
    "model.text_max_positions": 2,
    "model.projection": 1,
    "model.channels": 1,
    "model.kernel_size": 1,
    "model.filters": 1,
    "model.max_positions": 2,
    "model.max_target_positions": 2,
    "model.segments": 0,
    "model.window": 1,
    "model.negatives": 1,
    "model.noise_power": 0,
    "model.subsample": 0,
    "model.phrase_discount": 0,
    "optimizer.weight_decay": 0,
    "optimizer.warmup": 0,
    "optimizer.min_lr": 0,
    "optimizer.clip_norm": 0,
    "train.seed": 0,
    "train.max_updates": 1,
    "train.max_epochs": 1,
    "train.batch_tokens": 1,
    "train.accumulate": 1,
    "train.threads": 1,
    "train.workers": 0,
    "train.validate_every": 1,
    "parallel.shard_processes": 1,
    "train.patience": 1,
    "train.save_every": 1,
    "train.keep_last": 1,
    "train.average_last": 1,
    "train.log_every": 1,
    "decode.beam": 1,
    "decode.alpha": 0,
    "decode.n_best": 1,
    "decode.patience": 0,
    "decode.max_extra": 0,
    "decode.batch_tokens": 1,
    "generate.max_tokens": 1,
    "generate.min_tokens": 0,
    "generate.no_repeat_ngram": 1,
    "generate.temperature": 0,
    "generate.repetition_penalty": 0.001,
    "generate.top_k": 1,
    "generate.seed": 0,
    "generate.batch_tokens": 1,
    "transcribe.alignment_heads": 0,
    "transcribe.suppress": 0,
    "transcribe.suppress_first": 0,
}

LARGEST = 2**63 - 1  # of any number, in size: what a tensor counts with

AT_MOST = {  # so that a stranger's model that asks for a million layers, or for an endless output, is refused early
    "tokenizer.vocab_size": 10_000_000,
    "model.encoder_layers": 1000,
    "model.decoder_layers": 1000,
    "model.layers": 1000,
    "model.text_layers": 1000,
    "model.text_heads": 10_000,
    "model.text_max_positions": 1_000_000,
    "model.heads": 10_000,
    "model.max_positions": 1_000_000,
    "model.max_target_positions": 1_000_000,
    "image.size": 10_000,
    "image.mixup": 4,
    "video.frames": 10_000,
    "audio.rate": 768_000,
    "audio.window": 768_000,
    "audio.mels": 10_000,
    "audio.pad_seconds": 3600,
    "audio.max_seconds": 36_000,
    "train.workers": 1000,
    "parallel.timeout_minutes": 1_000_000,
    "decode.beam": 1000,
    "decode.alpha": 10,
    "decode.max_extra": 10_000,
    "decode.patience": 1000,
    "generate.max_tokens": 1_000_000,
}

MORE_THAN_ZERO = {
    "data.train.weight",
    "model.norm_eps",
    "model.temperature",
    "image.zoom",
    "image.std",
    "audio.max_seconds",
    "optimizer.lr",
    "optimizer.eps",
    "train.max_minutes",
    "train.save_minutes",
    "parallel.timeout_minutes",
    "generate.top_p",
    "generate.typical",
}

ANY = {"generate.frequency_penalty", "generate.presence_penalty"}  # less than zero favours tokens that were generated

RATES = {
    "tokenizer.dropout",
    "model.dropout",
    "model.attention_dropout",
    "model.activation_dropout",
    "optimizer.betas",
    "train.label_smoothing",
    "audio.speed",
    "masking.rate",
    "masking.short",
    "generate.min_p",
    "transcribe.overlap",
}

SHARES = {
    "data.train.part",
    "data.valid.part",
    "data.test.part",
    "image.zoom",
    "image.erase",
    "audio.time_mask",
    "audio.frequency_mask",
    "masking.mask",
    "masking.random",
    "generate.top_p",
    "generate.typical",
    "transcribe.no_speech",
}


def remarks(recipe: Recipe) -> list[str]:
    """List the remarks on a valid recipe that a user should know."""
    return [rule.text.format(r=recipe) for rule in REMARKS if rule.broken(recipe)]


def impossible(recipe: Recipe) -> list[Problem]:
    """List the problems of a recipe; combinations are checked only if every single number is in range."""
    return list(_out_of_range(asdict(recipe))) or [
        Problem(rule.key, rule.text.format(r=recipe))
        for options, rules in RULES_OF.items()
        for rule in rules
        if isinstance(recipe.model, options) and rule.broken(recipe)
    ]


def _out_of_range(values: dict[str, Any]) -> Iterator[Problem]:
    for key, value in _numbers(values):
        field = re.sub(r"\.\d+\b", "", key)
        if not abs(value) <= LARGEST:
            size = "a finite number" if isinstance(value, float) and not math.isfinite(value) else "less than 2^63"
            yield Problem(key, f"{key} must be {size}, but is {value}")
        elif value < AT_LEAST.get(field, value):
            yield Problem(key, f"{key} must be at least {AT_LEAST[field]}, but is {value}")
        elif value > AT_MOST.get(field, value):
            yield Problem(key, f"{key} must be at most {AT_MOST[field]}, but is {value}")
        elif field in MORE_THAN_ZERO and value <= 0:
            yield Problem(key, f"{key} must be more than 0, but is {value}")
        elif field in RATES and not 0 <= value < 1:
            yield Problem(key, f"{key} must be at least 0 and less than 1, but is {value}")
        elif field in SHARES and not 0 <= value <= 1:
            yield Problem(key, f"{key} must be from 0 to 1, but is {value}")


def _numbers(values: Any, key: str = "") -> Iterator[tuple[str, int | float]]:
    """Iterate over every number of a nested value, with its dotted key."""
    if isinstance(values, int | float) and not isinstance(values, bool):
        yield key, values
    elif isinstance(values, dict | tuple):
        inside = values.items() if isinstance(values, dict) else enumerate(values)
        for name, value in inside:
            yield from _numbers(value, f"{key}.{name}".lstrip("."))
