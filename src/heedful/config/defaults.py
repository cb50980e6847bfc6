"""Values that a recipe overrides: its presets, and the defaults of its task."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from heedful.errors import InputError
from heedful.wording import did_you_mean

Values = Mapping[str, Any]

_ANY_RATIO: Values = {"data": {"filters": {"max_ratio": None}}}
_NO_SMOOTHING: Values = {"train": {"label_smoothing": 0.0}}
# Unlike the paper's translation models, GPT and BERT models are trained without label smoothing, with AdamW, and with a
# learning rate that decays until the end of the run.
_RUNNING_TEXT: Values = {
    "optimizer": {"name": "adamw", "lr": 5e-4, "schedule": "cosine", "warmup": 1000, "clip_norm": 1.0},
    **_NO_SMOOTHING,
}
# Task defaults, which all presets override.
TASK_DEFAULTS: dict[str, Values] = {
    "audio_classification": {
        "data": {"modality": "audio"},
        "model": {"family": "encoder", "pooling": "mean", "pooler": "none"},
        **_NO_SMOOTHING,
    },
    "captioning": {"data": {"modality": "image"}, "model": {"tie": "output"}},
    "dialogue": _ANY_RATIO,
    "image_classification": {
        "data": {"modality": "image"},
        "model": {"family": "encoder", "pooler": "none"},
        **_NO_SMOOTHING,
    },
    "image_text_retrieval": {
        "data": {"modality": "image", "max_length": 77},
        "model": {"architecture": "dual_encoder", "family": "encoder"},
        **_NO_SMOOTHING,
    },
    "language_model": {"model": {"family": "decoder"}, **_RUNNING_TEXT},
    "masked_lm": {"model": {"family": "encoder"}, **_RUNNING_TEXT},
    "masked_patches": {
        "data": {"modality": "image", "labelled": False},
        "masking": {"rate": 0.75},
        "model": {"family": "encoder", "pooler": "none"},
        **_NO_SMOOTHING,
    },
    "ranking": _NO_SMOOTHING,
    "speech_recognition": {"data": {"modality": "audio"}, "model": {"tie": "output"}},
    "summarisation": _ANY_RATIO,
    "text_to_text": _ANY_RATIO,
    "video_classification": {
        "data": {"modality": "video"},
        "model": {"family": "encoder", "pooler": "none"},
        **_NO_SMOOTHING,
    },
    "word_vectors": {
        "tokenizer": {"kind": "word", "vocab_size": 30_000, "lowercase": True, "byte_fallback": False},
        "model": {"architecture": "word2vec"},
        "optimizer": {"name": "row_sgd", "lr": 0.025, "min_lr": 0.0001, "schedule": "linear", "warmup": 0},
        "train": {"batch_tokens": 8192, "label_smoothing": 0.0, "precision": "float32"},
    },
}


def over_presets(values: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Merge recipe values over the presets that they name, and the result over the defaults of the task.

    The result does not contain the key `preset`. Error messages begin with `location`.
    """
    names = values.get("preset", [])
    below: dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        from heedful.config.presets import PRESETS

        if not isinstance(name, str) or name not in PRESETS:
            close = get_close_matches(str(name), PRESETS, n=3, cutoff=0.4)
            question = f"{did_you_mean(close)} " if close else ""
            raise InputError(
                f"{location}: unknown preset {json.dumps(name)}; {question}`heedful config presets` lists all"
            )
        below = merge(below, PRESETS[name])
    whole = merge(below, {key: value for key, value in values.items() if key != "preset"})

    defaults = dict(TASK_DEFAULTS.get(str(whole.get("task")), {}))
    optimizer = whole.get("optimizer")
    if "optimizer" in defaults and isinstance(optimizer, Mapping) and optimizer.get("schedule") in ("noam", "vaswani"):
        # The default learning rates and warm-up belong to schedules other than the paper's.
        others = {key: value for key, value in defaults["optimizer"].items() if key not in ("lr", "warmup", "min_lr")}
        defaults["optimizer"] = others
    return merge(defaults, whole)


def merge(below: Values, above: Values) -> dict[str, Any]:
    """Merge `above` over `below`, table by table. Values other than tables are replaced entirely."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = merge(below[key], above[key])
    return merged
