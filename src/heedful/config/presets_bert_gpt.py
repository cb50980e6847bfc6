"""Presets of BERT and GPT: the published sizes and training settings.

BERT: Devlin et al. (2019), section 3 and appendix A.2; the small ones: Turc et al. (2019), table 1. GPT-2: Radford et
al. (2019), table 2. Shakespeare: the settings that nanoGPT publishes for characters, for a GPU and for a CPU.
"""

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]

_BERT: Values = {
    "task": "masked_lm",
    "data": {"max_length": 512},
    "tokenizer": {"kind": "wordpiece", "vocab_size": 30_522, "lowercase": True, "byte_fallback": False, "mask": True},
    "masking": {"rate": 0.15, "mask": 0.8, "random": 0.1, "next_sentence": True, "short": 0.1},
    "model": {
        "family": "encoder",
        "positions": "learned",
        "max_positions": 512,
        "norm": "post",
        "norm_eps": 1e-12,
        "activation": "gelu",
        "output_bias": True,
        "segments": 2,
        "scale_embeddings": False,
        "embedding_norm": True,
        "init": "normal",
        "dropout": 0.1,
        "attention_dropout": 0.1,
    },
    "optimizer": {
        "name": "adamw",
        "lr": 1e-4,
        "betas": [0.9, 0.999],
        "eps": 1e-6,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup": 10_000,
        "clip_norm": 1.0,
    },
    "train": {"max_updates": 1_000_000, "batch_tokens": 131_072, "label_smoothing": 0.0},
}

_GPT2: Values = {
    "task": "language_model",
    "data": {"max_length": 1024},
    "tokenizer": {"kind": "bpe", "vocab_size": 50_257},
    "model": {
        "family": "decoder",
        "positions": "learned",
        "max_positions": 1024,
        "norm": "pre",
        "activation": "gelu_tanh",
        "scale_embeddings": False,
        "init": "scaled",
        "dropout": 0.1,
        "attention_dropout": 0.1,
    },
    "optimizer": {
        "name": "adamw",
        "lr": 6e-4,
        "min_lr": 6e-5,
        "betas": [0.9, 0.95],
        "eps": 1e-8,
        "weight_decay": 0.1,
        "schedule": "cosine",
        "warmup": 2000,
        "clip_norm": 1.0,
    },
    "train": {"max_updates": 600_000, "batch_tokens": 12_288, "accumulate": 40, "label_smoothing": 0.0},
}

_SHAKESPEARE: Values = {
    "task": "language_model",
    "tokenizer": {"kind": "character", "vocab_size": 256, "byte_fallback": False},
    "model": {
        "family": "decoder",
        "positions": "learned",
        "norm": "pre",
        "activation": "gelu",
        "attention_bias": False,
        "bias": False,
        "scale_embeddings": False,
        "init": "scaled",
    },
    "optimizer": {
        "name": "adamw",
        "lr": 1e-3,
        "min_lr": 1e-4,
        "betas": [0.9, 0.99],
        "eps": 1e-8,
        "weight_decay": 0.1,
        "schedule": "cosine",
        "warmup": 100,
        "clip_norm": 1.0,
    },
    "train": {"label_smoothing": 0.0, "validate_every": 250, "save_every": 250},
}


def sized(below: Values, **tables: Values) -> Values:
    """Copy a preset with some keys of its tables changed."""
    return {**below, **{name: {**below.get(name, {}), **values} for name, values in tables.items()}}


def encoder(layers: int, width: int) -> Values:
    """Make the preset of a BERT with some layers and width: 64 dimensions for each head, feed-forward of 4 x width."""
    return sized(_BERT, model={"encoder_layers": layers, "d_model": width, "d_ff": 4 * width, "heads": width // 64})


def decoder(layers: int, width: int) -> Values:
    """Make the preset of a GPT-2 with some layers and width, with 64 dimensions for each head."""
    return sized(_GPT2, model={"decoder_layers": layers, "d_model": width, "d_ff": 4 * width, "heads": width // 64})


def shakespeare(layers: int, width: int, context: int, rows: int, dropout: float, updates: int) -> Values:
    """Make the preset of a character-level GPT with as many heads as layers, and batches of `rows` contexts."""
    return sized(
        _SHAKESPEARE,
        data={"max_length": context},
        model={
            "decoder_layers": layers,
            "d_model": width,
            "d_ff": 4 * width,
            "heads": layers,
            "max_positions": context,
            "dropout": dropout,
            "attention_dropout": dropout,
        },
        train={"batch_tokens": rows * context, "max_updates": updates},
    )


CHILDREN: dict[str, Values] = {
    "bert-tiny": encoder(2, 128),
    "bert-mini": encoder(4, 256),
    "bert-small": encoder(4, 512),
    "bert-medium": encoder(8, 512),
    "bert-base": encoder(12, 768),
    "bert-large": encoder(24, 1024),
    "gpt2": decoder(12, 768),
    "gpt2-medium": decoder(24, 1024),
    "gpt2-large": decoder(36, 1280),
    "gpt2-xl": decoder(48, 1600),
    "shakespeare-cpu": shakespeare(layers=4, width=128, context=64, rows=12, dropout=0.0, updates=2000),
    "shakespeare": shakespeare(layers=6, width=384, context=256, rows=64, dropout=0.2, updates=5000),
}
