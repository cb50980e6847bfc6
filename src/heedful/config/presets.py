"""Presets: named recipes to start from, such as the models of "Attention Is All You Need", Table 3, BERT and GPT.

A recipe takes a preset with `preset = "NAME"`; values of the recipe itself override it.
"""

from dataclasses import dataclass, field

from heedful.config.presets_bert_gpt import CHILDREN
from heedful.config.presets_clip import CLIP
from heedful.config.presets_vision import VISION
from heedful.config.presets_whisper import WHISPER
from heedful.config.task_defaults import Values, merge


@dataclass(frozen=True)
class Table3Row:
    """Row of Table 3 in Vaswani et al. (2017): changes from the base model and printed results, None where left out."""

    name: str
    changes: Values = field(default_factory=dict)
    millions: int | None = None  # parameters, in 10^6
    perplexity: float = 0.0  # per subword, newstest2013
    bleu: float = 0.0  # newstest2013


TABLE_3 = (
    Table3Row("base", {}, 65, 4.92, 25.8),
    Table3Row("A-h1", {"model": {"heads": 1}}, None, 5.29, 24.9),
    Table3Row("A-h4", {"model": {"heads": 4}}, None, 5.00, 25.5),
    Table3Row("A-h16", {"model": {"heads": 16}}, None, 4.91, 25.8),
    Table3Row("A-h32", {"model": {"heads": 32}}, None, 5.01, 25.4),
    Table3Row("B-dk16", {"model": {"d_k": 16, "d_v": 64}}, 58, 5.16, 25.1),
    Table3Row("B-dk32", {"model": {"d_k": 32, "d_v": 64}}, 60, 5.01, 25.4),
    Table3Row("C-N2", {"model": {"encoder_layers": 2, "decoder_layers": 2}}, 36, 6.11, 23.7),
    Table3Row("C-N4", {"model": {"encoder_layers": 4, "decoder_layers": 4}}, 50, 5.19, 25.3),
    Table3Row("C-N8", {"model": {"encoder_layers": 8, "decoder_layers": 8}}, 80, 4.88, 25.5),
    Table3Row("C-d256", {"model": {"d_model": 256}}, 28, 5.75, 24.5),
    Table3Row("C-d1024", {"model": {"d_model": 1024}}, 168, 4.66, 26.0),
    Table3Row("C-ff1024", {"model": {"d_ff": 1024}}, 53, 5.12, 25.4),
    Table3Row("C-ff4096", {"model": {"d_ff": 4096}}, 90, 4.75, 26.2),
    Table3Row("D-dropout0.0", {"model": {"dropout": 0.0}}, None, 5.77, 24.6),
    Table3Row("D-dropout0.2", {"model": {"dropout": 0.2}}, None, 4.95, 25.5),
    Table3Row("D-smoothing0.0", {"train": {"label_smoothing": 0.0}}, None, 4.67, 25.3),
    Table3Row("D-smoothing0.2", {"train": {"label_smoothing": 0.2}}, None, 5.47, 25.7),
    Table3Row("E-learned", {"model": {"positions": "learned"}}, None, 4.92, 25.7),
    Table3Row(
        "big",
        {
            "model": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
            "train": {"max_updates": 300_000, "keep_last": 20, "average_last": 20},
        },
        213,
        4.33,
        26.4,
    ),
)

# Sections 3 and 5 of the paper. Its text has no biases in attention, and "about 25000" tokens a side in a batch: with
# padding 8 x 4096, as in the authors' first public code (tensor2tensor, June 2017).
_VASWANI: Values = {
    "tokenizer": {"kind": "bpe", "vocab_size": 37_000, "joint": True},
    "model": {
        "d_model": 512,
        "d_ff": 2048,
        "heads": 8,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "positions": "sinusoidal",
        "norm": "post",
        "activation": "relu",
        "attention_bias": False,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "tie": "all",
    },
    "optimizer": {
        "name": "adam",
        "lr": 1.0,
        "betas": [0.9, 0.98],
        "eps": 1e-9,
        "weight_decay": 0.0,
        "schedule": "vaswani",
        "warmup": 4000,
        "clip_norm": 0.0,
    },
    "train": {
        "max_updates": 100_000,
        "batch_tokens": 4096,
        "accumulate": 8,
        "label_smoothing": 0.1,
        "keep_last": 5,
        "average_last": 5,
    },
    "decode": {"beam": 4, "penalty": "gnmt", "alpha": 0.6},
}

# Transformer-Tiny of Wu et al. (2021, "Good for Misconceived Reasons"), best on the 29,000 pairs of Multi30k. How it is
# trained depends on the data, so that is left to recipes.
_TINY: Values = {
    "model": {
        "d_model": 128,
        "d_ff": 256,
        "heads": 4,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "norm": "post",
        "attention_bias": True,
    },
}

PRESETS: dict[str, Values] = {
    "tiny": _TINY,
    **CHILDREN,
    **VISION,
    **CLIP,
    **WHISPER,
    **{f"vaswani-{row.name}": merge(_VASWANI, row.changes) for row in TABLE_3},
}
