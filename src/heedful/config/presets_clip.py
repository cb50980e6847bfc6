"""Presets of dual encoders: CLIP with the published sizes and training, and a small one for a laptop.

Radford et al. (2021), section 2.5 and tables 18 to 20; mean and deviation of the pixels as in the authors' code.
"""

from collections.abc import Mapping
from typing import Any

_BATCH, _CONTEXT = 32_768, 77  # pairs of a picture and a text in a batch, and tokens of a text

CLIP: dict[str, Mapping[str, Any]] = {
    "clip-base": {  # CLIP ViT-B/32
        "task": "image_text_retrieval",
        "data": {"modality": "image", "max_length": _CONTEXT},
        "tokenizer": {"kind": "bpe", "vocab_size": 49_408, "lowercase": True},
        "image": {
            "size": [224, 224],
            "patch": 32,
            "mean": [0.48145466, 0.4578275, 0.40821073],
            "std": [0.26862954, 0.26130258, 0.27577711],
        },
        "model": {
            "architecture": "dual_encoder",
            "family": "encoder",
            "d_model": 768,
            "d_ff": 3072,
            "heads": 12,
            "encoder_layers": 12,
            "positions": "learned",
            "max_positions": 50,
            "activation": "quick_gelu",
            "embedding_norm": True,
            "dropout": 0.0,
            "init": "scaled",
            "text_d_model": 512,
            "text_d_ff": 2048,
            "text_heads": 8,
            "text_layers": 12,
            "text_max_positions": _CONTEXT,
            "projection": 512,
            "temperature": 0.07,
        },
        "optimizer": {
            "name": "adamw",
            "lr": 5e-4,
            "betas": [0.9, 0.98],
            "eps": 1e-6,
            "weight_decay": 0.2,
            "schedule": "cosine",
            "warmup": 2000,
        },
        "train": {"max_updates": 390_000, "batch_tokens": _BATCH * _CONTEXT},  # 32 epochs of 400 million pairs
    },
    "clip-small": {
        "task": "image_text_retrieval",
        "data": {"modality": "image", "max_length": 64},
        "image": {"size": [64, 64], "patch": 8, "stem": "convolutional", "class_token": False, "positions": "learned"},
        "model": {
            "architecture": "dual_encoder",
            "family": "encoder",
            "d_model": 128,
            "d_ff": 256,
            "heads": 4,
            "encoder_layers": 3,
            "positions": "rotary",
            "activation": "gelu",
            "dropout": 0.0,
            "pooling": "mean",
            "text_d_model": 128,
            "text_d_ff": 256,
            "text_heads": 4,
            "text_layers": 2,
            "projection": 128,
        },
        "optimizer": {"name": "muon", "lr": 4e-3, "schedule": "linear", "warmup": 100},
        "train": {"max_updates": 2000, "batch_tokens": 8192},  # 128 pairs in a batch
    },
}
