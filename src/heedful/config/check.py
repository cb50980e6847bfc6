"""Checks of recipe values that have the right types but cannot work: ranges, and rules for combinations.

All checks are tables and look at the recipe only: missing files or a missing GPU are found by
`heedful.train.preflight`.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from heedful.config import word2vec_rules
from heedful.config.families import FAMILIES
from heedful.config.rule import Rule
from heedful.config.schema import ArchitectureConfig, ModelConfig, Recipe
from heedful.config.word2vec import Word2VecConfig


@dataclass(frozen=True)
class Problem:
    """Problem found in a recipe: the dotted key at which to fix it, and a message."""

    key: str
    text: str


def pairs(recipe: Recipe) -> bool:
    """True if the model of a recipe reads a source and writes a target."""
    return FAMILIES[recipe.model.family].pairs


AT_LEAST = {
    "data.max_length": 8,
    "data.filters.max_characters": 1,
    "data.filters.max_tokens": 2,
    "data.filters.max_ratio": 1,
    "tokenizer.vocab_size": 5,
    "model.d_model": 1,
    "model.d_ff": 1,
    "model.heads": 1,
    "model.kv_heads": 1,
    "model.d_k": 1,
    "model.d_v": 1,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.max_positions": 2,
    "model.segments": 0,
    "optimizer.weight_decay": 0,
    "optimizer.warmup": 0,
    "optimizer.min_lr": 0,
    "optimizer.clip_norm": 0,
    "train.seed": 0,
    "train.max_updates": 1,
    "train.max_epochs": 1,
    "train.batch_tokens": 1,
    "train.accumulate": 1,
    "train.threads": 1,
    "train.validate_every": 1,
    "train.patience": 1,
    "train.save_every": 1,
    "train.keep_last": 1,
    "train.average_last": 1,
    "train.log_every": 1,
    "decode.beam": 1,
    "decode.alpha": 0,
    "decode.n_best": 1,
    "decode.patience": 0,
    "decode.max_extra": 0,
    "decode.batch_tokens": 1,
    "generate.max_tokens": 1,
    "generate.no_repeat_ngram": 1,
    "generate.temperature": 0,
    "generate.top_k": 1,
    "generate.seed": 0,
    "generate.batch_tokens": 1,
}

AT_MOST = {  # so that a damaged config.json that asks for a million layers is refused early
    "model.encoder_layers": 1000,
    "model.decoder_layers": 1000,
}

MORE_THAN_ZERO = {
    "data.train.weight",
    "model.norm_eps",
    "optimizer.lr",
    "optimizer.eps",
    "train.save_minutes",
    "generate.repetition_penalty",
    "generate.top_p",
    "generate.typical",
}

ANY = {"generate.frequency_penalty", "generate.presence_penalty"}  # less than zero favours tokens that were generated

RATES = {
    "tokenizer.dropout",
    "model.dropout",
    "model.attention_dropout",
    "model.activation_dropout",
    "optimizer.betas",
    "train.label_smoothing",
    "masking.rate",
    "masking.short",
    "generate.min_p",
}

SHARES = {
    "data.train.part",
    "data.valid.part",
    "data.test.part",
    "masking.mask",
    "masking.random",
    "generate.top_p",
    "generate.typical",
}

RULES = (
    Rule(
        "data.train",
        lambda r: any(c.part[0] >= c.part[1] for c in (*r.data.train, r.data.valid, r.data.test) if c),
        "the part of a corpus goes from a smaller to a larger share, such as part = [0.0, 0.9] of training text and "
        "part = [0.9, 1.0] of validation text",
    ),
    Rule(
        "masking.random",
        lambda r: r.masking.mask + r.masking.random > 1,
        "masking.mask + masking.random = {r.masking.mask} + {r.masking.random} is more than all of the chosen tokens; "
        "lower one of them",
    ),
    Rule(
        "model.source_vectors",
        lambda r: bool(r.model.source_vectors or r.model.target_vectors) and not pairs(r),
        "word vectors are placed in models of family encoder_decoder only, and model.family is "
        '"{r.model.family}"; leave model.source_vectors and model.target_vectors out',
    ),
    Rule(
        "model.freeze_vectors",
        lambda r: r.model.freeze_vectors and not (r.model.source_vectors or r.model.target_vectors),
        "model.freeze_vectors = true has nothing to freeze; give model.source_vectors or model.target_vectors",
    ),
    Rule(
        "tokenizer.dropout",
        lambda r: r.tokenizer.dropout > 0 and r.tokenizer.kind != "bpe",
        'tokenizer.dropout leaves out merges of byte-pair encoding, and tokenizer.kind is "{r.tokenizer.kind}"; '
        'set tokenizer.dropout = 0.0, or tokenizer.kind = "bpe"',
    ),
    Rule(
        "tokenizer.dropout",
        lambda r: r.tokenizer.dropout > 0 and not pairs(r),
        "tokenizer.dropout spells sentence pairs anew each time, and a model of family {r.model.family} reads text "
        "that was encoded once; set tokenizer.dropout = 0.0",
    ),
    Rule(
        "optimizer.lr",
        lambda r: r.optimizer.schedule == "vaswani" and r.optimizer.lr < 0.01,
        'with optimizer.schedule = "vaswani" optimizer.lr is a factor on the paper\'s formula, usually 1.0, and '
        'with {r.optimizer.lr} nothing would be learned; for a peak rate set optimizer.schedule = "inverse_sqrt"',
    ),
    Rule(
        "optimizer.lr",
        lambda r: r.optimizer.schedule != "vaswani" and r.optimizer.lr > 0.1,
        'with optimizer.schedule = "{r.optimizer.schedule}" optimizer.lr is the peak rate, and {r.optimizer.lr} '
        "would diverge; 0.0005 is usual",
    ),
    Rule(
        "optimizer.warmup",
        lambda r: r.optimizer.schedule == "vaswani" and r.optimizer.warmup < 1,
        'optimizer.schedule = "vaswani" divides by optimizer.warmup; give at least 1 (the paper: 4000)',
    ),
    Rule(
        "optimizer.min_lr",
        lambda r: r.optimizer.schedule not in ("cosine", "linear") and r.optimizer.min_lr > 0,
        'optimizer.min_lr is where "cosine" and "linear" end, and optimizer.schedule is "{r.optimizer.schedule}"; '
        "set optimizer.min_lr = 0.0, or one of these schedules",
    ),
    Rule(
        "optimizer.min_lr",
        lambda r: r.optimizer.min_lr > r.optimizer.lr,
        "optimizer.min_lr = {r.optimizer.min_lr} is above the peak, optimizer.lr = {r.optimizer.lr}; lower it",
    ),
    Rule(
        "train.batch_tokens",
        lambda r: pairs(r) and r.train.batch_tokens < r.data.filters.max_tokens,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a sentence of data.filters.max_tokens = "
        "{r.data.filters.max_tokens}; raise batch_tokens, or lower max_tokens",
    ),
    Rule(
        "train.batch_tokens",
        lambda r: not pairs(r) and r.train.batch_tokens < r.data.max_length,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a text of data.max_length = "
        "{r.data.max_length} tokens; raise batch_tokens, or lower max_length",
    ),
    Rule(
        "train.average_last",
        lambda r: r.train.average_last > r.train.keep_last,
        "train.average_last = {r.train.average_last} checkpoints cannot be averaged where train.keep_last = "
        "{r.train.keep_last} are kept; raise keep_last, or lower average_last",
    ),
    Rule(
        "train.best",
        lambda r: pairs(r) and not r.train.validate_decoding and r.train.best not in (None, "loss", "perplexity"),
        'train.best = "{r.train.best}" is a score of what is decoded, which train.validate_decoding = false leaves '
        'out; set train.best = "loss"',
    ),
    Rule(
        "train.patience",
        lambda r: r.train.patience is not None and r.data.valid is None,
        "train.patience counts validations, and there is no validation text; give [data.valid], or leave patience out",
    ),
    Rule(
        "train.device",
        lambda r: re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", r.train.device) is None,
        'train.device = "{r.train.device}" is no device; use "auto", "cpu", "cuda", "cuda:0" or "mps"',
    ),
    Rule(
        "decode.n_best",
        lambda r: r.decode.n_best > r.decode.beam,
        "decode.n_best = {r.decode.n_best} translations cannot come from decode.beam = {r.decode.beam}; "
        "raise beam, or lower n_best",
    ),
    Rule(
        "generate.stop",
        lambda r: "" in r.generate.stop,
        "generate.stop holds an empty text, which would end every output before it begins; take it out",
    ),
)

TRANSFORMER_RULES = (
    Rule(
        "model.heads",
        lambda r: r.model.d_k is None and r.model.d_model % r.model.heads != 0,
        "model.d_model = {r.model.d_model} cannot be divided by model.heads = {r.model.heads}; "
        "choose a number of heads that divides it, or give the size of a head as model.d_k",
    ),
    Rule(
        "model.kv_heads",
        lambda r: r.model.heads % (r.model.kv_heads or 1) != 0,
        "model.heads = {r.model.heads} cannot share model.kv_heads = {r.model.kv_heads} evenly; "
        "choose a kv_heads that divides heads",
    ),
    Rule(
        "model.positions",
        lambda r: r.model.positions == "sinusoidal" and r.model.d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, and model.d_model = {r.model.d_model} is odd; "
        'make it even, or set model.positions = "learned"',
    ),
    Rule(
        "model.positions",
        lambda r: r.model.positions == "rotary" and (r.model.d_k or r.model.d_model // r.model.heads) % 2 != 0,
        "rotary positions turn the dimensions of a head in pairs, and a head has an odd number of them; "
        "give an even model.d_k",
    ),
    Rule(
        "model.max_positions",
        lambda r: (
            r.model.positions == "learned"
            and pairs(r)
            and r.model.max_positions < r.data.filters.max_tokens + r.decode.max_extra
        ),
        "a translation may have data.filters.max_tokens + decode.max_extra = {r.data.filters.max_tokens} + "
        "{r.decode.max_extra} tokens, more than the model.max_positions = {r.model.max_positions} that are learned; "
        "raise model.max_positions to at least that sum",
    ),
    Rule(
        "model.max_positions",
        lambda r: r.model.positions == "learned" and not pairs(r) and r.model.max_positions < r.data.max_length,
        "a text may have data.max_length = {r.data.max_length} tokens, more than the model.max_positions = "
        "{r.model.max_positions} that are learned; raise model.max_positions, or lower data.max_length",
    ),
    Rule(
        "model.tie",
        lambda r: r.model.tie == "all" and not r.tokenizer.joint and pairs(r),
        'model.tie = "all" shares one matrix between the languages, which needs one vocabulary; '
        'set tokenizer.joint = true, or model.tie = "output"',
    ),
    Rule(
        "model.source_vectors",
        lambda r: r.model.tie == "all" and r.model.source_vectors != r.model.target_vectors,
        'model.tie = "all" shares one matrix between the languages, so that model.source_vectors and '
        'model.target_vectors must name the same file; or set model.tie = "none"',
    ),
)

# Rules of recipes whose model has these options.
RULES_OF: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {
    ArchitectureConfig: RULES,
    ModelConfig: TRANSFORMER_RULES,
    Word2VecConfig: word2vec_rules.RULES,
}

REMARKS = (
    Rule(
        "optimizer.warmup",
        lambda r: r.optimizer.warmup >= r.train.max_updates,
        "the run ends with train.max_updates = {r.train.max_updates}, before optimizer.warmup = {r.optimizer.warmup} "
        "is over: enough to try a recipe out, too short to learn from it",
    ),
)


def remarks(recipe: Recipe) -> list[str]:
    """List the remarks on a valid recipe that a user should know."""
    return [rule.text.format(r=recipe) for rule in REMARKS if rule.broken(recipe)]


def impossible(recipe: Recipe) -> list[Problem]:
    """List the problems of a recipe; combinations are checked only if every single number is in range."""
    return list(_out_of_range(asdict(recipe))) or [
        Problem(rule.key, rule.text.format(r=recipe))
        for options, rules in RULES_OF.items()
        for rule in rules
        if isinstance(recipe.model, options) and rule.broken(recipe)
    ]


def _out_of_range(values: dict[str, Any]) -> Iterator[Problem]:
    for key, value in _numbers(values):
        field = re.sub(r"\.\d+\b", "", key)
        if not math.isfinite(value):
            yield Problem(key, f"{key} must be a finite number, but is {value}")
        elif value < AT_LEAST.get(field, value):
            yield Problem(key, f"{key} must be at least {AT_LEAST[field]}, but is {value}")
        elif value > AT_MOST.get(field, value):
            yield Problem(key, f"{key} must be at most {AT_MOST[field]}, but is {value}")
        elif field in MORE_THAN_ZERO and value <= 0:
            yield Problem(key, f"{key} must be more than 0, but is {value}")
        elif field in RATES and not 0 <= value < 1:
            yield Problem(key, f"{key} must be at least 0 and less than 1, but is {value}")
        elif field in SHARES and not 0 <= value <= 1:
            yield Problem(key, f"{key} must be from 0 to 1, but is {value}")


def _numbers(values: Any, key: str = "") -> Iterator[tuple[str, int | float]]:
    """Iterate over every number of a nested value, with its dotted key."""
    if isinstance(values, int | float) and not isinstance(values, bool):
        yield key, values
    elif isinstance(values, dict | tuple):
        inside = values.items() if isinstance(values, dict) else enumerate(values)
        for name, value in inside:
            yield from _numbers(value, f"{key}.{name}".lstrip("."))
