"""Rules for recipes of models that read pictures, sound or videos: sizes that fit, and room for the longest input."""

import math
from dataclasses import replace

from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.rule import Rule
from heedful.config.schema import FilterConfig, ModelConfig, Recipe, TextModelConfig
from heedful.registry import ARCHITECTURES


def reads_pictures(recipe: Recipe) -> bool:
    """True if the model of a recipe reads pictures, alone or as the frames of videos."""
    return recipe.data.modality == "image" or reads_videos(recipe)


def reads_videos(recipe: Recipe) -> bool:
    """True if the model of a recipe reads videos."""
    return recipe.data.modality == "video"


def reads_sound(recipe: Recipe) -> bool:
    """True if the model of a recipe reads sound."""
    return recipe.data.modality == "audio"


def pools_first_patch(recipe: Recipe) -> bool:
    """True if the first patch would stand for a whole picture, because there is no class token before it."""
    model = recipe.model
    pooling = (model.pooling if isinstance(model, TextModelConfig) else None) or FAMILIES[model.family].pooling
    return reads_pictures(recipe) and not recipe.image.class_token and model.family == "encoder" and pooling == "first"


UNREAD = 'a model for the task "{{r.task}}" reads nothing that [{}] would be about; take that table out of the recipe'

RULES = (
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
        lambda r: r.task == "masked_patches" and not isinstance(r.model, ModelConfig),
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

REMARKS = (
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
