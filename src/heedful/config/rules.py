"""Rules of recipes whose values have the right types and ranges: combinations that cannot work, and remarks.

A rule looks at the recipe only: missing files or a missing GPU are found by `heedful.training.preflight`. Rules of an
architecture are in the file of its settings, and hold for recipes whose [model] has them.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import ArchitectureConfig, FilterConfig, Recipe, TextModelConfig, TransformerSettings
from heedful.registry import ARCHITECTURES, TASKS


@dataclass(frozen=True)
class Rule:
    """Rule for a combination of recipe values that is refused or remarked upon.

    Attributes:
        at: the key at which to fix it, as an attribute of `KEYS`.
        broken: whether a recipe breaks the rule.
        text: message, a format string over the recipe `r`.
    """

    at: Any
    broken: Callable[[Recipe], bool]
    text: str

    @property
    def key(self) -> str:
        return str(self.at)


# For each class of [model], the rules of recipes whose model has its settings: those that are refused, and remarks.
RULES: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}
REMARKS: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}

LARGEST = 2**63 - 1  # of any number, in size: what a tensor counts with


@dataclass(frozen=True)
class Problem:
    """Problem found in a recipe: the dotted key at which to fix it, and a message."""

    key: str
    text: str


def remarks(recipe: Recipe) -> list[str]:
    """List the remarks on a valid recipe that a user should know."""
    return [rule.text.format(r=recipe) for rule in _broken(recipe, REMARKS)]


def impossible(recipe: Recipe) -> list[Problem]:
    """List the problems of a recipe whose values have the right types and ranges."""
    sizes = [Problem(key, text) for key, value in _numbers(asdict(recipe)) if (text := size_problem(key, value))]
    # Rules compute with the numbers: they are asked only where all of these are possible.
    return sizes or [Problem(rule.key, rule.text.format(r=recipe)) for rule in _broken(recipe, RULES)]


def _broken(recipe: Recipe, rules: Mapping[type[ArchitectureConfig], tuple[Rule, ...]]) -> Iterator[Rule]:
    """Iterate over the rules that a recipe breaks: those of any architecture first, those of its own last."""
    for kind in reversed(type(recipe.model).__mro__):
        yield from (rule for rule in rules.get(kind, ()) if rule.broken(recipe))


def size_problem(key: str, value: float) -> str | None:
    """Describe a number that no tensor can hold; None for one of a usual size."""
    if abs(value) <= LARGEST:
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
    """True if the model of a recipe reads a source and writes a target."""
    return FAMILIES[recipe.model.family].pairs


def one_text(recipe: Recipe) -> bool:
    """True if the model of a recipe reads texts of one kind, and no pairs."""
    return recipe.data.modality == "text" and not pairs(recipe)


def positions(recipe: Recipe) -> float:
    """The number of positions that the model of a recipe learns; infinite without a table of them."""
    return recipe.model.learned_positions or math.inf


def room_for_pairs(recipe: Recipe) -> float:
    """The smaller table of positions that a pair of texts needs; of pictures and sounds the decoder's alone counts."""
    target = recipe.model.learned_target_positions or math.inf
    return min(positions(recipe), target) if recipe.data.modality == "text" else target


def standardises(recipe: Recipe) -> bool:
    """True if the mean and scale of labels that a recipe gives, if any, are numbers to divide by."""
    mean, scale = recipe.data.label_mean or 0.0, recipe.data.label_scale
    return math.isfinite(mean) and (scale is None or 0 < scale < math.inf)


def reads_pictures(recipe: Recipe) -> bool:
    """True if the model of a recipe reads pictures, alone or as the frames of videos."""
    return recipe.data.modality == "image" or reads_videos(recipe)


def reads_videos(recipe: Recipe) -> bool:
    return recipe.data.modality == "video"


def reads_sound(recipe: Recipe) -> bool:
    return recipe.data.modality == "audio"


def pools_first_patch(recipe: Recipe) -> bool:
    """True if the first patch would stand for a whole picture, because there is no class token before it."""
    model = recipe.model
    pooling = (model.pooling if isinstance(model, TextModelConfig) else None) or FAMILIES[model.family].pooling
    return reads_pictures(recipe) and not recipe.image.class_token and model.family == "encoder" and pooling == "first"


WITH_CLASSES = ("classification", "image_classification", "audio_classification", "video_classification", "tagging")
UNREAD = 'a model for the task "{{r.task}}" reads nothing that [{}] would be about; take that table out of the recipe'

OF_MEDIA = (
    Rule("image", lambda r: not reads_pictures(r) and r.image != ImageConfig(), UNREAD.format("image")),
    Rule("audio", lambda r: not reads_sound(r) and r.audio != AudioConfig(), UNREAD.format("audio")),
    Rule("video", lambda r: not reads_videos(r) and r.video != VideoConfig(), UNREAD.format("video")),
    Rule(
        KEYS.image.patch,
        lambda r: reads_pictures(r) and any(side % r.image.patch for side in r.image.size),
        "image.size = {r.image.size[0]} x {r.image.size[1]} cannot be cut into patches of image.patch = "
        "{r.image.patch}; choose a patch that divides both sides",
    ),
    Rule(
        KEYS.image.patch,
        lambda r: reads_pictures(r) and r.image.stem != "linear" and r.image.patch.bit_count() != 1,
        "each convolution of the stem halves a picture, and image.patch = {r.image.patch} is no power of two; take 2, "
        '4, 8 or 16, or set image.stem = "linear"',
    ),
    Rule(
        KEYS.image.positions,
        lambda r: reads_pictures(r) and r.image.positions == "sinusoidal" and r.model.d_model % 4 != 0,
        "sinusoidal positions of rows and columns need four numbers at a time, and model.d_model = {r.model.d_model} "
        'is no multiple of 4; change it, or set image.positions = "learned"',
    ),
    Rule(
        KEYS.image.mean,
        lambda r: reads_pictures(r) and any(len(x) not in (1, r.image.channels) for x in (r.image.mean, r.image.std)),
        "image.mean and image.std hold one number, or one for each of image.channels = {r.image.channels}",
    ),
    Rule(
        KEYS.model.pooling,
        pools_first_patch,
        "without a class token, the first patch would stand for the whole picture; set model.pooling = "
        '"mean", or image.class_token = true',
    ),
    Rule(
        KEYS.image.size,
        lambda r: r.task == "masked_patches" and r.image.grid[0] * r.image.grid[1] < 2,
        "with image.size = {r.image.size[0]} x {r.image.size[1]} and image.patch = {r.image.patch} a picture has one "
        "patch, and one has to stay visible; make the patches smaller",
    ),
    Rule(
        KEYS.task,
        lambda r: r.task == "masked_patches" and not isinstance(r.model, TransformerSettings),
        'masked patches are learned by a Transformer here, and model.architecture is "{r.model.architecture}"; '
        'set model.architecture = "transformer"',
    ),
    Rule(
        KEYS.video.frames,
        lambda r: reads_videos(r) and r.video.frames % r.video.tubelet != 0,
        "video.frames = {r.video.frames} cannot be cut into tubelets of video.tubelet = {r.video.tubelet} frames; "
        "choose a multiple of it",
    ),
    Rule(
        KEYS.video.positions,
        lambda r: reads_videos(r) and r.video.positions == "sinusoidal" and r.model.d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, and model.d_model = {r.model.d_model} is odd; make it "
        'even, or set video.positions = "learned"',
    ),
    Rule(
        KEYS.audio.hop,
        lambda r: reads_sound(r) and r.audio.features == "log_mel" and r.audio.hop > r.audio.window,
        "audio.hop = {r.audio.hop} is longer than audio.window = {r.audio.window}, so that samples between two frames "
        "would never be read; lower it",
    ),
    Rule(
        KEYS.audio.mels,
        lambda r: reads_sound(r) and r.audio.features == "log_mel" and r.audio.mels > r.audio.window // 2,
        "audio.mels = {r.audio.mels} bands are more than the frequencies in a window of audio.window = "
        "{r.audio.window} samples; take at most half of the window",
    ),
    Rule(
        KEYS.transcribe.language,
        lambda r: (
            r.transcribe.language not in (None, *r.transcribe.languages)
            and bool(r.transcribe.languages or r.train.start is None)  # else the languages are those of the start
        ),
        'transcribe.language = "{r.transcribe.language}" is none of the languages that the model tells apart: '
        "{r.transcribe.languages}; choose one of them, or leave it out",
    ),
    Rule(
        KEYS.audio.pad_seconds,
        lambda r: reads_sound(r) and r.audio.pad_seconds > r.audio.max_seconds,
        "audio.pad_seconds = {r.audio.pad_seconds} is longer than audio.max_seconds = {r.audio.max_seconds}; lower it",
    ),
    Rule(
        KEYS.model.max_positions,
        lambda r: r.data.modality != "text" and (r.model.learned_positions or math.inf) < r.longest_input,
        "an input may have {r.longest_input} positions, more than the model.max_positions = "
        "{r.model.learned_positions} that are learned; raise model.max_positions to at least that",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: r.data.modality != "text" and r.train.batch_tokens < r.longest_input,
        "a batch of train.batch_tokens = {r.train.batch_tokens} positions does not hold an input of "
        "{r.longest_input}; raise it",
    ),
    Rule(
        KEYS.model.architecture,
        lambda r: (
            r.task == "image_text_retrieval"
            and not ARCHITECTURES.is_own(r.model.architecture)
            and r.model.architecture != "dual_encoder"
        ),
        'task = "image_text_retrieval" is learned by an encoder of pictures and one of texts, and model.architecture '
        'is "{r.model.architecture}"; leave it out, or set model.architecture = "dual_encoder"',
    ),
)

RULES[ArchitectureConfig] = (
    Rule(
        KEYS.data.labels,
        lambda r: len(set(r.data.labels)) < len(r.data.labels) or not all(label.strip() for label in r.data.labels),
        "data.labels names each class once, and none is empty; take out what stands there twice",
    ),
    Rule(
        KEYS.train.class_weights,
        lambda r: r.train.class_weights is not None and r.task not in WITH_CLASSES and not TASKS.is_own(r.task),
        'train.class_weights are of classes or tags, and task = "{r.task}" has none; leave it out',
    ),
    Rule(
        KEYS.train.class_weights,
        lambda r: isinstance(r.train.class_weights, dict) and min(r.train.class_weights.values(), default=1) <= 0,
        "train.class_weights has a number that is not more than 0; give each class a larger one, or leave it out",
    ),
    Rule(
        KEYS.data.label_scale,
        lambda r: (r.data.label_mean is None) != (r.data.label_scale is None) or not standardises(r),
        "data.label_mean = {r.data.label_mean} and data.label_scale = {r.data.label_scale} go together, as a finite "
        "number and one above 0; give both, or leave both out to take those of the training data",
    ),
    Rule(
        KEYS.data.words,
        lambda r: bool(r.data.words) and (r.task != "tagging" or not all(word.strip() for word in r.data.words)),
        'data.words are words that a model for task = "tagging" keeps whole, and none is empty; leave data.words out',
    ),
    Rule(
        KEYS.data.train,
        lambda r: any(c.part[0] >= c.part[1] for c in (*r.data.train, r.data.valid, r.data.test) if c),
        "the part of a corpus goes from a smaller to a larger share, such as part = [0.0, 0.9] of training text and "
        "part = [0.9, 1.0] of validation text",
    ),
    Rule(
        KEYS.masking.random,
        lambda r: r.masking.mask + r.masking.random > 1,
        "masking.mask + masking.random = {r.masking.mask} + {r.masking.random} is more than all of the chosen tokens; "
        "lower one of them",
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
        "{r.decode.extra} tokens, more than the model.max_positions = {r.model.learned_positions} that are "
        "learned; raise model.max_positions to at least that sum",
    ),
    Rule(
        KEYS.model.max_target_positions,
        lambda r: pairs(r) and positions(r) != room_for_pairs(r) < r.data.filters.max_tokens + r.decode.extra,
        "an output may have data.filters.max_tokens + decode.max_extra = {r.data.filters.max_tokens} + "
        "{r.decode.extra} tokens, more than the model.max_target_positions = {r.model.learned_target_positions} "
        "that are learned; raise it to at least that sum",
    ),
    Rule(
        KEYS.model.max_positions,
        lambda r: one_text(r) and positions(r) < r.data.max_length,
        "a text may have data.max_length = {r.data.max_length} tokens, more than the model.max_positions = "
        "{r.model.learned_positions} that are learned; raise model.max_positions, or lower data.max_length",
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and r.tokenizer.kind != "bpe",
        'tokenizer.dropout leaves out merges of byte-pair encoding, and tokenizer.kind is "{r.tokenizer.kind}"; '
        'set tokenizer.dropout = 0.0, or tokenizer.kind = "bpe"',
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and not pairs(r),
        "tokenizer.dropout spells sentence pairs anew each time, and a model of family {r.model.family} reads text "
        "that was encoded once; set tokenizer.dropout = 0.0",
    ),
    Rule(
        KEYS.optimizer.lr,
        lambda r: r.optimizer.schedule == "noam" and r.optimizer.lr < 0.01,
        'with optimizer.schedule = "noam" optimizer.lr is a factor on the paper\'s formula, usually 1.0, and '
        'with {r.optimizer.lr} nothing would be learned; for a peak rate set optimizer.schedule = "inverse_sqrt"',
    ),
    Rule(
        KEYS.optimizer.lr,
        lambda r: r.optimizer.schedule != "noam" and r.optimizer.lr > 0.1,
        'with optimizer.schedule = "{r.optimizer.schedule}" optimizer.lr is the peak rate, and {r.optimizer.lr} '
        "would diverge; 0.0005 is usual",
    ),
    Rule(
        KEYS.optimizer.warmup,
        lambda r: r.optimizer.schedule == "noam" and r.optimizer.warmup < 1,
        'optimizer.schedule = "noam" divides by optimizer.warmup; give at least 1 (the paper: 4000)',
    ),
    Rule(
        KEYS.optimizer.min_lr,
        lambda r: r.optimizer.schedule not in ("cosine", "linear") and r.optimizer.min_lr > 0,
        'optimizer.min_lr is where "cosine" and "linear" end, and optimizer.schedule is "{r.optimizer.schedule}"; '
        "set optimizer.min_lr = 0.0, or one of these schedules",
    ),
    Rule(
        KEYS.optimizer.min_lr,
        lambda r: r.optimizer.min_lr > r.optimizer.lr,
        "optimizer.min_lr = {r.optimizer.min_lr} is above the peak, optimizer.lr = {r.optimizer.lr}; lower it",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: pairs(r) and r.train.batch_tokens < r.data.filters.max_tokens,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a sentence of data.filters.max_tokens = "
        "{r.data.filters.max_tokens}; raise batch_tokens, or lower max_tokens",
    ),
    Rule(
        KEYS.train.batch_tokens,
        lambda r: one_text(r) and r.train.batch_tokens < r.data.max_length,
        "a batch of train.batch_tokens = {r.train.batch_tokens} does not hold a text of data.max_length = "
        "{r.data.max_length} tokens; raise batch_tokens, or lower max_length",
    ),
    Rule(
        KEYS.train.average_last,
        lambda r: r.train.average_last > r.train.keep_last,
        "train.average_last = {r.train.average_last} checkpoints cannot be averaged where train.keep_last = "
        "{r.train.keep_last} are kept; raise keep_last, or lower average_last",
    ),
    Rule(
        KEYS.train.best,
        lambda r: pairs(r) and not r.train.validate_decoding and r.train.best not in (None, "loss", "perplexity"),
        'train.best = "{r.train.best}" is a score of what is decoded, which train.validate_decoding = false leaves '
        'out; set train.best = "loss"',
    ),
    Rule(
        KEYS.train.patience,
        lambda r: r.train.patience is not None and r.data.valid is None,
        "train.patience counts validations, and there is no validation text; give [data.valid], or leave patience out",
    ),
    Rule(
        KEYS.train.device,
        lambda r: re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", r.train.device) is None,
        'train.device = "{r.train.device}" is no device; use "auto", "cpu", "cuda", "cuda:0" or "mps"',
    ),
    Rule(
        KEYS.optimizer.weight_decay,
        lambda r: r.optimizer.weight_decay > 0 and r.optimizer.name == "row_sgd",
        'optimizer.name = "row_sgd" has no weight decay; set optimizer.weight_decay = 0.0',
    ),
    Rule(
        KEYS.parallel.shard,
        lambda r: r.parallel.shard != "none" and r.optimizer.name == "row_sgd",
        'optimizer.name = "row_sgd" changes a few rows of a table at each update, and sharded gradients are of all '
        'rows; set parallel.shard = "none"',
    ),
    Rule(
        KEYS.parallel.shard,
        lambda r: r.parallel.shard != "none" and r.train.compile,
        "train.compile = true compiles whole stacks, and a sharded one gathers the weights of each block on the way; "
        'set train.compile = false, or parallel.shard = "none"',
    ),
    Rule(
        KEYS.parallel.shard_processes,
        lambda r: r.parallel.shard_processes is not None and r.parallel.shard != "hybrid",
        "parallel.shard_processes = {r.parallel.shard_processes} counts the processes of a copy, and parallel.shard "
        'is "{r.parallel.shard}"; set parallel.shard = "hybrid", or leave parallel.shard_processes out',
    ),
    Rule(
        KEYS.train.activation_checkpointing,
        lambda r: r.train.activation_checkpointing and not isinstance(r.model, TransformerSettings),
        "train.activation_checkpointing computes the blocks of a Transformer again, and model.architecture = "
        '"{r.model.architecture}" has none; leave train.activation_checkpointing out',
    ),
    Rule(
        KEYS.train.activation_checkpointing,
        lambda r: r.train.activation_checkpointing and r.train.compile,
        "with train.compile = true the compiler decides what is computed again; leave train.activation_checkpointing "
        "or train.compile out",
    ),
    Rule(
        KEYS.decode.n_best,
        lambda r: r.decode.n_best > r.decode.beam,
        "decode.n_best = {r.decode.n_best} translations cannot come from decode.beam = {r.decode.beam}; "
        "raise beam, or lower n_best",
    ),
    Rule(
        KEYS.generate.min_tokens,
        lambda r: r.generate.min_tokens > r.generate.max_tokens,
        "generate.min_tokens is larger than generate.max_tokens, where every output ends; lower it, or raise the other",
    ),
    Rule(
        KEYS.generate.stop,
        lambda r: "" in r.generate.stop,
        "generate.stop holds an empty text, which would end every output before it begins; take it out",
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
        'model.tie = "all" shares one matrix between the languages, so that model.source_vectors and '
        'model.target_vectors must name the same file; or set model.tie = "none"',
    ),
    Rule(
        KEYS.task,
        lambda r: r.task == "masked_lm" and not isinstance(r.model, TransformerSettings),
        'a masked language model is a Transformer here, and model.architecture is "{r.model.architecture}"; '
        'set model.architecture = "transformer", or task = "language_model"',
    ),
)

RULES[TransformerSettings] = (
    Rule(
        KEYS.model.max_target_positions,
        lambda r: r.model.max_target_positions is not None and not (pairs(r) and r.model.learned_positions),
        "model.max_target_positions is the size of a decoder's own table of learned positions, beside an encoder's; "
        'leave it out, or set model.positions = "learned" in an encoder-decoder',
    ),
    Rule(
        KEYS.model.heads,
        lambda r: r.model.d_k is None and r.model.d_model % r.model.heads != 0,
        "model.d_model = {r.model.d_model} cannot be divided by model.heads = {r.model.heads}; "
        "choose a number of heads that divides it, or give the size of a head as model.d_k",
    ),
    Rule(
        KEYS.model.kv_heads,
        lambda r: r.model.heads % (r.model.kv_heads or 1) != 0,
        "model.heads = {r.model.heads} cannot share model.kv_heads = {r.model.kv_heads} evenly; "
        "choose a kv_heads that divides heads",
    ),
    Rule(
        KEYS.model.positions,
        lambda r: r.model.positions == "sinusoidal" and r.model.d_model % 2 != 0,
        "sinusoidal positions come in pairs of sine and cosine, and model.d_model = {r.model.d_model} is odd; "
        'make it even, or set model.positions = "learned"',
    ),
    Rule(
        KEYS.model.positions,
        lambda r: r.model.positions == "rotary" and (r.model.d_k or r.model.d_model // r.model.heads) % 2 != 0,
        "rotary positions turn the dimensions of a head in pairs, and a head has an odd number of them; "
        "give an even model.d_k",
    ),
)

REMARKS[ArchitectureConfig] = (
    Rule(
        KEYS.optimizer.warmup,
        lambda r: r.optimizer.warmup >= r.train.max_updates,
        "the run ends with train.max_updates = {r.train.max_updates}, before optimizer.warmup = {r.optimizer.warmup} "
        "is over: enough to try a recipe out, too short to learn from it",
    ),
    Rule(
        KEYS.tokenizer.dropout,
        lambda r: r.tokenizer.dropout > 0 and r.data.modality != "text",
        "tokenizer.dropout spells sentence pairs anew each time: texts that belong to files are encoded once, and it "
        "changes nothing",
    ),
    Rule(
        KEYS.image.mixup,
        lambda r: r.image.mixup > 0 and FAMILIES[r.model.family].pairs,
        "image.mixup mixes pictures of two classes: where texts belong to them, it changes nothing",
    ),
    Rule(
        KEYS.data.filters,
        lambda r: r.data.modality != "text" and replace(r.data.filters, max_tokens=1) != FilterConfig(max_tokens=1),
        "of [data.filters] files are held to max_tokens alone: the others change nothing",
    ),
    Rule(
        KEYS.audio.frequency_masks,
        lambda r: r.audio.features == "samples" and r.audio.frequency_masks > 0,
        'audio.frequency_masks masks mel bands, and audio.features = "samples" has none: columns of samples are masked',
    ),
)
