"""Presets of Whisper: the published sizes, from sound of 30 seconds to text (Radford et al. 2022, tables 1 and 17).

Training follows the appendix: AdamW, a rate that falls linearly to zero, gradients clipped at 1, no label smoothing.
"""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]


def whisper(layers: int, width: int, rate: float) -> Values:
    """Make the preset of a Whisper with some layers on each side and a width, with 64 dimensions for each head."""
    return {
        "task": "speech_recognition",
        "data": {"modality": "audio"},
        "audio": {"rate": 16_000, "window": 400, "hop": 160, "mels": 80, "pad_seconds": 30.0, "max_seconds": 30.0},
        "tokenizer": {"kind": "bpe", "vocab_size": 50_257},
        "model": {
            "family": "encoder_decoder",
            "encoder_layers": layers,
            "decoder_layers": layers,
            "d_model": width,
            "d_ff": 4 * width,
            "heads": width // 64,
            "positions": "learned",
            "max_positions": 1500,
            "max_target_positions": 448,
            "norm": "pre",
            "activation": "gelu",
            "tie": "output",
            "scale_embeddings": False,
            "dropout": 0.0,
        },
        "optimizer": {
            "name": "adamw",
            "lr": rate,
            "betas": [0.9, 0.98],
            "eps": 1e-6,
            "weight_decay": 0.1,
            "schedule": "linear",
            "warmup": 2048,
            "clip_norm": 1.0,
        },
        "train": {"max_updates": 1_048_576, "batch_tokens": 24_000, "accumulate": 16, "label_smoothing": 0.0},
        "decode": {"beam": 5, "penalty": "average_text", "alpha": 1.0},
    }


WHISPER: dict[str, Values] = {
    "whisper-tiny": whisper(4, 384, 1.5e-3),
    "whisper-base": whisper(6, 512, 1e-3),
}
