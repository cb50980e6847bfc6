"""Common parts of the first recipes that are proposed: machine, model sizes, round numbers, and pieces of TOML."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import TypeVar

CPU_SPEED = 25e9  # floating-point operations a second that one core sustains in training; twice that in bfloat16
LEAST_BATCH = 1024  # tokens
LARGEST_ALPHABET = 8000  # pieces of a vocabulary of characters; whatever is rarer is spelled in bytes

Keys = Mapping[str, object]


@dataclass(frozen=True)
class Machine:
    """The machine that training will run on: its cores, bfloat16, and the memory of its GPU."""

    cores: int
    bfloat16: bool  # computed in hardware, by the GPU if there is one
    gpu_memory: float | None = None  # GiB; None without a GPU

    def budget(self, seconds: float) -> float:
        """Floating-point operations that training may take: what a CPU does in so many seconds, any number on a GPU."""
        speed = self.cores * CPU_SPEED * (2 if self.bfloat16 else 1)
        return seconds * speed if self.gpu_memory is None else math.inf


@dataclass(frozen=True)
class Size:
    """The size of a model for an amount of text, and its training settings, for a proposed recipe."""

    name: str
    most: float  # the amount of text, in pairs or characters, up to which the size is large enough
    d_model: int
    d_ff: int
    heads: int
    layers: int  # in each stack of layers
    dropout: float
    lr: float
    warmup: int
    passes: int  # passes over the data
    gpu_memory: float = field(default=0.0, kw_only=True)  # GiB that training takes; 0: a CPU is enough

    @property
    def block(self) -> int:
        """The number of weights of self-attention and feed-forward network in one layer."""
        return 4 * self.d_model**2 + 2 * self.d_model * self.d_ff


S = TypeVar("S", bound=Size)


def choose(sizes: Sequence[S], amount: float, machine: Machine, seconds: float, work: Callable[[S], float]) -> S:
    """Choose the model size for an amount of text, or the largest smaller one that the machine can train well."""
    enough = [size for number, size in enumerate(sizes) if number == 0 or amount > sizes[number - 1].most]
    memory, budget = machine.gpu_memory or 0, machine.budget(seconds)
    suitable = [size for size in enough if size.gpu_memory <= memory and work(size) <= budget]
    return suitable[-1] if suitable else sizes[0]


def save_interval(updates: float, saves: int) -> int:
    """The number of updates between two checkpoints: a round number of two digits and noughts, 10 or more."""
    return max(10, int(float(f"{updates / saves:.1e}")))


def batch_size(tokens: int, updates: int, most: int) -> int:
    """Choose the tokens of a batch: a power of two that gives so many updates a pass over the data, within limits."""
    return min(most, max(LEAST_BATCH, 2 ** int(math.log2(max(tokens, 1) / updates))))


def room_for(characters: int) -> int:
    """Vocabulary size of a character tokenizer: room for so many characters, 256 bytes and special tokens."""
    return min(LARGEST_ALPHABET, 100 * math.ceil((characters + 300) / 100))


@dataclass(frozen=True)
class Corpora:
    """Corpora for a proposed recipe: keys such as `source`, with their values, of each part's table."""

    train: Keys
    valid: Keys
    test: Keys

    def tables(self) -> str:
        """Write the TOML tables of a recipe that name its corpora: [[data.train]], [data.valid] and [data.test]."""
        parts = (
            ("[[data.train]] # for more data, add another block like this one", self.train),
            ("[data.valid] # scored during training", self.valid),
            ("[data.test] # scored by `heedful evaluate`", self.test),
        )
        tables = []
        for heading, keys in parts:
            tables.append("\n".join([heading, *(f"{key} = {quoted(value)}" for key, value in keys.items())]))
        return "\n\n".join(tables)


@dataclass(frozen=True)
class Texts:
    """Recipe name, corpora and handling of bad UTF-8 for a proposed recipe."""

    name: str  # of the recipe
    bad_utf8: str
    corpora: Corpora


def filled(template: Template, texts: Texts, values: Keys, **plain: str) -> str:
    """Fill in the template of a recipe: `texts` and `values` are written in TOML, `plain` goes in as it is."""
    named = {key: value for key, value in vars(texts).items() if key != "corpora"}
    written = {key: quoted(value) for key, value in {**values, **named}.items()}
    return template.substitute(written, corpora=texts.corpora.tables(), **plain)


def quoted(value: object) -> str:
    """Write a text, a number, a truth value or a list of texts in TOML, where they look as in JSON, but for U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


BEGINNING = """\
# A first recipe, written by `heedful init` after a look at $seen. Change whatever you like:
# `heedful config schema` describes every key, `heedful config check` finds slips.
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
positions = "rotary" # with "learned" ones a small model needs many times as long
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
max_updates = $max_updates # about $passes passes over the text
batch_tokens = $batch_tokens # if memory runs out, halve it and double accumulate
label_smoothing = 0.0
validate_every = $every
save_every = $every
"""
