"""Rules for recipes whose values have the right types and ranges: combinations that cannot work, and remarks.

A rule reads only the recipe: `heedful.training.preflight` finds missing files or a missing GPU. The rules of
architectures other than the Transformer are in the files of their settings, and apply to recipes whose [model] has
these settings.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import (
    ArchitectureConfig,
    FilterConfig,
    Recipe,
    TextModelConfig,
    TransformerSettings,
    VariantConfig,
)
from heedful.registry import ARCHITECTURES, TASKS


@dataclass(frozen=True)
class Rule:
    """Rule for a combination of recipe values that is rejected, or that causes a remark.

    Attributes:
        at: The key to change, as an attribute of `KEYS`.
        broken: Returns True if a recipe breaks the rule.
        text: The message, a format string that takes the recipe as `r`.
    """

    at: Any
    broken: Callable[[Recipe], bool]
    text: str

    @property
    def key(self) -> str:
        return str(self.at)


# By settings class of [model]: the rules for recipes whose model has the settings of this class. RULES reject a recipe,
# and REMARKS only comment on it.
RULES: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}
REMARKS: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}

MAX_NUMBER = 2**63 - 1  # the largest value in an int64 tensor


@dataclass(frozen=True)
class Problem:
    """Problem found in a recipe: the dotted key to change, and a message."""

    key: str
    text: str


def remarks(recipe: Recipe) -> list[str]:
    """List the remarks on a valid recipe: what a user should know about it."""
    return [rule.text.format(r=recipe) for rule in _broken(recipe, REMARKS)]


def impossible(recipe: Recipe) -> list[Problem]:
    """List the problems of a recipe whose values have the right types and ranges."""
    sizes = [Problem(key, text) for key, value in _numbers(asdict(recipe)) if (text := size_problem(key, value))]
    # Rules compute with the numbers of a recipe, so numbers that are too large are reported first.
    return sizes or [Problem(rule.key, rule.text.format(r=recipe)) for rule in _broken(recipe, RULES)]


def _broken(recipe: Recipe, rules: Mapping[type[ArchitectureConfig], tuple[Rule, ...]]) -> Iterator[Rule]:
    """Iterate over the rules that a recipe breaks, starting with those that apply to every architecture."""
    for kind in reversed(type(recipe.model).__mro__):
        yield from (rule for rule in rules.get(kind, ()) if rule.broken(recipe))


def size_problem(key: str, value: float) -> str | None:
    """Describe the problem with a number that no tensor can represent; return None for all other numbers."""
    if abs(value) <= MAX_NUMBER:
        return None
    size = "a finite number" if isinstance(value, float) and not math.isfinite(value) else "less than 2^63"
    return f"{key} must be {size}, but is {value}"


def _numbers(values: Any, key: str = "") -> Iterator[tuple[str, int | float]]:
    """Iterate over every number of a nested value, with its dotted key."""
    if isinstance(values, int | float) and not isinstance(values, bool):
        yield key, values
    elif isinstance(values, dict | tuple):
        inside = values.items() if isinstance(values, dict) else enumerate(values)
        for name, value in inside:
            yield from _numbers(value, f"{key}.{name}".lstrip("."))


def pairs(recipe: Recipe) -> bool:
    """Return True if the model of a recipe reads a source and writes a target."""
    return FAMILIES[recipe.model.family].pairs


def one_text(recipe: Recipe) -> bool:
    """Return True if the model of a recipe reads one sequence of text: a text, or two joined, without a target."""
    return recipe.data.modality == "text" and not pairs(recipe)


def positions(recipe: Recipe) -> float:
    """Return the size of the model's table of learned positions, or infinity if it has none."""
    return recipe.model.learned_positions or math.inf


def room_for_pairs(recipe: Recipe) -> float:
    """Return the smaller size of the encoder's and decoder's tables of learned positions; infinity if there are none.

    If the input is not text, only the decoder's counts.
    """
    target = recipe.model.learned_target_positions or math.inf
    return min(positions(recipe), target) if recipe.data.modality == "text" else target


def standardises(recipe: Recipe) -> bool:
    """Return True if the recipe's label mean is finite and its scale positive and finite; either may be missing."""
    mean, scale = recipe.data.label_mean or 0.0, recipe.data.label_scale
    return math.isfinite(mean) and (scale is None or 0 < scale < math.inf)


def reads_images(recipe: Recipe) -> bool:
    """Return True if the model of a recipe reads images, alone or as the frames of videos."""
    return recipe.data.modality == "image" or reads_videos(recipe)


def reads_videos(recipe: Recipe) -> bool:
    return recipe.data.modality == "video"


def reads_audio(recipe: Recipe) -> bool:
    return recipe.data.modality == "audio"


def pools_first_patch(recipe: Recipe) -> bool:
    """Return True if the first patch would represent a whole image, because no class token precedes it."""
    model = recipe.model
    pooling = (model.pooling if isinstance(model, TextModelConfig) else None) or FAMILIES[model.family].pooling
    return reads_images(recipe) and not recipe.image.class_token and model.family == "encoder" and pooling == "first"


def changed(model: TransformerSettings, *keys: str) -> bool:
    """Return True if any of these settings differs from its default."""
    return any(getattr(model, key) != getattr(type(model), key) for key in keys)


WITH_CLASSES = ("classification", "image_classification", "audio_classification", "video_classification", "tagging")
UNREAD = 'a model for the task "{{r.task}}" does not use [{}]; remove that table from the recipe'

OF_MEDIA = (
    Rule("image", lambda r: not reads_images(r) and r.image != ImageConfig(), UNREAD.format("image")),
    Rule("audio", lambda r: not reads_audio(r) and r.audio != AudioConfig(), UNREAD.format("audio")),
    Rule("video", lambda r: not reads_videos(r) and r.video != VideoConfig(), UNREAD.format("video")),
    Rule(
        KEYS.image.patch,
        lambda r: reads_images(r) and any(side % r.image.patch for side in r.image.size),
        "image.size = {r.image.size[0]} x {r.image.size[1]} cannot be cut into patches of image.patch = "
        "{r.image.patch}; choose a patch that divides both sides",
    ),
    Rule(
        KEYS.image.patch,
        lambda r: reads_images(r) and r.image.stem != "linear" and r.image.patch.bit_count() != 1,
        "each convolution of the stem halves an image, but image.patch = {r.image.patch} is not a power of two; use "
        '2, 4, 8 or 16, or set image.stem = "linear"',
    ),
    Rule(
        KEYS.image.positions,
        lambda r: reads_images(r) and r.image.positions == "sinusoidal" and r.model.d_model % 4 != 0,
        "sinusoidal positions of rows and columns need four dimensions at a time, but model.d_model = "
        '{r.model.d_model} is not a multiple of 4; change it, or set image.positions = "learned"',
    ),
    Rule(
        KEYS.image.mean,
        lambda r: reads_images(r) and any(len(x) not in (1, r.image.channels) for x in (r.image.mean, r.image.std)),
        "image.mean and image.std must each have one number, or one per channel; image.channels = {r.image.channels}",
    ),
    Rule(
        KEYS.model.pooling,
        pools_first_patch,
        "without a class token, the first patch would represent the whole image; set model.pooling = "
        '"mean", or image.class_token = true',
    ),
    Rule(
        KEYS.image.size,
        lambda r: r.task == "masked_patches" and r.image.grid[0] * r.image.grid[1] < 2,
        "with image.size = {r.image.size[0]} x {r.image.size[1]} and image.patch = {r.image.patch}, an image has only "
        "one patch, but at least one must be masked and one stay visible; make the patches smaller",
    ),
    Rule(
        KEYS.task,
        lambda r: r.task == "masked_patches" and not isinstance(r.model, TransformerSettings),
        'masked patches need a Transformer, but model.architecture is "{r.model.architecture}"; '
        'set model.architecture = "transformer"',
    ),
    Rule(
        KEYS.video.frames,
        lambda r: reads_videos(r) and r.video.frames % r.video.tubelet != 0,
        "video.frames = {r.video.frames} cannot be cut into tubelets of video.tubelet = {r.video.tubelet} frames; "
        "choose a multiple of video.tubelet",
    ),
    Rule(
        KEYS.video.positions,
        lambda r: reads_videos(r) and r.video.positions == "sinusoidal" and r.model.d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, but model.d_model = {r.model.d_model} is odd; make it "
        'even, or set video.positions = "learned"',
    ),
    Rule(
        KEYS.audio.hop,
        lambda r: reads_audio(r) and r.audio.features == "log_mel" and r.audio.hop > r.audio.window,
        "audio.hop = {r.audio.hop} is longer than audio.window = {r.audio.window}, so samples between two frames "
        "would never be read; lower audio.hop",
    ),
    Rule(
        KEYS.audio.mels,
        lambda r: reads_audio(r) and r.audio.features == "log_mel" and r.audio.mels > r.audio.window // 2,
        "audio.mels = {r.audio.mels} is more than the number of frequencies in a window of audio.window = "
        "{r.audio.window} samples; use at most half of audio.window",
    ),
    Rule(
        KEYS.transcribe.language,
        lambda r: (
            r.transcribe.language not in (None, *r.transcribe.languages)
            and bool(r.transcribe.languages or r.train.start is None)  # otherwise, the start model has the languages
        ),
        'transcribe.language = "{r.transcribe.language}" is not in transcribe.languages, which lists the languages '
        "that the model distinguishes; choose one of them, or leave transcribe.language out",
    ),
    Rule(
        KEYS.audio.pad_seconds,
        lambda r: reads_audio(r) and r.audio.pad_seconds > r.audio.max_seconds,
        "audio.pad_seconds = {r.audio.pad_seconds} is longer than audio.max_seconds = {r.audio.max_seconds}; lower it",
    ),
    Rule(
        KEYS.model.max_positions,
        lambda r: r.data.modality != "text" and (r.model.learned_positions or math.inf) < r.longest_input,
        "an input may have {r.longest_input} positions, but the model learns only model.max_positions = "
        "{r.model.learned_positions}; raise model.max_positions to at least {r.longest_input}",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: r.data.modality != "text" and r.train.batch_tokens < r.longest_input,
        "an input of {r.longest_input} positions does not fit into a batch of train.batch_tokens = "
        "{r.train.batch_tokens}; raise it",
    ),
    Rule(
        KEYS.model.architecture,
        lambda r: (
            r.task == "image_text_retrieval"
            and not ARCHITECTURES.is_custom(r.model.architecture)
            and r.model.architecture != "dual_encoder"
        ),
        'task = "image_text_retrieval" needs an image encoder and a text encoder, but model.architecture '
        'is "{r.model.architecture}"; leave it out, or set model.architecture = "dual_encoder"',
    ),
)

RULES[ArchitectureConfig] = (
    Rule(
        KEYS.data.labels,
        lambda r: len(set(r.data.labels)) < len(r.data.labels) or not all(label.strip() for label in r.data.labels),
        "data.labels must list each class once, without empty names; remove empty names and duplicates",
    ),
    Rule(
        KEYS.train.class_weights,
        lambda r: r.train.class_weights is not None and r.task not in WITH_CLASSES and not TASKS.is_custom(r.task),
        'train.class_weights has weights of classes or tags, but task = "{r.task}" has none; leave it out',
    ),
    Rule(
        KEYS.train.class_weights,
        lambda r: isinstance(r.train.class_weights, dict) and min(r.train.class_weights.values(), default=1) <= 0,
        "every number in train.class_weights must be more than 0; correct the others, or leave train.class_weights out",
    ),
    Rule(
        KEYS.data.label_scale,
        lambda r: (r.data.label_mean is None) != (r.data.label_scale is None) or not standardises(r),
        "data.label_mean = {r.data.label_mean} and data.label_scale = {r.data.label_scale} must be a finite number and "
        "a number above 0; give both, or leave both out to use those of the training data",
    ),
    Rule(
        KEYS.data.words,
        lambda r: bool(r.data.words) and (r.task != "tagging" or not all(word.strip() for word in r.data.words)),
        'data.words lists words that task = "tagging" keeps whole, and none may be empty; remove empty words, or '
        "leave it out",
    ),
    Rule(
        KEYS.data.train,
        lambda r: any(c.part[0] >= c.part[1] for c in (*r.data.train, r.data.valid, r.data.test) if c),
        "the part of a corpus must go from a smaller to a larger share; set, for example, part = [0.0, 0.9] for "
        "training and part = [0.9, 1.0] for validation",
    ),
    Rule(
        KEYS.masking.random,
        lambda r: r.masking.mask + r.masking.random > 1,
        "masking.mask + masking.random = {r.masking.mask} + {r.masking.random} is more than 1; lower one of them",
    ),
    Rule(
        KEYS.model.target_vectors,
        lambda r: r.model.target_vectors is not None and not pairs(r),
        'a model of family "{r.model.family}" has one vocabulary, whose word vectors are model.source_vectors; '
        "leave model.target_vectors out",
    ),
    Rule(
        KEYS.model.freeze_vectors,
        lambda r: r.model.freeze_vectors and not (r.model.source_vectors or r.model.target_vectors),
        "model.freeze_vectors = true has nothing to freeze; give model.source_vectors or model.target_vectors",
    ),
    Rule(
        KEYS.model.max_positions,
        lambda r: pairs(r) and positions(r) == room_for_pairs(r) < r.data.filters.max_tokens + r.decode.extra,
        "a translation may have data.filters.max_tokens + decode.max_extra = {r.data.filters.max_tokens} + "
        "{r.decode.extra} tokens, but the model learns only model.max_positions = {r.model.learned_positions}; "
        "raise model.max_positions to at least that sum",
    ),
    Rule(
        KEYS.model.max_target_positions,
        lambda r: pairs(r) and positions(r) != room_for_pairs(r) < r.data.filters.max_tokens + r.decode.extra,
        "an output may have data.filters.max_tokens + decode.max_extra = {r.data.filters.max_tokens} + "
        "{r.decode.extra} tokens, but the model learns only model.max_target_positions = "
        "{r.model.learned_target_positions}; raise it to at least that sum",
    ),
    Rule(
        KEYS.model.max_positions,
        lambda r: one_text(r) and positions(r) < r.data.max_length,
        "a text may have data.max_length = {r.data.max_length} tokens, but the model learns only model.max_positions = "
        "{r.model.learned_positions}; raise model.max_positions, or lower data.max_length",
    ),
    Rule(
        KEYS.decode.shortlist,
        lambda r: r.decode.shortlist > 0 and not (pairs(r) and r.data.modality == "text"),
        "decode.shortlist selects the likely translations of a text's tokens, but a model of family "
        '"{r.model.family}" for the task "{r.task}" does not translate; set decode.shortlist = 0',
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and r.tokenizer.kind != "bpe",
        'tokenizer.dropout omits merges of byte-pair encoding, but tokenizer.kind is "{r.tokenizer.kind}"; '
        'set tokenizer.dropout = 0.0, or tokenizer.kind = "bpe"',
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and not pairs(r),
        'tokenizer.dropout varies the tokens of sentence pairs, but a model of family "{r.model.family}" reads text '
        "that is encoded only once; set tokenizer.dropout = 0.0",
    ),
    Rule(
        KEYS.optimizer.lr,
        lambda r: r.optimizer.schedule == "noam" and r.optimizer.lr < 0.01,
        'with optimizer.schedule = "noam", optimizer.lr is a factor on the paper\'s formula, usually 1.0; with '
        '{r.optimizer.lr}, nothing would be learned; to give a peak rate, set optimizer.schedule = "inverse_sqrt"',
    ),
    Rule(
        KEYS.optimizer.lr,
        lambda r: r.optimizer.schedule != "noam" and r.optimizer.lr > 0.1,
        'with optimizer.schedule = "{r.optimizer.schedule}", optimizer.lr is the peak rate, and training at '
        "{r.optimizer.lr} would diverge; set it to {r.optimizer.usual_lr}, for example",
    ),
    Rule(
        KEYS.optimizer.warmup,
        lambda r: r.optimizer.schedule == "noam" and r.optimizer.warmup < 1,
        'optimizer.schedule = "noam" divides by optimizer.warmup; set it to at least 1 (4000 in the paper)',
    ),
    Rule(
        KEYS.optimizer.min_lr,
        lambda r: r.optimizer.schedule not in ("cosine", "linear") and r.optimizer.min_lr > 0,
        'optimizer.min_lr is the final rate of "cosine" and "linear", but optimizer.schedule is '
        '"{r.optimizer.schedule}"; set optimizer.min_lr = 0.0, or use one of these schedules',
    ),
    Rule(
        KEYS.optimizer.min_lr,
        lambda r: r.optimizer.min_lr > r.optimizer.lr,
        "optimizer.min_lr = {r.optimizer.min_lr} is above the peak rate, optimizer.lr = {r.optimizer.lr}; lower it",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: pairs(r) and r.train.batch_tokens < r.data.filters.max_tokens,
        "a sentence with data.filters.max_tokens = {r.data.filters.max_tokens} tokens does not fit into a batch of "
        "train.batch_tokens = {r.train.batch_tokens}; raise batch_tokens, or lower max_tokens",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: one_text(r) and r.train.batch_tokens < r.data.max_length,
        "a text of data.max_length = {r.data.max_length} tokens does not fit into a batch of train.batch_tokens = "
        "{r.train.batch_tokens}; raise batch_tokens, or lower max_length",
    ),
    Rule(
        KEYS.train.average_last,
        lambda r: r.train.average_last > r.train.keep_last,
        "train.average_last = {r.train.average_last}, but only train.keep_last = {r.train.keep_last} checkpoints are "
        "kept; raise keep_last, or lower average_last",
    ),
    Rule(
        KEYS.train.best,
        lambda r: pairs(r) and not r.train.validate_decoding and r.train.best not in (None, "loss", "perplexity"),
        'train.best = "{r.train.best}" is a score of decoded outputs, which train.validate_decoding = false turns '
        'off; set train.best = "loss"',
    ),
    Rule(
        KEYS.train.patience,
        lambda r: r.train.patience is not None and r.data.valid is None,
        "train.patience counts validations, but the recipe has no validation data; add [data.valid], or leave "
        "train.patience out",
    ),
    Rule(
        KEYS.train.device,
        lambda r: re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", r.train.device) is None,
        'train.device = "{r.train.device}" is not a device; use "auto", "cpu", "cuda", "cuda:0" or "mps"',
    ),
    Rule(
        KEYS.optimizer.weight_decay,
        lambda r: r.optimizer.weight_decay > 0 and r.optimizer.name == "row_sgd",
        'optimizer.name = "row_sgd" has no weight decay; set optimizer.weight_decay = 0.0',
    ),
    Rule(
        KEYS.train.start,
        lambda r: r.train.start is None and bool(r.train.start_encoder_layers or r.train.start_decoder_layers),
        "train.start_encoder_layers and train.start_decoder_layers choose layers of train.start, which is not set; set "
        "it, or leave them out",
    ),
    Rule(
        KEYS.train.lora,
        lambda r: r.train.lora is not None and r.train.start is None and r.train.start_decoder is None,
        "train.lora fine-tunes a trained model by small updates of its weights, but the recipe names no model to start "
        "from; set train.start, or leave train.lora out",
    ),
    Rule(
        KEYS.train.freeze,
        lambda r: r.train.lora is not None and bool(r.train.freeze),
        "train.lora freezes all weights except its updates and those in train.lora.also; leave train.freeze out",
    ),
    Rule(
        KEYS.train.vocabulary,
        lambda r: r.train.lora is not None and r.train.vocabulary in ("extend", "remap") and not r.train.lora.also,
        'with train.vocabulary = "{r.train.vocabulary}", new tokens have random vectors, but train.lora does not train '
        "them; add the embeddings to train.lora.also",
    ),
    Rule(
        KEYS.parallel.shard,
        lambda r: r.parallel.shard != "none" and r.optimizer.name == "row_sgd",
        'optimizer.name = "row_sgd" changes a few rows of a table in each update, but sharded gradients cover all '
        'rows; set parallel.shard = "none"',
    ),
    Rule(
        KEYS.parallel.shard_processes,
        lambda r: r.parallel.shard_processes is not None and r.parallel.shard != "hybrid",
        "parallel.shard_processes = {r.parallel.shard_processes} is the number of processes that share a copy, but "
        'parallel.shard is "{r.parallel.shard}"; set parallel.shard = "hybrid", or leave parallel.shard_processes out',
    ),
    Rule(
        KEYS.train.activation_checkpointing,
        lambda r: r.train.activation_checkpointing and not isinstance(r.model, TransformerSettings),
        "train.activation_checkpointing recomputes the blocks of a Transformer, but model.architecture = "
        '"{r.model.architecture}" has none; leave train.activation_checkpointing out',
    ),
    Rule(
        KEYS.decode.n_best,
        lambda r: r.decode.n_best > r.decode.beam,
        "decode.n_best = {r.decode.n_best} is more than decode.beam = {r.decode.beam}; raise the beam size, or lower "
        "decode.n_best",
    ),
    Rule(
        KEYS.generate.min_tokens,
        lambda r: r.generate.min_tokens > r.generate.max_tokens,
        "generate.min_tokens = {r.generate.min_tokens} is more than generate.max_tokens = {r.generate.max_tokens}; "
        "lower generate.min_tokens, or raise generate.max_tokens",
    ),
    Rule(
        KEYS.generate.stop,
        lambda r: "" in r.generate.stop,
        "generate.stop contains an empty text, which would end every output before it begins; remove it",
    ),
    *OF_MEDIA,
)

RULES[TextModelConfig] = (
    Rule(
        KEYS.model.tie,
        lambda r: r.model.tie == "all" and not r.tokenizer.joint and pairs(r),
        'model.tie = "all" shares one matrix between the languages, which needs one vocabulary; '
        'set tokenizer.joint = true, or model.tie = "output"',
    ),
    Rule(
        KEYS.model.source_vectors,
        lambda r: pairs(r) and r.model.tie == "all" and r.model.source_vectors != r.model.target_vectors,
        'model.tie = "all" shares one matrix between the languages, so model.source_vectors and model.target_vectors '
        'must be the same file; give one file for both, or set model.tie = "none"',
    ),
    Rule(
        KEYS.task,
        lambda r: r.task == "masked_lm" and not isinstance(r.model, TransformerSettings),
        'a masked language model needs a Transformer, but model.architecture is "{r.model.architecture}"; '
        'set model.architecture = "transformer", or task = "language_model"',
    ),
)

RULES[TransformerSettings] = (
    Rule(
        KEYS.model.max_target_positions,
        lambda r: r.model.max_target_positions is not None and not (pairs(r) and r.model.learned_positions),
        "model.max_target_positions is the size of the decoder's own table of learned positions, which this model does "
        'not have; leave it out, or set model.positions = "learned" in an encoder-decoder',
    ),
    Rule(
        KEYS.model.heads,
        lambda r: r.model.d_k is None and r.model.d_model % r.model.heads != 0,
        "model.d_model = {r.model.d_model} is not divisible by model.heads = {r.model.heads}; "
        "choose a number of heads that divides model.d_model, or set the head size, model.d_k",
    ),
    Rule(
        KEYS.model.kv_heads,
        lambda r: r.model.heads % (r.model.kv_heads or 1) != 0,
        "model.heads = {r.model.heads} cannot share model.kv_heads = {r.model.kv_heads} evenly; "
        "choose a number of kv_heads that divides heads",
    ),
    Rule(
        KEYS.model.positions,
        lambda r: r.model.positions == "sinusoidal" and r.model.d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, but model.d_model = {r.model.d_model} is odd; "
        'make it even, or set model.positions = "learned"',
    ),
    Rule(
        KEYS.model.positions,
        lambda r: (
            r.model.positions == "rotary"
            and r.model.attention != "latent"
            and (r.model.d_k is not None or r.model.d_model % r.model.heads == 0)  # otherwise another rule is broken
            and r.model.head_size % 2 != 0
        ),
        "rotary positions need an even head size, but it is {r.model.head_size}; set model.d_k to an even number",
    ),
    Rule(
        KEYS.model.attention,
        lambda r: r.model.attention != "latent" and changed(r.model, "kv_rank", "q_rank", "d_rope"),
        "model.kv_rank, model.q_rank and model.d_rope are sizes of latent attention, but model.attention = "
        '"{r.model.attention}"; set it to "latent", or leave them out',
    ),
    Rule(
        KEYS.model.kv_heads,
        lambda r: r.model.attention == "latent" and r.model.kv_heads not in (None, r.model.heads),
        'model.attention = "latent" computes the keys and values of each head from one vector, so that no heads share '
        "them; leave model.kv_heads = {r.model.kv_heads} out",
    ),
    Rule(
        KEYS.model.d_rope,
        lambda r: r.model.attention == "latent" and r.model.positions == "rotary" and (r.model.d_rope or 0) % 2 != 0,
        "rotary positions need an even number of dimensions, but model.d_rope = {r.model.d_rope}; set it to an even "
        "number",
    ),
    Rule(
        KEYS.model.positions,
        lambda r: r.model.attention == "linear" and r.model.positions not in ("sinusoidal", "learned", "none"),
        'model.attention = "linear" does not support model.positions = "{r.model.positions}"; set model.positions to '
        '"sinusoidal", "learned" or "none"',
    ),
    Rule(
        KEYS.model.attention,
        lambda r: r.model.attention == "linear" and changed(r.model, "window", "attention_dropout", "scale_scores"),
        "model.window, model.attention_dropout and model.scale_scores change the weight of each query and key, but "
        'model.attention = "linear" computes none; set model.attention_dropout = 0 and leave the others out, or set '
        'model.attention = "multi_head"',
    ),
    Rule(
        KEYS.model.feed_forward,
        lambda r: (
            r.model.feed_forward != "experts"
            and changed(r.model, "experts", "experts_per_token", "shared_experts", "d_expert")
        ),
        "model.experts, model.experts_per_token, model.shared_experts and model.d_expert describe a mixture of "
        'experts, but model.feed_forward = "{r.model.feed_forward}"; set it to "experts", or leave them out',
    ),
    Rule(
        KEYS.model.experts_per_token,
        lambda r: r.model.feed_forward == "experts" and r.model.experts_per_token > r.model.experts,
        "model.experts_per_token = {r.model.experts_per_token} is more than model.experts = {r.model.experts}; lower "
        "it, or raise model.experts",
    ),
    Rule(
        KEYS.train.compile,
        lambda r: r.model.feed_forward == "experts" and r.train.compile,
        'train.compile = true compiles blocks, but with model.feed_forward = "experts" each batch has other numbers of '
        "tokens per expert; set train.compile = false",
    ),
    Rule(
        KEYS.train.compile,
        lambda r: r.model.attention == "linear" and r.train.compile,
        'train.compile = true compiles blocks, but with model.attention = "linear" each length of a batch has another '
        "number of steps; set train.compile = false",
    ),
)

REMARKS[ArchitectureConfig] = (
    Rule(
        KEYS.optimizer.warmup,
        lambda r: r.optimizer.warmup >= r.train.max_updates,
        "the run ends at update {r.train.max_updates}, during the warm-up (optimizer.warmup = {r.optimizer.warmup}): "
        "long enough to test the recipe, but too short to train a model; raise train.max_updates or lower "
        "optimizer.warmup",
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and r.data.modality != "text",
        "tokenizer.dropout has no effect on the texts of media files, which are encoded once",
    ),
    Rule(
        KEYS.image.mixup,
        lambda r: r.image.mixup > 0 and FAMILIES[r.model.family].pairs,
        "image.mixup mixes images of two classes, so it has no effect on a task with texts",
    ),
    Rule(
        KEYS.model.init_std,
        lambda r: getattr(r.model, "init", "") == "glorot" and r.model.init_std != TextModelConfig.init_std,
        'model.init_std has no effect with model.init = "glorot"; set model.init = "normal" or "scaled"',
    ),
    Rule(
        KEYS.data.variants,
        lambda r: r.data.variants != VariantConfig() and not (pairs(r) and r.data.modality == "text"),
        "[data.variants] is for text-to-text tasks, and has no effect here",
    ),
    Rule(
        KEYS.tokenizer.lowercase,
        lambda r: r.tokenizer.lowercase and r.data.variants.upper_case + r.data.variants.lower_case > 0,
        "tokenizer.lowercase = true makes copies in capitals or in lower case equal to their originals; leave "
        "data.variants.upper_case and lower_case out",
    ),
    Rule(
        KEYS.data.filters,
        lambda r: r.data.modality != "text" and replace(r.data.filters, max_tokens=1) != FilterConfig(max_tokens=1),
        "only max_tokens of [data.filters] applies to media files; the other keys have no effect",
    ),
    Rule(
        KEYS.audio.frequency_masks,
        lambda r: r.audio.features == "samples" and r.audio.frequency_masks > 0,
        'audio.frequency_masks masks mel bands, but audio.features = "samples" has none; it masks columns of '
        "samples instead",
    ),
)
