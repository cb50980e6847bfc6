"""Defaults of the recipes of single tasks, which are below presets and the values of the recipe itself."""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]


def merge(below: Values, above: Values) -> dict[str, Any]:
    """Merge `above` over `below`, table by table; values other than tables are replaced whole."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = merge(below[key], above[key])
    return merged


# Defaults of some tasks, below all presets: no limit on the ratio of the lengths of input and output; no label
# smoothing over the passages of a batch.
_OF_ANY_LENGTH: Values = {"data": {"filters": {"max_ratio": None}}}
# A GPT or a BERT is not trained as the translators of the paper are: likelihood without smoothing, AdamW, and a rate
# that falls to the end of the run.
_OF_RUNNING_TEXT: Values = {
    "optimizer": {"name": "adamw", "lr": 5e-4, "schedule": "cosine", "warmup": 1000, "clip_norm": 1.0},
    "train": {"label_smoothing": 0.0},
}
OF_TASKS: dict[str, Values] = {
    "audio_classification": {
        "data": {"modality": "audio"},
        "model": {"family": "encoder", "pooling": "mean", "pooler": "none"},
        "train": {"label_smoothing": 0.0},
    },
    "captioning": {"data": {"modality": "image"}, "model": {"tie": "output"}},
    "dialogue": _OF_ANY_LENGTH,
    "image_classification": {
        "data": {"modality": "image"},
        "model": {"family": "encoder", "pooler": "none"},
        "train": {"label_smoothing": 0.0},
    },
    "image_text_retrieval": {
        "data": {"modality": "image", "max_length": 77},
        "model": {"architecture": "dual_encoder", "family": "encoder"},
        "train": {"label_smoothing": 0.0},
    },
    "language_model": {"model": {"family": "decoder"}, **_OF_RUNNING_TEXT},
    "masked_lm": {"model": {"family": "encoder"}, **_OF_RUNNING_TEXT},
    "masked_patches": {
        "data": {"modality": "image", "labelled": False},
        "masking": {"rate": 0.75},
        "model": {"family": "encoder", "pooler": "none"},
        "train": {"label_smoothing": 0.0},
    },
    "ranking": {"train": {"label_smoothing": 0.0}},
    "speech_recognition": {"data": {"modality": "audio"}, "model": {"tie": "output"}},
    "summarisation": _OF_ANY_LENGTH,
    "text_to_text": _OF_ANY_LENGTH,
    "video_classification": {
        "data": {"modality": "video"},
        "model": {"family": "encoder", "pooler": "none"},
        "train": {"label_smoothing": 0.0},
    },
    "word_vectors": {
        "tokenizer": {"kind": "word", "vocab_size": 30_000, "lowercase": True, "byte_fallback": False},
        "model": {"architecture": "word2vec"},
        "optimizer": {"name": "row_sgd", "lr": 0.025, "min_lr": 0.0001, "schedule": "linear", "warmup": 0},
        "train": {"batch_tokens": 8192, "label_smoothing": 0.0, "precision": "float32"},
    },
}
