"""Survey of a user's own pictures, sounds or videos: sizes, lengths, classes or texts, copies, and bad files."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.config.schema import CorpusConfig
from heedful.data.media import pictures, sounds, videos
from heedful.data.media.containers import HEAD, container_format, container_frames
from heedful.data.media.media_files import MediaFile, read_content
from heedful.data.proposals.media_layout import Kind
from heedful.data.proposals.pair_survey import Side, TextStatistics
from heedful.errors import InputError

GREY_MODES = {"1", "L", "LA", "F", "I", "I;16", "I;16B", "I;16L"}  # of Pillow
EXACT_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA"}  # of Pillow, whose pixels are all in RGBA
COLOURS_UP_TO = 2**16  # pixels of a picture that is unpacked to see whether it is grey
SIDEWAYS = (5, 6, 7, 8)  # orientations in EXIF data in which height and width change places

F = TypeVar("F")


@dataclass(frozen=True)
class PictureFacts:
    """Facts about a picture: its size, whether it is grey, and a digest of its pixels, if all of them are decoded."""

    height: int
    width: int
    is_grey: bool
    decoded: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True)
class VideoFacts(PictureFacts):
    """Facts about a video: those of its first frame, and the number of frames."""

    frames: int


@dataclass(frozen=True)
class SoundFacts:
    """Facts about a sound: its length, samples a second, and channels, whether it is silent, and a digest of all."""

    seconds: float
    rate: int
    channels: int
    silent: bool = False
    decoded: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True)
class MediaSurvey(Generic[F]):
    """Survey of pictures, sounds or videos.

    Attributes:
        labels: The classes or texts, and how many files each has.
        facts: The facts of each file that can be read.
        digests: For each file a digest of its pixels or samples, or else of its bytes; None for a file that cannot be
            read. Equal pictures and sounds in different formats share it, if nothing is lost in these.
        bad: A message for each of these.
        copies: Number of files that are equal to an earlier one.
        torn: Two equal files of different classes or texts, in words; None if there are none.
    """

    labels: Counter[str]
    facts: list[F]
    digests: list[str | None]
    bad: list[str]
    copies: int
    torn: str | None

    @property
    def side(self) -> Side:
        """Statistics of the texts, one for each file, where files have texts."""
        tally = TextStatistics()
        for text in self.labels.elements():
            tally.add(text)
        return tally.side()


def survey_media(files: Iterable[MediaFile], corpus: CorpusConfig, look: Callable[[bytes], F]) -> MediaSurvey[F]:
    """Survey the files of a corpus, each read once.

    Args:
        files: The files.
        corpus: Named in messages.
        look: Finds the facts of a file from its bytes, or raises an InputError.

    Raises:
        InputError: No file can be read.
    """
    labels, facts, bad = Counter[str](), list[F](), list[str]()
    digests: list[str | None] = []
    first: dict[str, MediaFile] = {}
    torn: str | None = None
    for file in files:
        try:
            content = read_content(file, corpus)
            facts.append(seen(file, corpus, content, look))
        except InputError as error:
            bad.append(str(error))
            digests.append(None)
            continue
        digest = getattr(facts[-1], "decoded", "") or blake2b(content, digest_size=16).hexdigest()
        earlier = first.setdefault(digest, file)
        if earlier.target != file.target and torn is None:
            torn = f"{earlier.path} ({earlier.target}) and {file.path} ({file.target})"
        labels[file.target] += 1
        digests.append(digest)
    if not facts:
        raise InputError(f"{corpus.source}: no file can be read; the first: {bad[0] if bad else 'there is none'}")
    return MediaSurvey(labels, facts, digests, bad, len(facts) - len(first), torn)


def seen(file: MediaFile, corpus: CorpusConfig, content: bytes, look: Callable[[bytes], F]) -> F:
    """Find the facts of a file; an error names the file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return look(content)
    except InputError as error:
        raise InputError(f"{file.place(corpus)}: {error}") from error


def look_at_picture(content: bytes) -> PictureFacts:
    """Find the size of a picture, as it is seen, and whether it is grey; a large one of a mode with colours is not.

    Raises:
        InputError: The bytes are no picture, or damaged.
    """
    with pictures.opened(content, ImageConfig.max_pixels) as picture:
        whole = picture.size
        facts = facts_of_picture(picture)
        is_exact = picture.mode in EXACT_MODES and picture.size == whole
        decoded = digest_of(str(whole).encode(), picture.convert("RGBA").tobytes()) if is_exact else ""
        return PictureFacts(*facts, decoded=decoded)


def digest_of(*parts: bytes) -> str:
    """A digest of what is decoded of a file."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def look_at_video(content: bytes) -> VideoFacts:
    """Find the number of frames of a video, and the facts of the first one.

    Raises:
        InputError: The bytes are no video, damaged, or have too many frames.
    """
    if kind := container_format(content[:HEAD]):
        return look_at_container(content, kind)
    with pictures.opened(content, ImageConfig.max_pixels, videos.FORMATS, "video") as picture:
        first = facts_of_picture(picture)
        frames = getattr(picture, "n_frames", 1)
        videos.check_frames(frames, VideoConfig())
        picture.seek(frames - 1)
        picture.load()  # the last frame tells whether the file is whole
        return VideoFacts(*first, frames)


def look_at_container(content: bytes, kind: str) -> VideoFacts:
    """Find the facts of a video of a phone, a camera or a browser, all frames of which are decoded.

    Raises:
        InputError: The bytes are damaged, or have no frames, too many or too large ones.
    """
    counts: list[int] = []

    def choose(count: int) -> tuple[int]:
        videos.check_frames(count, VideoConfig())
        counts.append(count)
        return (0,)

    [first] = container_frames(content, kind, ImageConfig.max_pixels, choose)
    height, width = first.shape[:2]
    return VideoFacts(height, width, bool((first == first[:, :, :1]).all()), counts[-1])


def facts_of_picture(picture: Any) -> tuple[int, int, bool]:
    """Find the height and the width of a picture of Pillow as it is seen, and whether it is grey."""
    whole = picture.size
    is_large = whole[0] * whole[1] > COLOURS_UP_TO
    if is_large:
        picture.draft(None, (1, 1))  # a JPEG is read to its end, and the fewest of its pixels are computed
    reduced = picture.size != whole
    picture.load()  # which tells whether the file is whole, and turns a TIFF
    width, height = whole if reduced else picture.size
    sideways = picture.getexif().get(pictures.ORIENTATION) in SIDEWAYS
    is_grey = picture.mode in GREY_MODES or (not is_large and has_no_colour(picture))
    return (width, height, is_grey) if sideways else (height, width, is_grey)


def has_no_colour(picture: Any) -> bool:
    """True if the three channels of a picture of Pillow are equal."""
    pixels = np.asarray(picture.convert("RGB"))
    return bool((pixels == pixels[:, :, :1]).all())


def listen_to_sound(content: bytes) -> SoundFacts:
    """Find the length of a sound.

    Raises:
        InputError: The bytes are no sound, damaged, or hold no samples.
    """
    with sounds.opened(content) as sound:
        frames = sounds.frames_of(sound, content)
        count, silent = 0, True
        digest = blake2b(f"{sound.samplerate} {sound.channels}".encode(), digest_size=16)
        for block in sounds.blocks(sound, frames):
            count += len(sounds.checked(block))
            silent = silent and sounds.is_silent(block)
            digest.update(block.tobytes())
        if not frames:
            raise InputError("it has no samples")
        sounds.check_count(count, frames)
        seconds = frames / sound.samplerate
        return SoundFacts(seconds, sound.samplerate, sound.channels, silent, decoded=digest.hexdigest())


LOOKS: dict[Kind, Callable[[bytes], Any]] = {
    "image": look_at_picture,
    "audio": listen_to_sound,
    "video": look_at_video,
}
