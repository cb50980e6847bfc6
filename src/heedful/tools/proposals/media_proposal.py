"""First recipes for images, audio or videos: a classifier, or an encoder-decoder that writes text about them."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from string import Template
from typing import Any

import numpy as np

from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.tools.proposals.labelled import pieces
from heedful.tools.proposals.media_survey import Kind, MediaSurvey, PictureFacts, SoundFacts, VideoFacts
from heedful.tools.proposals.pairs import Side
from heedful.tools.proposals.proposal import (
    BEGINNING,
    MODEL,
    Keys,
    Machine,
    Size,
    Texts,
    choose,
    filled,
    quoted,
    room_for,
    save_interval,
)

SIZES = (  # by number of files
    Size("tiny", 5_000, 64, 128, 4, 4, dropout=0.1, lr=3e-3, warmup=100, passes=40),
    Size("small", 100_000, 128, 256, 4, 6, dropout=0.1, lr=3e-3, warmup=200, passes=20),
    Size("medium", 1_000_000, 256, 1024, 8, 8, dropout=0.1, lr=2e-3, warmup=1000, passes=30, gpu_memory=8),
    Size("base", math.inf, 384, 1536, 6, 12, dropout=0.1, lr=1e-3, warmup=5000, passes=50, gpu_memory=24),
)
SECONDS = 2 * 3600.0  # that training may take without a GPU
MIN_PASSES = 10  # from which a size is trained well
BATCH = (16, 128)  # files
MIN_UPDATES = 400
SAVES = 10  # checkpoints in a run, each after a validation
PATCHES = ((40, 4), (96, 8))  # up to which side of a picture a patch is so large
LARGE = {True: (224, 16), False: (128, 16)}  # side and patch of larger pictures, with and without a GPU
MAX_RATE = 16_000  # samples a second that speech needs


def propose_pictures(survey: MediaSurvey[PictureFacts], labels: Sequence[str], machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a classifier of pictures, from a survey of them."""
    image = image_config(survey.facts, machine)
    values = {"task": "image_classification", **of_image(image), "zoom": zoom(image), "tokens": image.tokens}
    values |= settings(len(survey.facts), image.tokens, image.tokens, machine)
    return filled(PICTURES, texts, values, seen=f"{len(survey.facts):,} pictures", **of_data(survey, labels))


def propose_sounds(survey: MediaSurvey[SoundFacts], labels: Sequence[str], machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a classifier of sounds, from a survey of them; arguments as for pictures."""
    audio = audio_config(survey.facts)
    values = {"task": "audio_classification", **of_audio(audio)}
    values |= settings(len(survey.facts), typical_tokens(survey.facts, audio), audio.longest, machine)
    return filled(SOUNDS, texts, values, seen=f"{len(survey.facts):,} sounds", **of_data(survey, labels))


def propose_videos(survey: MediaSurvey[VideoFacts], labels: Sequence[str], machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a classifier of videos, from a survey of them; arguments as for pictures."""
    image = image_config(survey.facts, machine)
    # As many frames are read as most videos have, but no more than the default.
    usual = round(float(np.median([one.frames for one in survey.facts])))
    whole = max(1, usual // VideoConfig.tubelet) * VideoConfig.tubelet
    video = VideoConfig(frames=min(VideoConfig.frames, whole))
    longest = video.tokens(video.frames, image)
    typical = round(float(np.mean([video.tokens(video.read(one.frames), image) for one in survey.facts])))
    values = {"task": "video_classification", **of_image(image), "zoom": zoom(image), "tokens": longest}
    values |= {"frames": video.frames, "tubelet": video.tubelet}
    values |= settings(len(survey.facts), typical, longest, machine)
    return filled(VIDEOS, texts, values, seen=f"{len(survey.facts):,} videos", **of_data(survey, labels))


def zoom(image: ImageConfig) -> float:
    """Choose the least share of the area that training cuts out of a picture: a larger share of small pictures."""
    return 0.8 if max(image.size) <= PATCHES[0][0] else 0.5


def image_config(facts: Sequence[PictureFacts], machine: Machine) -> ImageConfig:
    height, width, patch = picture_size(facts, machine)
    shift = max(1, round(min(height, width) / 16))
    channels = 1 if all(one.is_grey for one in facts) else 3
    return ImageConfig(size=(height, width), patch=patch, channels=channels, stem="convolutional", shift=shift)


def of_image(image: ImageConfig) -> Keys:
    keys = ("patch", "channels", "shift")
    return {"image_size": list(image.size)} | {key: getattr(image, key) for key in keys}


def audio_config(facts: Sequence[SoundFacts]) -> AudioConfig:
    rate = min(MAX_RATE, Counter(one.rate for one in facts).most_common(1)[0][0])
    return AudioConfig(
        rate=rate,
        window=max(2, rate // 40),
        hop=max(1, rate // 100),
        mels=min(80 if rate >= MAX_RATE else 40, max(1, rate // 80)),
        max_seconds=math.ceil(2 * max(one.seconds for one in facts) + 0.01) / 2,
    )


def of_audio(audio: AudioConfig) -> Keys:
    return {key: getattr(audio, key) for key in ("rate", "window", "hop", "mels", "max_seconds")}


def typical_tokens(facts: Sequence[SoundFacts], audio: AudioConfig) -> int:
    """Mean number of positions of sounds in the stack, at least 1."""
    return max(1, round(float(np.mean([audio.tokens(round(one.seconds * audio.rate)) for one in facts]))))


def picture_size(facts: Sequence[PictureFacts], machine: Machine) -> tuple[int, int, int]:
    """Choose height and width that pictures are brought to, multiples of the patch, and the side of a patch.

    Small pictures keep the most common size; larger ones become squares.
    """
    [((height, width), _)] = Counter((one.height, one.width) for one in facts).most_common(1)
    for side, patch in PATCHES:
        if max(height, width) <= side:
            return patch * max(2, math.ceil(height / patch)), patch * max(2, math.ceil(width / patch)), patch
    side, patch = LARGE[machine.gpu_memory is not None]
    return side, side, patch


def settings(files: int, typical: int, longest: int, machine: Machine) -> dict[str, object]:
    """Choose the size of the model, the batches and the number of updates."""

    def work(size: Size) -> float:
        return 6 * size.layers * size.block * typical * files * MIN_PASSES

    size = choose(SIZES, files, machine, SECONDS, work)
    batch = min(BATCH[1], max(BATCH[0], files // 32))
    every = save_interval(max(MIN_UPDATES, size.passes * files / batch), SAVES)
    return vars(size) | {
        "size": size.name,
        "more_dropout": 2 * size.dropout,
        "batch_tokens": max(batch * typical, longest),
        "batch": batch,
        "max_updates": SAVES * every,
        "warmup": min(size.warmup, 2 * every),
        "every": every,
        "passes": max(1, round(SAVES * every * batch / files)),
    }


def of_data(survey: MediaSurvey[Any], labels: Sequence[str]) -> dict[str, str]:
    """Write the keys of [data] that a survey of files with classes decides."""
    return {"target": f"labels = {quoted(labels)} # the classes\n", "bad": of_bad(survey.bad)}


def of_bad(bad: Sequence[str]) -> str:
    """Write the key of [data] that leaves out files that cannot be read; nothing if there are none."""
    return 'bad_files = "skip" # training files that cannot be read\n' if bad else ""


DATA = (
    BEGINNING
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
max_updates = $max_updates # about $passes passes over the files
batch_tokens = $batch_tokens # about $batch files; if memory runs out, halve it and double accumulate
label_smoothing = 0.1
validate_every = $every
save_every = $every
keep_last = 4
average_last = 4
"""

IMAGE = """
[image]
size = $image_size # height and width that every picture is brought to
channels = $channels # 1: grey; 3: colour
patch = $patch # side of a patch, in pixels
stem = "convolutional"
"""

AUDIO = """
[audio]
rate = $rate # samples a second; others are resampled
window = $window # 25 milliseconds
hop = $hop # 10 milliseconds
mels = $mels
max_seconds = $max_seconds # a longer clip is refused
# In training, sounds are changed at random:
speed = 0.1
time_masks = 2
frequency_masks = 2
"""

CHANGES = """\
# In training, pictures are changed at random:
shift = $shift
flip = false # true if a mirrored picture is of the same class, unlike a letter
zoom = $zoom
erase = 0.1
"""

VIDEO = """
[video]
frames = $frames # of each video, evenly from its beginning to its end; all of them are changed alike
tubelet = $tubelet # frames that a patch lasts
"""

LEARNED_POSITIONS = """\
positions = "learned"
max_positions = $tokens
"""

PICTURES = Template(DATA + IMAGE + CHANGES + MODEL + LEARNED_POSITIONS + TRAINING)

VIDEOS = Template(DATA + IMAGE + CHANGES + VIDEO + MODEL + LEARNED_POSITIONS + TRAINING)

SOUNDS = Template(
    DATA
    + AUDIO
    + MODEL
    + """\
positions = "rotary"
"""
    + TRAINING
)

PROPOSALS: dict[Kind, Callable[[MediaSurvey[Any], Sequence[str], Machine, Texts], str]] = {
    "image": propose_pictures,
    "audio": propose_sounds,
    "video": propose_videos,
}


SPARE = 1.5  # tokens of the longest text, times the estimate


def propose_captions(survey: MediaSurvey[PictureFacts], language: str | None, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a model that writes captions of pictures, from a survey of these."""
    image, side = image_config(survey.facts, machine), survey.side
    values = {"task": "captioning", **of_image(image), **of_text(side)}
    values |= settings(len(survey.facts), image.tokens + typical_text(side), image.tokens, machine)
    content = f"{len(survey.facts):,} pictures with texts"
    return filled(CAPTIONS, texts, values, seen=content, target=of_language(language), bad=of_bad(survey.bad))


def propose_transcripts(survey: MediaSurvey[SoundFacts], language: str | None, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a recogniser of speech, from a survey of sounds; arguments as for captions."""
    audio, side = audio_config(survey.facts), survey.side
    values = {"task": "speech_recognition", **of_audio(audio), **of_text(side)}
    typical = typical_tokens(survey.facts, audio) + typical_text(side)
    values |= settings(len(survey.facts), typical, audio.longest, machine)
    seen = f"{len(survey.facts):,} sounds with texts"
    return filled(TRANSCRIPTS, texts, values, seen=seen, target=of_language(language), bad=of_bad(survey.bad))


def of_text(side: Side) -> Keys:
    longest = 10 * math.ceil(SPARE * float(side.tokens.max()) / 10)
    return {
        "kind": "character" if side.is_spaceless else "bpe",
        "vocab_size": room_for(side.alphabet) if side.is_spaceless else pieces(side),
        "longest": longest,
    }


def typical_text(side: Side) -> int:
    return round(float(side.tokens.mean()))


def of_language(language: str | None) -> str:
    """Write the key of [data] that names the language; nothing where it is not known."""
    return f"target_language = {quoted(language)}\n" if language else ""


TEXT = """
[data.filters]
max_tokens = $longest # files with a longer text are left out of training

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
"""

WRITER = (
    MODEL
    + """\
positions = "rotary"
decoder_layers = $layers
"""
    + TRAINING
    + """
[decode]
beam = 4
max_extra = $longest # the length of the longest text, in tokens
"""
)

CAPTIONS = Template(
    DATA
    + TEXT
    + IMAGE
    + """\
class_token = false
positions = "learned"
shift = $shift # in training, pictures are moved at random; 0 where texts tell exact places
"""
    + WRITER
)

TRANSCRIPTS = Template(DATA + TEXT + AUDIO + WRITER)
