"""Presets of Vision Transformers for ImageNet: the published sizes and training settings.

ViT-B: Dosovitskiy et al. (2021), table 1 and, for ImageNet alone, table 3. ViT-Ti and ViT-S: Touvron et al. (2021),
tables 1 and 9; their stochastic depth, CutMix and RandAugment are left out.
"""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]

_PICTURES, _SIDE, _PATCH = 1_281_167, 224, 16
_TOKENS = (_SIDE // _PATCH) ** 2 + 1  # of a picture, with the class token
_AT_ONCE = 64  # pictures in a batch; more batches make an update


def vit(width: int, image: Values, training: Values, *, pictures: int, warmup: int) -> Values:
    """Make the preset of a Vision Transformer of 12 layers, with 64 dimensions for each head.

    Args:
        width: Size of the hidden states.
        image: Augmentation and scale of the pictures.
        training: Dropout, learning rate, weight decay and label smoothing.
        pictures: Number of pictures for an update.
        warmup: Updates in which the learning rate rises.
    """
    return {
        "task": "image_classification",
        "data": {"modality": "image"},
        "image": {"size": [_SIDE, _SIDE], "patch": _PATCH, "flip": True, "zoom": 0.08, **image},
        "model": {
            "family": "encoder",
            "d_model": width,
            "d_ff": 4 * width,
            "heads": width // 64,
            "encoder_layers": 12,
            "positions": "learned",
            "max_positions": _TOKENS,
            "norm": "pre",
            "norm_eps": 1e-6,
            "activation": "gelu",
            "scale_embeddings": False,
            "init": "normal",
            "pooler": "none",
            "dropout": training["dropout"],
        },
        "optimizer": {
            "name": "adamw",
            "lr": training["lr"],
            "betas": [0.9, 0.999],
            "eps": 1e-8,
            "weight_decay": training["weight_decay"],
            "schedule": "cosine",
            "warmup": warmup,
            "clip_norm": training["clip_norm"],
        },
        "train": {
            "max_updates": 300 * _PICTURES // pictures,
            "batch_tokens": _AT_ONCE * _TOKENS,
            "accumulate": pictures // _AT_ONCE,
            "label_smoothing": training["label_smoothing"],
        },
    }


_OF_VIT: Values = {"dropout": 0.1, "lr": 3e-3, "weight_decay": 0.3, "clip_norm": 1.0, "label_smoothing": 0.0}
_OF_DEIT: Values = {"dropout": 0.0, "lr": 1e-3, "weight_decay": 0.05, "clip_norm": 0.0, "label_smoothing": 0.1}
_IMAGE_OF_DEIT: Values = {
    "erase": 0.25,
    "mixup": 0.8,
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
}

VISION: dict[str, Values] = {
    "vit-tiny": vit(192, _IMAGE_OF_DEIT, _OF_DEIT, pictures=1024, warmup=5 * _PICTURES // 1024),
    "vit-small": vit(384, _IMAGE_OF_DEIT, _OF_DEIT, pictures=1024, warmup=5 * _PICTURES // 1024),
    "vit-base": vit(768, {}, _OF_VIT, pictures=4096, warmup=10_000),
}
