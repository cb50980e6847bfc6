"""First recipes for images, audio or videos: a classifier, or an encoder-decoder that writes text about them."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.data.readers.media_files import NOUNS
from heedful.tools.proposals.media_survey import ImageFacts, Kind, MediaSurvey
from heedful.tools.proposals.proposal import (
    HEADER,
    MODEL,
    Machine,
    RecipeData,
    Size,
    fill_template,
    fitting_size,
    schedule,
    tokenizer_values,
    toml_value,
)

SIZES = (  # by the number of files
    Size("tiny", 5_000, 64, 128, 4, 4, dropout=0.1, lr=3e-3, warmup=100, passes=40),
    Size("small", 100_000, 128, 256, 4, 6, dropout=0.1, lr=3e-3, warmup=200, passes=20),
    Size("medium", 1_000_000, 256, 1024, 8, 8, dropout=0.1, lr=2e-3, warmup=1000, passes=30, gpu_memory=8),
    Size("base", math.inf, 384, 1536, 6, 12, dropout=0.1, lr=1e-3, warmup=5000, passes=50, gpu_memory=24),
)
CPU_SECONDS = 2 * 3600.0  # the longest training without a GPU
MIN_PASSES = 10  # passes over the files; a smaller model is better than fewer passes
MIN_BATCH_FILES, MAX_BATCH_FILES = 16, 128
MIN_UPDATES = 400
SAVES = 10  # checkpoints in a run, each after a validation
PATCHES = ((40, 4), (96, 8))  # maximum image side, and the patch side for images up to it
MAX_RATE = 16_000  # samples per second that speech needs
SPARE = 1.5  # margin: limit on tokens in a text, relative to the estimate for the longest
CLASSIFICATION = {"image": "image_classification", "audio": "audio_classification", "video": "video_classification"}
WRITING = {"image": "captioning", "audio": "speech_recognition"}


def propose_classifier(
    kind: Kind, survey: MediaSurvey[Any], labels: Sequence[str], machine: Machine, data: RecipeData
) -> str:
    """Write a first recipe, in TOML, for an image, audio or video classifier."""
    values, typical, longest = input_values(kind, survey.facts, machine)
    values |= training_values(len(survey.facts), typical, longest, machine) | {"task": CLASSIFICATION[kind]}
    target = f"labels = {toml_value(labels)} # the classes\n"
    return fill_template(CLASSIFIERS[kind], data, values, target=target, **data_lines(kind, survey, ""))


def propose_writer(
    kind: Kind, survey: MediaSurvey[Any], language: str | None, machine: Machine, data: RecipeData
) -> str:
    """Write a first recipe, in TOML, for a model that writes captions of images or recognises speech."""
    values, typical, longest = input_values(kind, survey.facts, machine)
    texts = survey.texts
    typical += round(float(texts.tokens.mean()))
    values |= training_values(len(survey.facts), typical, longest, machine) | tokenizer_values(texts, "bpe")
    values |= {"task": WRITING[kind], "longest": 10 * math.ceil(SPARE * float(texts.tokens.max()) / 10)}
    target = f"target_language = {toml_value(language)}\n" if language else ""
    return fill_template(WRITERS[kind], data, values, target=target, **data_lines(kind, survey, " with texts"))


def data_lines(kind: Kind, survey: MediaSurvey[Any], texts: str) -> dict[str, str]:
    bad = 'bad_files = "skip" # training files that cannot be read\n' if survey.bad else ""
    return {"content": f"{len(survey.facts):,} {NOUNS[kind]}{texts}", "bad": bad}


def input_values(kind: Kind, facts: Sequence[Any], machine: Machine) -> tuple[dict[str, Any], int, int]:
    """Choose the input settings; return them with the number of positions in a typical and in the longest input."""
    if kind == "audio":
        rate = min(MAX_RATE, Counter(file.rate for file in facts).most_common(1)[0][0])
        settings: dict[str, Any] = {
            "rate": rate,
            "window": max(2, rate // 40),
            "hop": max(1, rate // 100),
            "mels": min(80 if rate >= MAX_RATE else 40, max(1, rate // 80)),
            "max_seconds": math.ceil(2 * max(file.seconds for file in facts) + 0.01) / 2,
        }
        audio = AudioConfig(**settings)
        lengths = [audio.tokens(round(file.seconds * audio.rate)) for file in facts]
        return settings, max(1, round(float(np.mean(lengths)))), audio.longest

    height, width, patch = image_size(facts, machine)
    shift = max(1, round(min(height, width) / 16))
    channels = 1 if all(file.is_grey for file in facts) else 3
    image = ImageConfig(size=(height, width), patch=patch, channels=channels, stem="convolutional", shift=shift)
    # Training crops images at random; a crop of a small image keeps a larger part of it.
    zoom = 0.8 if max(height, width) <= PATCHES[0][0] else 0.5
    settings = {"image_size": [height, width], "patch": patch, "channels": channels, "shift": shift, "zoom": zoom}
    if kind == "image":
        return settings | {"tokens": image.tokens}, image.tokens, image.tokens

    # A model reads as many frames as the median video has, but no more than the default.
    median = round(float(np.median([file.frames for file in facts])))
    whole = max(1, median // VideoConfig.tubelet) * VideoConfig.tubelet
    video = VideoConfig(frames=min(VideoConfig.frames, whole))
    longest = video.tokens(video.frames, image)
    lengths = [video.tokens(video.read(file.frames), image) for file in facts]
    settings |= {"tokens": longest, "frames": video.frames, "tubelet": video.tubelet}
    return settings, round(float(np.mean(lengths))), longest


def image_size(facts: Sequence[ImageFacts], machine: Machine) -> tuple[int, int, int]:
    """Choose the height and width that images are resized to, multiples of the patch side, and the patch side.

    Small images get the most common size, rounded up to whole patches; larger ones become squares.
    """
    [((height, width), _)] = Counter((image.height, image.width) for image in facts).most_common(1)
    for side, patch in PATCHES:
        if max(height, width) <= side:
            return patch * max(2, math.ceil(height / patch)), patch * max(2, math.ceil(width / patch)), patch
    return (128, 128, 16) if machine.gpu_memory is None else (224, 224, 16)


def training_values(files: int, typical: int, longest: int, machine: Machine) -> dict[str, Any]:
    """Choose the size of the model, the batches and the number of updates."""

    def work(size: Size) -> float:
        return 6 * size.layers * size.block * typical * files * MIN_PASSES

    size = fitting_size(SIZES, files, machine, CPU_SECONDS, work)
    batch = min(MAX_BATCH_FILES, max(MIN_BATCH_FILES, files // 32))
    values = schedule(size, max(MIN_UPDATES, size.passes * files / batch), files / batch, SAVES)
    return values | {"batch_tokens": max(batch * typical, longest), "batch": batch}


DATA = (
    HEADER
    + """\
name = $name
task = $task

[data]
bad_utf8 = $bad_utf8
$target$bad
$corpora
"""
)

TRAINING = """\
encoder_layers = $layers

[optimizer]
name = "muon"
lr = $lr # if the loss jumps, halve it
schedule = "linear"
warmup = $warmup

[train]
max_updates = $max_updates # about $passes epochs
batch_tokens = $batch_tokens # about $batch files; if memory runs out, halve it and double accumulate
label_smoothing = 0.1
validate_every = $every
save_every = $every
keep_last = 4
average_last = 4
"""

IMAGE = """
[image]
size = $image_size # height and width that every image is resized to
channels = $channels # 1: grey; 3: colour
patch = $patch # patch side in pixels
stem = "convolutional"
"""

AUDIO = """
[audio]
rate = $rate # samples per second; files with other rates are resampled
window = $window # 25 milliseconds
hop = $hop # 10 milliseconds
mels = $mels
max_seconds = $max_seconds # longer clips are rejected
# In training, audio files are changed at random:
speed = 0.1
time_masks = 2
frequency_masks = 2
"""

AUGMENTATION = """\
# In training, images are changed at random:
shift = $shift
flip = false # true if a mirrored image belongs to the same class, unlike a letter
zoom = $zoom
erase = 0.1
"""

VIDEO = """
[video]
frames = $frames # per video, evenly spaced from start to end; all of them are changed in the same way
tubelet = $tubelet # frames per patch
"""

LEARNED_POSITIONS = """\
positions = "learned"
max_positions = $tokens
"""

ROTARY_POSITIONS = """\
positions = "rotary"
"""

CLASSIFIERS = {
    "image": DATA + IMAGE + AUGMENTATION + MODEL + LEARNED_POSITIONS + TRAINING,
    "video": DATA + IMAGE + AUGMENTATION + VIDEO + MODEL + LEARNED_POSITIONS + TRAINING,
    "audio": DATA + AUDIO + MODEL + ROTARY_POSITIONS + TRAINING,
}

TEXT = """
[data.filters]
max_tokens = $longest # files with a longer text are left out of training

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
"""

CAPTIONED_IMAGE = (
    IMAGE
    + """\
class_token = false
positions = "learned"
shift = $shift # in training, images are moved at random; 0 if texts mention exact positions
"""
)

WRITER = (
    MODEL
    + ROTARY_POSITIONS
    + """\
decoder_layers = $layers
"""
    + TRAINING
    + """
[decode]
beam = 4
max_extra = $longest # the length of the longest text, in tokens
"""
)

WRITERS = {"image": DATA + TEXT + CAPTIONED_IMAGE + WRITER, "audio": DATA + TEXT + AUDIO + WRITER}
