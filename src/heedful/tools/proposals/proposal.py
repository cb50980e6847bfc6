"""Shared parts of all proposed recipes: machine, model sizes, tokenizers, schedules, and pieces of TOML."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any, TypeVar

from heedful.tools.proposals.text_statistics import TextStatistics

CPU_SPEED = 25e9  # floating-point operations per second that one core sustains in training; twice that in bfloat16
MIN_BATCH_TOKENS = 1024
MAX_CHARACTER_VOCABULARY = 8000  # entries in a character vocabulary; rarer characters become bytes

Keys = Mapping[str, object]


@dataclass(frozen=True)
class Machine:
    """The machine that training will run on."""

    cores: int
    bfloat16: bool  # True if supported in hardware, by the GPU if there is one
    gpu_memory: float | None = None  # GiB; None without a GPU

    def budget(self, seconds: float) -> float:
        """Return the floating-point operations that a CPU can perform in `seconds`; infinite with a GPU."""
        speed = self.cores * CPU_SPEED * (2 if self.bfloat16 else 1)
        return seconds * speed if self.gpu_memory is None else math.inf


@dataclass(frozen=True)
class Size:
    """A model size with the training settings that suit it."""

    name: str
    max_amount: float  # maximum amount of data, in pairs, characters or files, for which the size is large enough
    d_model: int
    d_ff: int
    heads: int
    layers: int  # in each stack of layers
    dropout: float
    lr: float
    warmup: int
    passes: int  # over the data
    gpu_memory: float = field(default=0.0, kw_only=True)  # GiB that training takes; 0: a CPU is enough

    @property
    def block(self) -> int:
        """Number of weights in the self-attention and the feed-forward network of one layer."""
        return 4 * self.d_model**2 + 2 * self.d_model * self.d_ff


S = TypeVar("S", bound=Size)


def fitting_size(sizes: Sequence[S], amount: float, machine: Machine, seconds: float, work: Callable[[S], float]) -> S:
    """Choose the size for an amount of data, or the largest smaller one that the machine can train in `seconds`.

    `work` returns the floating-point operations to train a size. If no size fits, the smallest is chosen.
    """
    memory, budget = machine.gpu_memory or 0, machine.budget(seconds)
    suitable = [
        size
        for index, size in enumerate(sizes)
        if (index == 0 or amount > sizes[index - 1].max_amount) and size.gpu_memory <= memory and work(size) <= budget
    ]
    return suitable[-1] if suitable else sizes[0]


def batch_size(tokens: int, updates: int, most: int) -> int:
    """Choose the tokens per batch: a power of two, within limits, so that a pass has about `updates` updates."""
    return min(most, max(MIN_BATCH_TOKENS, 2 ** int(math.log2(max(tokens, 1) / updates))))


def schedule(size: Size, updates: float, updates_per_pass: float, saves: int) -> dict[str, Any]:
    """Return the template values for a size: the model and its training settings, and when to save and stop.

    A run has `saves` checkpoints at a round interval: two significant digits, and at least 10 updates.
    """
    every = max(10, int(float(f"{updates / saves:.1e}")))
    passes = saves * every / updates_per_pass
    return vars(size) | {
        "size": size.name,
        "more_dropout": round(size.dropout + 0.1, 1),
        "max_updates": saves * every,
        "warmup": min(size.warmup, 2 * every),
        "every": every,
        "passes": round(passes) if passes >= 2 else round(passes, 1),
    }


def character_vocabulary(characters: int) -> int:
    """Return the vocabulary size of a character tokenizer: room for the characters, 256 bytes and special tokens."""
    return min(MAX_CHARACTER_VOCABULARY, 100 * math.ceil((characters + 300) / 100))


def subword_vocabulary(thousands: float) -> int:
    """Return the vocabulary size of a subword tokenizer: whole thousands, from 1000 to 8000."""
    return min(8000, max(1000, 1000 * round(thousands)))


def tokenizer_values(texts: TextStatistics, subwords: str) -> dict[str, object]:
    """Return the kind and vocabulary size of a tokenizer for some texts: characters if no spaces separate words."""
    if texts.is_spaceless:
        return {"kind": "character", "vocab_size": character_vocabulary(texts.alphabet)}
    return {"kind": subwords, "vocab_size": subword_vocabulary(int(texts.words.sum()) / 15_000)}


@dataclass(frozen=True)
class RecipeData:
    """Data settings of a proposed recipe: how it reads bad UTF-8, and the keys of each part, such as `source`."""

    name: str  # of the recipe
    bad_utf8: str
    corpora: Mapping[str, Keys]  # of train, valid and test


def fill_template(template: str, data: RecipeData, values: Keys, **lines: str) -> str:
    """Fill in the template of a recipe: `data` and `values` are written in TOML, `lines` are inserted unchanged."""
    headings = {
        "train": "[[data.train]] # for more data, add another block like this one",
        "valid": "[data.valid] # scored during training",
        "test": "[data.test] # scored by `heedful evaluate`",
    }
    tables = [
        "\n".join([heading, *(f"{key} = {toml_value(value)}" for key, value in data.corpora[part].items())])
        for part, heading in headings.items()
    ]
    values = {**values, "name": data.name, "bad_utf8": data.bad_utf8}
    texts = {key: toml_value(value) for key, value in values.items()}
    return Template(template).substitute(texts, corpora="\n\n".join(tables), **lines)


def toml_value(value: object) -> str:
    """Format a string, a number, a boolean or a list of strings as TOML: like JSON, except for U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


HEADER = """\
# A first recipe, written by `heedful init` for $content. Change anything you like:
# `heedful config schema` describes every key, `heedful config check` finds mistakes.
"""

MODEL = """
[model] # of the size $size
d_model = $d_model
d_ff = $d_ff
heads = $heads
norm = "pre"
activation = "gelu"
scale_embeddings = false
dropout = $dropout # more, such as $more_dropout, if the training loss falls and the validation loss rises
"""

ENCODER = (
    MODEL
    + """\
family = "encoder"
encoder_layers = $layers
positions = "rotary" # with "learned", a small model takes many times as long to train
segments = 2
embedding_norm = true
"""
)

ADAMW = """
[optimizer]
name = "adamw"
lr = $lr # if the loss jumps, halve it
warmup = $warmup
clip_norm = 1.0
"""

ADAMW_OF_BERT = (
    ADAMW
    + """\
betas = [0.9, 0.999]
eps = 1e-6
weight_decay = 0.01
schedule = "linear"
"""
)

TRAINING = """
[train]
max_updates = $max_updates # about $passes epochs
batch_tokens = $batch_tokens # if memory runs out, halve it and double accumulate
label_smoothing = 0.0
validate_every = $every
save_every = $every
"""
