"""Dotted keys of a recipe: lists them, finds unknown ones, and suggests the keys that a user probably meant."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints

from heedful.config.schema import ArchitectureConfig, ModelConfig, Recipe

# Names in other toolkits, which a search for similar spellings would miss.
_OTHER_NAMES = {
    "accum_count": "train.accumulate",
    "accumulate_grad_batches": "train.accumulate",
    "batch_size": "train.batch_tokens",
    "beam_size": "decode.beam",
    "dim": "model.d_model",
    "early_stopping": "train.patience",
    "emb_size": "model.d_model",
    "epochs": "train.max_epochs",
    "eval_every": "train.validate_every",
    "fp16": "train.precision",
    "grad_clip": "optimizer.clip_norm",
    "gradient_accumulation_steps": "train.accumulate",
    "hidden_size": "model.d_model",
    "layers": "model.encoder_layers",
    "learning_rate": "optimizer.lr",
    "length_penalty": "decode.alpha",
    "max_epoch": "train.max_epochs",
    "max_new_tokens": "generate.max_tokens",
    "max_steps": "train.max_updates",
    "min_new_tokens": "generate.min_tokens",
    "num_beams": "decode.beam",
    "num_heads": "model.heads",
    "num_train_epochs": "train.max_epochs",
    "num_workers": "train.workers",
    "steps": "train.max_updates",
    "train_steps": "train.max_updates",
    "update_freq": "train.accumulate",
    "validate_bleu": "train.validate_decoding",
    "warmup_steps": "optimizer.warmup",
}


def table_of(hint: Any, options: type = ModelConfig) -> type | None:
    """Find the dataclass in a field's type, such as `CorpusConfig | None` or `tuple[CorpusConfig, ...]`.

    Args:
        hint: the type of the field.
        options: the dataclass of [model], which depends on the architecture.
    """
    found = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    return options if found is not None and issubclass(found, ArchitectureConfig) else found


def all_keys(options: type = ModelConfig, table: type = Recipe, prefix: str = "") -> Iterator[str]:
    """Iterate over every dotted key and table of a recipe; a list of tables is listed once, with the number 0."""
    hints = get_type_hints(table)
    for field in fields(table):
        hint = hints[field.name]
        yield f"{prefix}{field.name}"
        if inner := table_of(hint, options):
            index = "0." if Ellipsis in get_args(hint) else ""
            yield from all_keys(options, inner, f"{prefix}{field.name}.{index}")


def unknown_keys(values: Any, options: type = ModelConfig, table: type = Recipe, prefix: str = "") -> Iterator[str]:
    """Iterate over the dotted keys in `values` that a recipe does not have; `options` is the dataclass of [model]."""
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from unknown_keys(item, options, table, f"{prefix}{index}.")
    elif isinstance(values, dict):
        hints = get_type_hints(table)
        for key, value in values.items():
            if key not in hints:
                yield f"{prefix}{key}"
            elif inner := table_of(hints[key], options):
                yield from unknown_keys(value, options, inner, f"{prefix}{key}.")


def nearest(key: str, options: type = ModelConfig) -> list[str]:
    """Suggest the valid recipe keys that an unknown `key` most likely stands for, at most three.

    Keys of the same name in another table come first, then names in other toolkits, then similar spellings.
    """
    index = re.search(r"\.(\d+)\.", key)
    key = re.sub(r"\.\d+\.", ".0.", key)
    leaf = _leaf(key)
    known = list(all_keys(options))
    leaves = sorted({_leaf(other) for other in known})
    found = [other for other in known if _leaf(other) == leaf]
    if not found and _OTHER_NAMES.get(leaf) in known:
        found = [_OTHER_NAMES[leaf]]
    if not found:
        found = get_close_matches(key, known, n=1, cutoff=0.8)
    if not found:
        close = get_close_matches(leaf, leaves, n=1, cutoff=0.7)
        found = [other for other in known if _leaf(other) in close]
    return [other.replace(".0.", index[0] if index else ".0.") for other in found[:3]]


def siblings(key: str, options: type = ModelConfig) -> list[str]:
    """List the names that are valid in the table that contains `key`."""
    table = re.sub(r"\.\d+\b", ".0", key.rpartition(".")[0])
    start = f"{table}." if table else ""
    return [other[len(start) :] for other in all_keys(options) if re.fullmatch(re.escape(start) + r"[^.]+", other)]


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
